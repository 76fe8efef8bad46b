import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Says why a port cannot be listened on, and what to do.
enum ListenProblem {
    static func describe(_ error: any Error) -> String {
        guard let error = error as? IOError else { return String(describing: error) }
        switch error.errnoCode {
        case EADDRINUSE: return "another process uses the port; stop it or choose another port"
        case EADDRNOTAVAIL: return "this machine does not have the address; listen on one it has, or on 0.0.0.0"
        case EACCES: return "this user may not use the port; choose one above 1023"
        default: return error.description
        }
    }
}
