import Glibc

/// Starts a process that does not depend on this one.
enum DetachedProcess {
    /// glibc's flag for `setsid` in the child; a macro that Swift does not see.
    private static let newSession: Int32 = 0x80

    /// Starts a program in a new session, with no input, its output and errors appended to a file, default signal handling, and
    /// this process's environment.
    /// - Returns: its process id. As long as this process lives it is a child of it.
    static func start(_ program: String, _ arguments: [String], log: String) throws(CommandFailure) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        let flags = newSession | Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF)
        posix_spawnattr_setflags(&attributes, Int16(flags))
        var pid: pid_t = 0
        let words = ([program] + arguments).map { strdup($0) }
        defer { for word in words { free(word) } }
        let code = posix_spawn(&pid, program, &actions, &attributes, words + [nil], environ)
        guard code == 0 else {
            throw CommandFailure(
                "\(program) cannot be started with its output in \(log): \(String(cString: strerror(code)))")
        }
        return pid
    }

    /// How a child of this process ended; nil while it runs.
    static func end(of pid: pid_t) -> String? {
        var status: Int32 = 0
        guard waitpid(pid, &status, WNOHANG) == pid else { return nil }
        let signal = status & 0x7F
        return signal == 0 ? "exit code \(status >> 8 & 0xFF)" : "signal \(signal)"
    }
}
