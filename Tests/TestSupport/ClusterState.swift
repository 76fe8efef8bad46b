import RecordModel

// What a cluster says of itself, as tests wait for it.
extension TestClient {
    /// The line of a metric without labels, from a node counted from 0; nil where there is none.
    package func metric(_ name: String, node: Int) async throws -> String? {
        let metrics = try await exchange(
            "GET", "/admin/1/metrics", body: nil, node: node,
            headers: [("Authorization", "Bearer \(ProcessCluster.administratorToken)")])
        let lines = String(decoding: metrics.body, as: UTF8.self).split(separator: "\n")
        return lines.first { $0.hasPrefix("\(name) ") }.map { String($0.dropFirst(name.count + 1)) }
    }

    /// Waits until one of the nodes answers, whichever it is.
    package func awaitAnyLive() async throws {
        var node = 0
        try await awaitTrue("one node is alive") {
            node = (node + 1) % nodeCount
            return try await get("/health/live", node: node).status == 200
        }
    }

    /// Waits until a node says that it leads a group.
    /// - Returns: the node's id.
    package func awaitLeader(of group: Int64) async throws -> Int {
        var node = 0
        try await awaitState("group \(group) has a leader") {
            node = (node + 1) % nodeCount
            return try await admin("GET", "status", node: node)["replicas"]?.array ?? []
        } until: { replicas in
            replicas.contains { $0["group"] == .integer(group) && $0["role"]?.string == "leader" }
        }
        return node + 1
    }

    /// Waits until every replica of every group has had the same state at the same place of its log.
    /// - Parameter nodes: the ids of the nodes with replicas.
    package func awaitEqualStates(of nodes: [Int]) async throws {
        for group in 0...8 {
            let made = try await admin("POST", "state-hash?group=\(group)")
            let hash = try require(made["hash"]?.string, "\(made)")
            for node in nodes {
                try await awaitState("node \(node) has the state \(hash) of group \(group)") {
                    try await admin("GET", "state-hash?group=\(group)", node: node - 1)
                } until: { own in
                    own["hashes"]?.array?.contains { $0["hash"]?.string == hash } == true
                }
            }
        }
    }
}
