package import Foundation

/// A program in a process of its own, which has no files of this process but those that it is given.
///
/// Foundation's `Process` lets a child inherit files that another thread opens at that moment. A child that lives long,
/// such as a server that tests share, then keeps pipes open, and their readers wait.
package final class ChildProcess: Sendable {
    /// Its id, which no other process gets before this object is gone.
    package let pid: pid_t

    /// `posix_spawn_file_actions_addclosefrom_np` of glibc 2.34, declared only with `_GNU_SOURCE`, which Swift lacks.
    private static let closeFrom = unsafeBitCast(
        dlsym(dlopen(nil, RTLD_NOW), "posix_spawn_file_actions_addclosefrom_np"),
        to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32).self)

    /// Starts it with no signals ignored or held back.
    /// - Parameters:
    ///   - words: the program, by its path or as `PATH` finds it, and its arguments.
    ///   - environment: what it finds in its environment beside what this process has.
    ///   - input: what it can read; nothing, if nil.
    ///   - output: where its output goes.
    ///   - errors: where its standard error goes.
    /// - Throws: `TestFailure` where it cannot be started.
    package init(
        _ words: [String], environment: [String: String] = [:], input: FileHandle? = nil, output: FileHandle,
        errors: FileHandle
    ) throws {
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input.fileDescriptor, STDIN_FILENO)
        } else {
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, output.fileDescriptor, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors.fileDescriptor, STDERR_FILENO)
        _ = Self.closeFrom(&actions, STDERR_FILENO + 1)
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        let (arguments, surroundings) = (words.map { strdup($0) }, variables.map { strdup($0) })
        defer { for text in arguments + surroundings { free(text) } }
        var child: pid_t = 0
        let code = posix_spawnp(&child, words[0], &actions, &attributes, arguments + [nil], surroundings + [nil])
        try require(code == 0, "\(words[0]) cannot be run: \(String(cString: strerror(code)))")
        pid = child
    }

    // Only here does the id become free for others; until then it is safe to send signals to it.
    deinit {
        kill(pid, SIGKILL)
        while waitpid(pid, nil, 0) < 0, errno == EINTR {}
    }

    /// Whether it has not ended.
    package var isRunning: Bool { end(WNOHANG).si_signo == 0 }

    /// Sends it a signal, which does nothing once it has ended.
    package func signal(_ number: Int32) { kill(pid, number) }

    /// Waits until it has ended; any number of times, and by any number of threads.
    /// - Returns: what it ended with; the signal's number where one ended it.
    @discardableResult
    package func wait() -> Int32 { end(0)._sifields._sigchld.si_status }

    /// How it ended; all zeros where it runs on.
    private func end(_ options: Int32) -> siginfo_t {
        var information = siginfo_t()
        while waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT | options) != 0, errno == EINTR {}
        return information
    }
}
