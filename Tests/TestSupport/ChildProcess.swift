package import Foundation
import Synchronization

/// A program in a process of its own, which has no files of this process but those that it is given.
///
/// A `Process` of Foundation also gets what another thread opens while it is started. Where it lives for long, as a
/// server that tests share does, that thread waits for as long: for the end of a pipe, or to be told of its own child's
/// end.
package final class ChildProcess: Sendable {
    /// Its id, which no other process gets before this object is gone.
    package let pid: pid_t
    private let ending = Mutex<Int32?>(nil)

    /// `posix_spawn_file_actions_addclosefrom_np`: glibc and musl have it, but their headers do not show it to Swift.
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

    deinit {
        signal(SIGKILL)
        _ = wait()
    }

    /// Whether it has not ended.
    package var isRunning: Bool {
        ending.withLock { ending in
            if ending == nil { ending = status(WNOHANG) }
            return ending == nil
        }
    }

    /// Sends it a signal, unless it has ended.
    package func signal(_ number: Int32) { ending.withLock { if $0 == nil { kill(pid, number) } } }

    /// Waits until it has ended; any number of times, and by any number of threads.
    /// - Returns: what it ended with; the signal's number where one ended it.
    @discardableResult
    package func wait() -> Int32 {
        // It stays to be looked at by the other threads.
        var information = siginfo_t()
        while waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        return ending.withLock { ending in
            let status = ending ?? status(0) ?? -1
            ending = status
            return status
        }
    }

    /// What it ended with; nil where it has not ended. Only the first time that this is not nil it is true.
    private func status(_ options: Int32) -> Int32? {
        var status: Int32 = 0
        var found: pid_t
        repeat { found = waitpid(pid, &status, options) } while found < 0 && errno == EINTR
        guard found == pid else { return nil }
        let signal = status & 0x7F
        return signal == 0 ? status >> 8 & 0xFF : signal
    }
}
