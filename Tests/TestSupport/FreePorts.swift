import Foundation

/// Ports that nobody listened on a moment ago.
package enum FreePorts {
    /// Different ports on loopback.
    package static func take(_ count: Int) throws -> [Int] {
        var sockets: [Int32] = []
        defer { for socket in sockets { close(socket) } }
        return try (0..<count).map { _ in
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            try require(descriptor >= 0, "no socket: \(errno)")
            sockets.append(descriptor)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            return try withUnsafeMutablePointer(to: &address) { pointer in
                try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                    try require(bind(descriptor, generic, length) == 0, "no port: \(errno)")
                    try require(getsockname(descriptor, generic, &length) == 0, "no port: \(errno)")
                }
                return Int(UInt16(bigEndian: pointer.pointee.sin_port))
            }
        }
    }
}
