#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// How many files and sockets this process may have open.
enum OpenFiles {
    /// What an ordinary node could use.
    static let wanted = 65_536

    /// Raises the process's limit as far as the system lets it, up to `wanted`: the limit that shells set is older than
    /// servers with thousands of connections.
    /// - Returns: the limit in force.
    static func raiseLimit() -> Int {
        var limit = rlimit()
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let resource = RLIMIT_NOFILE
        #endif
        guard getrlimit(resource, &limit) == 0 else { return 1_024 }
        let most = min(limit.rlim_max, rlim_t(wanted))
        if limit.rlim_cur < most {
            var raised = limit
            raised.rlim_cur = most
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(min(limit.rlim_cur, rlim_t(Int32.max)))
    }
}
