import Glibc

/// Whether a port can be listened on.
enum PortCheck {
    /// Listens on the port for a moment.
    /// - Returns: why it cannot be used; nil if it can.
    static func problem(host: String, port: Int) -> String? {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, "\(port)", &hints, &found)
        guard code == 0, let address = found?.pointee else {
            return "'\(host)' is not known: \(String(cString: gai_strerror(code)))"
        }
        defer { freeaddrinfo(found) }
        let descriptor = socket(address.ai_family, address.ai_socktype, address.ai_protocol)
        guard descriptor >= 0 else { return String(cString: strerror(errno)) }
        defer { close(descriptor) }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        guard bind(descriptor, address.ai_addr, address.ai_addrlen) == 0, listen(descriptor, 1) == 0 else {
            switch errno {
            case EADDRINUSE: return "is in use"
            case EADDRNOTAVAIL: return "cannot be used, as \(host) is no address of this machine"
            default: return "cannot be used: \(String(cString: strerror(errno)))"
            }
        }
        return nil
    }
}
