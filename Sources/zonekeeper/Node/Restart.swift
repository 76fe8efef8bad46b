import Foundation
import Logging

/// Begins this process anew, with the same program, arguments, environment and process id.
enum Restart {
    /// Returns only if the system refuses.
    static func run(_ logger: Logger) {
        closeFilesOnExec()
        var signals = sigset_t()
        sigemptyset(&signals)
        sigprocmask(SIG_SETMASK, &signals, nil)
        for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
        let words = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", words)
        logger.critical("the process cannot begin anew: \(String(cString: strerror(errno)))")
    }

    /// Sockets and locks of the old program must not stay open in the new one.
    private static func closeFilesOnExec() {
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        for descriptor in open.compactMap(Int32.init) where descriptor > STDERR_FILENO {
            let flags = fcntl(descriptor, F_GETFD)
            if flags >= 0 { _ = fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) }
        }
    }
}
