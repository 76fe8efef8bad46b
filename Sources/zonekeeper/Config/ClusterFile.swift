import RecordModel

/// The nodes of a cluster and what it is made with, as its configuration file says.
///
/// ```json
/// { "name": "dev", "data": ".zonekeeper/dev", "shards": 16, "replicas": 3,
///   "nodes": [ {"id": 1, "host": "127.0.0.1", "clientPort": 24011, "peerPort": 24111} ] }
/// ```
/// `data` is relative to the file's folder; it, `shards` and `replicas` may be left out. Keys that are not known are refused.
struct ClusterFile: Hashable, Sendable {
    /// One node: where it is and its two ports.
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
}

/// What is wrong with a configuration file, and where.
struct ClusterFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The key, such as `nodes[1].peerPort`, or the place in the text, such as `line 3, column 14`.
    var place: String
    var problem: String

    init(_ place: String, _ problem: String) {
        self.place = place
        self.problem = problem
    }

    var description: String { "\(place): \(problem)" }
}
