import Glibc
import Storage

/// The files of a node's data folder that make up its state.
enum NodeFiles {
    /// Relative to the folder, sorted. Left out: the lock, snapshots on their way, and SQLite's shared memory, which is made anew.
    /// - Throws: `DiskError` if a folder cannot be listed.
    static func list(in folder: String) throws(DiskError) -> [String] {
        var files = try listFolder(at: folder).filter {
            ["node.json", "peers.json"].contains($0) || isDatabase($0, prefix: "directory.sqlite")
        }
        files += try listFolder(at: folder + "/log").filter { $0 != "lock" }.map { "log/" + $0 }
        for name in try listFolder(at: folder + "/shards") where !name.hasSuffix("-shm") {
            files.append("shards/" + name)
        }
        return files.sorted()
    }

    private static func isDatabase(_ name: String, prefix: String) -> Bool {
        name.hasPrefix(prefix) && !name.hasSuffix("-shm")
    }

    /// Whether nothing is in a folder, or there is none.
    static func isEmpty(_ folder: String) throws(DiskError) -> Bool {
        do throws(DiskError) {
            return try listFolder(at: folder).isEmpty
        } catch {
            if error.code == ENOENT { return true }
            throw error
        }
    }

    /// Keeps a stopped node's folder from being used.
    /// - Throws: `CommandFailure` if the node runs, or its data are not here.
    static func lock(_ folder: String, node: UInt64) throws(CommandFailure) -> FolderLock {
        guard Paths.exists(folder + "/node.json") else {
            throw CommandFailure(
                "\(folder) has no data of node \(node): a backup needs the data of every node of the configuration on this "
                    + "machine")
        }
        do throws(DiskError) {
            if let lock = try FolderLock(path: folder + "/log/lock") { return lock }
        } catch {
            throw CommandFailure("the folder of node \(node) cannot be locked: \(error)")
        }
        throw CommandFailure("node \(node) is running: stop the cluster first, with `zonekeeper cluster down`")
    }
}

/// Shows how many of how many bytes are done.
struct ByteProgress {
    var verb: String
    var total: Int64
    private var done: Int64 = 0
    private var line = ProgressLine()

    init(_ verb: String, total: Int64) {
        self.verb = verb
        self.total = total
    }

    mutating func add(_ bytes: Int) {
        done += Int64(bytes)
        line.show("\(verb) \(Self.size(done)) of \(Self.size(total))")
    }

    mutating func finish() { line.finish("\(verb) \(Self.size(total))") }

    /// Such as `12.3 MB`.
    static func size(_ bytes: Int64) -> String {
        if bytes < 1_000_000 { return "\((bytes + 999) / 1_000) kB" }
        let tenths = bytes / 100_000
        return "\(tenths / 10).\(tenths % 10) MB"
    }
}
