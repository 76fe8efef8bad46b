import RecordModel

/// The nodes of a cluster and what it is made with, as its configuration file says.
///
/// ```json
/// { "name": "dev", "data": ".zonekeeper/dev", "shards": 16, "replicas": 3,
///   "nodes": [ {"id": 1, "host": "127.0.0.1", "clientPort": 24011, "peerPort": 24111} ] }
/// ```
/// `data` is relative to the file's folder; it, `shards` and `replicas` may be left out. Keys that are not known are
/// refused.
struct ClusterFile: Hashable, Sendable {
    struct Node: Hashable, Sendable {
        var id: UInt64
        /// Where it listens, and where the others and clients reach it.
        var host: String
        var clientPort: Int
        var peerPort: Int

        /// Whether a host stands for every address of a machine.
        static func isWildcard(_ host: String) -> Bool { ["0.0.0.0", "::", "*"].contains(host) }

        var clientURL: String { "https://\(authority(clientPort))" }
        var peerAddress: String { authority(peerPort) }

        /// An IPv6 address stands in brackets before a port.
        private func authority(_ port: Int) -> String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    /// The cluster's id: nodes of another are refused.
    var name: String
    /// The folder of everything that is kept, as written.
    var data: String
    /// Counts only when the cluster is made.
    var shards: Int
    /// Replicas of each shard; a cluster of fewer nodes has one on each. Counts only when the cluster is made.
    var replicas: Int
    /// In the file's order.
    var nodes: [Node]

    static let defaultShards = 16
    static let defaultReplicas = 3

    /// What a store of one node is without a configuration file.
    static func single(data: String, host: String? = nil, clientPort: Int? = nil, peerPort: Int? = nil) -> ClusterFile {
        let node = Node(
            id: 1, host: host ?? "127.0.0.1", clientPort: clientPort ?? 24_000, peerPort: peerPort ?? 24_100)
        return ClusterFile(name: "single", data: data, shards: defaultShards, replicas: 1, nodes: [node])
    }
}

/// - Parameter place: the key, such as `nodes[1].peerPort`, or the place in the text, such as `line 3, column 14`.
private func wrong(_ place: String, _ problem: String) -> CommandFailure { CommandFailure("\(place): \(problem)") }

extension ClusterFile {
    /// Reads and checks a file's text.
    /// - Throws: `CommandFailure` with the line and column of what is no JSON, or the key at fault.
    init(json bytes: [UInt8]) throws(CommandFailure) {
        let json = try Result { () throws(JSONError) in try JSONParser.parse(bytes) }
            .mapError {
                wrong(Self.place(of: $0.position, in: bytes), "expected \($0.expected), found \($0.found)")
            }.get()
        let file = try ConfigObject(json, path: "", keys: ["name", "data", "shards", "replicas", "nodes"])
        name = try file.string("name")
        data = try file.string("data", default: ".zonekeeper/\(name)")
        shards = try file.integer("shards", in: 1...1_024, default: Self.defaultShards)
        replicas = try file.integer("replicas", in: 1...7, default: Self.defaultReplicas)
        nodes = []
        for (index, member) in try file.array("nodes").enumerated() {
            nodes.append(try Node(member, path: "nodes[\(index)]"))
        }
        try check()
    }

    /// `line 3, column 14` of a byte, both counted from 1.
    static func place(of position: Int, in bytes: [UInt8]) -> String {
        let before = bytes.prefix(position)
        let line = before.count { $0 == UInt8(ascii: "\n") } + 1
        let column = position - (before.lastIndex(of: UInt8(ascii: "\n")) ?? -1)
        return "line \(line), column \(column)"
    }

