import Foundation
import Storage

/// A node's process on this machine, as its pid file names it.
struct NodeProcess: Sendable {
    var node: ClusterFile.Node
    var layout: ClusterLayout

    /// The process that runs this node; nil where the pid file is missing, or its number belongs to something else by now.
    var pid: Int32? {
        guard let bytes = try? readWholeFile(at: layout.pidFile(of: node)),
            let pid = Int32(String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)),
            isOurs(pid)
        else { return nil }
        return pid
    }

    /// The arguments under which the node runs, after the program's own name.
    var arguments: [String] { ["serve", "--config", layout.path, "--node", "\(node.id)"] }

    /// Whether a process is this node, by its command line. A zombie has none.
    func isOurs(_ pid: Int32) -> Bool {
        guard pid > 1, let bytes = FileManager.default.contents(atPath: "/proc/\(pid)/cmdline") else { return false }
        let line = bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        return Array(line.dropFirst().prefix(arguments.count)) == arguments
    }

    /// Starts the node as a process of its own session, so that it outlives this one and its terminal, and writes the pid file.
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

    /// The last lines of the node's log.
    func logTail(lines: Int = 12) -> String {
        guard let bytes = try? readWholeFile(at: layout.log(of: node)) else { return "" }
        let text = String(decoding: bytes.suffix(16_384), as: UTF8.self)
        return text.split(separator: "\n").suffix(lines).map { "  " + $0 }.joined(separator: "\n")
    }
}
