import RecordModel
import ServiceClient

/// What a backup holds: the file `manifest.json` in its folder, written last.
struct BackupManifest: Hashable, Sendable {
    /// One file of the backup.
    struct File: Hashable, Sendable {
        /// Relative to the backup's folder, such as `node-1/log/00000001.log`.
        var path: String
        var size: Int64
        /// SHA-256 as hexadecimal digits.
        var sha256: String
    }

    static let currentFormat: Int64 = 1
    static let fileName = "manifest.json"

    /// The cluster's name.
    var cluster: String
    /// Ascending.
    var nodes: [UInt64]
    /// Milliseconds since 1970.
    var created: Int64
    /// Whether certificates, their keys and the administrator's token are among the files.
    var hasSecrets: Bool
    /// Sorted by path.
    var files: [File]

    /// The file's text, one line a backed-up file.
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

    /// - Throws: `CommandFailure` if the text is no manifest, or one of another format.
    init(parsing bytes: [UInt8]) throws(CommandFailure) {
        let json: JSONValue
        do throws(JSONError) { json = try JSONParser.parse(bytes) } catch {
            throw CommandFailure("\(Self.fileName) is not JSON: \(error)")
        }
        guard json["format"] == .integer(Self.currentFormat) else {
            throw CommandFailure(
                "\(Self.fileName) has format \(json.text("format")), this program reads \(Self.currentFormat): use the version "
                    + "that wrote it")
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
