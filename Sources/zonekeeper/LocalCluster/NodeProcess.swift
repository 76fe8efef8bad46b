import Foundation
import Glibc
import Storage

/// A node's process on this machine, as its pid file names it.
struct NodeProcess: Sendable {
    var node: ClusterFile.Node
    var layout: ClusterLayout

    /// The process that runs this node; nil where the pid file is missing, or its number belongs to something else by
    /// now.
    var pid: Int32? {
        guard let bytes = try? readWholeFile(at: layout.pidFile(of: node)),
            let pid = Int32(String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)),
            isOurs(pid)
        else { return nil }
        return pid
    }

    var arguments: [String] { ["serve", "--config", layout.path, "--node", "\(node.id)"] }

    /// Whether a process is this node: by its command line, which a zombie has not, or, where that names another
    /// configuration file, by the data folder that it holds.
    func isOurs(_ pid: Int32) -> Bool {
        guard let words = Self.words(of: pid) else { return false }
        return Array(words.prefix(arguments.count)) == arguments || holdsFolder(pid)
    }

    /// The process that holds the node's data folder, started by `cluster up` or otherwise; nil where no process does.
    var holder: Int32? {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return numbers.compactMap(Int32.init).first { Self.words(of: $0) != nil && holdsFolder($0) }
    }

    /// The words after the program's name of a process that serves; nil for any other.
    private static func words(of pid: Int32) -> [String]? {
        guard pid > 1, let bytes = FileManager.default.contents(atPath: "/proc/\(pid)/cmdline") else { return nil }
        let words = bytes.split(separator: 0).dropFirst().map { String(decoding: $0, as: UTF8.self) }
        return words.first == "serve" ? words : nil
    }

    /// Whether the lock of the node's data folder is among a process's open files.
    private func holdsFolder(_ pid: Int32) -> Bool {
        guard let lock = FileIdentity(layout.folder(of: node) + "/log/lock") else { return false }
        let files = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd")) ?? []
        return files.contains { FileIdentity("/proc/\(pid)/fd/\($0)") == lock }
    }

    /// Starts the node as a process of its own session, so that it outlives this one and its terminal, and writes the
    /// pid file.
    func start() throws(CommandFailure) -> Int32 {
        guard let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") else {
            throw CommandFailure("/proc/self/exe cannot be read, so this program cannot start itself")
        }
        let pid = try DetachedProcess.start(program, arguments, log: layout.log(of: node))
        do throws(DiskError) {
            try replaceFile(at: layout.pidFile(of: node), with: Array("\(pid)\n".utf8))
        } catch {
            kill(pid, SIGTERM)
            throw CommandFailure("the pid file \(layout.pidFile(of: node)) cannot be written: \(error.reason)")
        }
        return pid
    }

    /// The last lines of the node's log; of what is ordinary none, where there is anything else.
    func logTail(lines: Int = 12) -> String {
        guard let bytes = try? readWholeFile(at: layout.log(of: node)) else { return "" }
        let all = String(decoding: bytes.suffix(16_384), as: UTF8.self).split(separator: "\n")
        let telling = all.filter { !$0.contains(" info zonekeeper: ") }
        return (telling.isEmpty ? all : telling).suffix(lines).map { "  " + $0 }.joined(separator: "\n")
    }
}

private struct FileIdentity: Equatable {
    private let device: dev_t
    private let number: ino_t

    /// Nil where there is no such file, or it may not be looked at.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        (device, number) = (status.st_dev, status.st_ino)
    }
}

enum DetachedProcess {
    /// glibc's flag for `setsid` in the child; a macro that Swift does not see.
    private static let newSession: Int32 = 0x80

    /// Starts a program in a new session, with no input, its output and errors appended to a file, default signal
    /// handling, and this process's environment.
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

    enum End: Hashable, CustomStringConvertible {
        case exited(Int32)
        case killed(signal: Int32)

        var description: String {
            switch self {
            case .exited(let code): "exit code \(code)"
            case .killed(let signal): "signal \(signal)"
            }
        }
    }

    /// How a child of this process ended; nil while it runs.
    static func end(of pid: pid_t) -> End? {
        var status: Int32 = 0
        guard waitpid(pid, &status, WNOHANG) == pid else { return nil }
        let signal = status & 0x7F
        return signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal: signal)
    }
}

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
