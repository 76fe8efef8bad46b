import Crypto
import Directory
import Glibc
import RecordModel
import ServiceClient
import Storage

/// What a backup holds: the file `manifest.json` in its folder, written last.
struct BackupManifest: Hashable, Sendable {
    struct File: Hashable, Sendable {
        /// Relative to the backup's folder, such as `node-1/log/00000001.log`.
        var path: String
        var size: Int64
        /// SHA-256 as hexadecimal digits.
        var sha256: String
    }

    static let currentFormat: Int64 = 1
    static let fileName = "manifest.json"

    var cluster: String
    /// Ascending.
    var nodes: [UInt64]
    /// Milliseconds since 1970.
    var created: Int64
    /// Whether certificates, their keys and the administrator's token are among the files.
    var hasSecrets: Bool
    /// Sorted by path.
    var files: [File]

    var serialized: [UInt8] {
        let head = JSONValue.members([
            "format": .integer(Self.currentFormat), "cluster": .string(cluster),
            "nodes": .array(nodes.map { .integer(Int64($0)) }), "created": .integer(created),
            "createdAt": .string(Times.text(created)), "hasSecrets": .bool(hasSecrets),
        ]).serialized()
        var text = String(decoding: head.dropLast(), as: UTF8.self) + ",\"files\":[\n"
        text += files.map { file in
            let json = JSONValue.members([
                "path": .string(file.path), "size": .integer(file.size), "sha256": .string(file.sha256),
            ])
            return String(decoding: json.serialized(), as: UTF8.self)
        }.joined(separator: ",\n")
        return Array((text + "\n]}\n").utf8)
    }

    init(cluster: String, nodes: [UInt64], created: Int64, hasSecrets: Bool, files: [File]) {
        self.cluster = cluster
        self.nodes = nodes.sorted()
        self.created = created
        self.hasSecrets = hasSecrets
        self.files = files.sorted { $0.path < $1.path }
    }

    init(parsing bytes: [UInt8]) throws(CommandFailure) {
        let json: JSONValue
        do throws(JSONError) { json = try JSONParser.parse(bytes) } catch {
            throw CommandFailure("\(Self.fileName) is not JSON: \(error)")
        }
        guard json["format"] == .integer(Self.currentFormat) else {
            throw CommandFailure(
                "\(Self.fileName) has format \(json.text("format")), this program reads \(Self.currentFormat): use "
                    + "the version that wrote it")
        }
        guard let cluster = json["cluster"]?.string, case .integer(let created)? = json["created"],
            case .bool(let hasSecrets)? = json["hasSecrets"], let nodes = json["nodes"]?.array,
            let files = json["files"]?.array
        else { throw CommandFailure("\(Self.fileName) is incomplete") }
        self.cluster = cluster
        self.created = created
        self.hasSecrets = hasSecrets
        self.nodes = []
        for node in nodes {
            guard case .integer(let id) = node, id > 0 else {
                throw CommandFailure("\(Self.fileName): a node's id is wrong")
            }
            self.nodes.append(UInt64(id))
        }
        self.files = []
        for file in files {
            guard let path = file["path"]?.string, case .integer(let size)? = file["size"],
                let sha256 = file["sha256"]?.string, Self.isPlain(path)
            else {
                throw CommandFailure("\(Self.fileName): a file's entry is wrong: \(file.plainText.shortened(to: 200))")
            }
            self.files.append(File(path: path, size: size, sha256: sha256))
        }
    }

    /// Whether a path stays below the folder that it is relative to.
    private static func isPlain(_ path: String) -> Bool {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        return !path.isEmpty && parts.allSatisfy { !$0.isEmpty && $0 != "." && $0 != ".." }
    }
}

enum FileCopy {
    private static let pieceBytes = 1 << 20

    struct Sum: Hashable, Sendable {
        var size: Int64
        var sha256: String
    }

    /// Copies a file; the copy is synced on return, its name is not.
    /// - Throws: `DiskError`, with `EEXIST` if the target is there.
    static func copy(
        from source: String, to target: String, mode: mode_t, onPiece: (Int) -> Void
    ) throws(DiskError) -> Sum {
        let output = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard output >= 0 else { throw DiskError(operation: "open", path: target, code: errno) }
        defer { close(output) }
        let sum = try read(source) { (piece) throws(DiskError) in
            let code = piece.withUnsafeBytes { writeAll($0, to: output) }
            guard code == 0 else { throw DiskError(operation: "write", path: target, code: code) }
            onPiece(piece.count)
        }
        guard fsync(output) == 0 else { throw DiskError(operation: "fsync", path: target, code: errno) }
        return sum
    }

    static func sum(of path: String, onPiece: (Int) -> Void) throws(DiskError) -> Sum {
        try read(path) { (piece) throws(DiskError) in onPiece(piece.count) }
    }

    private static func read(_ path: String, _ use: ([UInt8]) throws(DiskError) -> Void) throws(DiskError) -> Sum {
        let file = try DiskFile(path: path, flags: O_RDONLY)
        var hasher = SHA256()
        var position = 0
        while true {
            let piece = try file.bytes(at: position, count: pieceBytes)
            if piece.isEmpty { break }
            hasher.update(data: piece)
            position += piece.count
            try use(piece)
        }
        return Sum(size: Int64(position), sha256: Hex.encode(Array(hasher.finalize())))
    }
}

/// The files of a node's data folder that make up its state.
enum NodeFiles {
    /// Relative to the folder, sorted. Left out: the lock, snapshots on their way, and SQLite's shared memory, which
    /// SQLite makes again.
    static func list(in folder: String) throws(DiskError) -> [String] {
        var files = try listFolder(at: folder).filter {
            ["node.json", "peers.json"].contains($0) || isDatabase($0, prefix: "directory.sqlite")
        }
        files += try listFolder(at: folder + "/log").filter { $0 != "lock" }.map { "log/" + $0 }
        for name in try listFolder(at: folder + "/shards") where !name.hasSuffix("-shm") {
            files.append("shards/" + name)
        }
        // What is being received, or was found to be damaged, belongs to no record.
        let assets = Paths.exists(folder + "/assets") ? try listFolder(at: folder + "/assets") : []
        files += assets.filter { $0 == "key-check" }.map { "assets/" + $0 }
        for place in assets where place.utf8.count == 2 {
            files += try listFolder(at: "\(folder)/assets/\(place)").map { "assets/\(place)/\($0)" }
        }
        return files.sorted()
    }

    private static func isDatabase(_ name: String, prefix: String) -> Bool {
        name.hasPrefix(prefix) && !name.hasSuffix("-shm")
    }

    static func isEmpty(_ folder: String) throws(DiskError) -> Bool {
        do throws(DiskError) {
            return try listFolder(at: folder).isEmpty
        } catch {
            if error.code == ENOENT { return true }
            throw error
        }
    }

    /// Keeps a stopped node's folder from being used.
    static func lock(_ folder: String, node: UInt64) throws(CommandFailure) -> FolderLock {
        guard Paths.exists(folder + "/node.json") else {
            throw CommandFailure(
                "\(folder) has no data of node \(node): a backup needs the data of every node, on this machine")
        }
        do throws(DiskError) {
            if let lock = try FolderLock(path: folder + "/log/lock") { return lock }
        } catch {
            throw CommandFailure("the folder of node \(node) cannot be locked: \(error)")
        }
        throw CommandFailure(
            "node \(node) is running: stop it first; `zonekeeper cluster down` stops what `cluster up` started")
    }
}

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