    private func check() throws(CommandFailure) {
        let isPlain = name.utf8.allSatisfy { $0.isASCIILetterOrDigit || "-_.".utf8.contains($0) }
        guard isPlain, (1...64).contains(name.utf8.count) else {
            throw wrong("name", "1 to 64 letters, digits, dots, hyphens and underscores are expected")
        }
        guard !data.isEmpty else {
            throw wrong("data", "is empty; name a folder, such as \".zonekeeper/dev\"")
        }
        guard replicas % 2 == 1 else {
            throw wrong(
                "replicas",
                "\(replicas) is even: an odd number is expected, as one more replica would not survive one more loss")
        }
        guard (1...64).contains(nodes.count) else {
            throw wrong("nodes", "1 to 64 nodes are expected, there are \(nodes.count)")
        }
        try checkUnique()
    }

    private func checkUnique() throws(CommandFailure) {
        var ids: [UInt64: Int] = [:]
        var ports: [String: String] = [:]
        for (index, node) in nodes.enumerated() {
            if let other = ids.updateValue(index, forKey: node.id) {
                throw wrong("nodes[\(index)].id", "\(node.id) is the id of nodes[\(other)] too")
            }
            for (key, port) in [("clientPort", node.clientPort), ("peerPort", node.peerPort)] {
                let place = "nodes[\(index)].\(key)"
                if let other = ports.updateValue(place, forKey: "\(node.host)/\(port)") {
                    throw wrong(place, "\(port) on \(node.host) is \(other) too")
                }
            }
        }
    }
}

extension ClusterFile.Node {
    fileprivate init(_ json: JSONValue, path: String) throws(CommandFailure) {
        let node = try ConfigObject(json, path: path, keys: ["id", "host", "clientPort", "peerPort"])
        id = UInt64(try node.integer("id", in: 1...65_535))
        host = try node.string("host")
        guard !host.isEmpty, !host.contains(where: { $0.isWhitespace || "/[]@".contains($0) }) else {
            throw wrong("\(path).host", "a DNS name or an IP address is expected, without a port")
        }
        guard !Self.isWildcard(host) else {
            throw wrong(
                "\(path).host", "'\(host)' is where a node listens (`serve --host`), not where the others reach it")
        }
        clientPort = try node.integer("clientPort", in: 1...65_535)
        peerPort = try node.integer("peerPort", in: 1...65_535)
    }
}

/// A JSON object of a configuration file, with the keys that it may have.
private struct ConfigObject {
    private let json: JSONValue
    private let path: String

    init(_ json: JSONValue, path: String, keys: [String]) throws(CommandFailure) {
        guard case .object(let members) = json else {
            throw wrong(path.isEmpty ? "the file" : path, "an object is expected, not \(json.kind)")
        }
        self.json = json
        self.path = path
        for member in members where !keys.contains(member.key) {
            throw wrong(place(member.key), "is not a key that is known here; there are \(keys.joined(separator: ", "))")
        }
    }

    private func place(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

    func string(_ key: String, default fallback: String? = nil) throws(CommandFailure) -> String {
        guard let value = json[key] else {
            if let fallback { return fallback }
            throw wrong(place(key), "is missing")
        }
        guard let text = value.string else {
            throw wrong(place(key), "a string is expected, not \(value.kind)")
        }
        return text
    }

    func integer(
        _ key: String, in range: ClosedRange<Int>, default fallback: Int? = nil
    ) throws(CommandFailure) -> Int {
        guard let value = json[key] else {
            if let fallback { return fallback }
            throw wrong(place(key), "is missing")
        }
        guard case .integer(let number) = value, let number = Int(exactly: number), range.contains(number) else {
            let found = if case .integer(let number) = value { "\(number)" } else { value.kind }
            throw wrong(
                place(key), "a whole number of \(range.lowerBound) to \(range.upperBound) is expected, not \(found)")
        }
        return number
    }

    func array(_ key: String) throws(CommandFailure) -> [JSONValue] {
        guard let value = json[key] else { throw wrong(place(key), "is missing") }
        guard let members = value.array else {
            throw wrong(place(key), "an array is expected, not \(value.kind)")
        }
        return members
    }
}
