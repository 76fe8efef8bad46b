import RecordModel

/// What the administration says of the cluster's nodes and groups, in words.
struct ClusterOverview: Hashable, Sendable {
    /// A shard or the directory.
    struct Group: Hashable, Sendable {
        var name: String
        var isSettled: Bool
        var leader: Int64?
        var preferredLeader: Int64?
        /// What holds it up; empty where nothing is known to.
        var waitsFor: String
        /// Entries that the member which is furthest behind lacks, and its node.
        var lag: (node: Int64, entries: Int64)?

        static func == (left: Self, right: Self) -> Bool {
            left.name == right.name && left.isSettled == right.isSettled && left.leader == right.leader
                && left.preferredLeader == right.preferredLeader && left.waitsFor == right.waitsFor
                && left.lag?.node == right.lag?.node && left.lag?.entries == right.lag?.entries
        }

        func hash(into hasher: inout Hasher) { hasher.combine(name) }
    }

    struct Node: Hashable, Sendable {
        var id: Int64
        var clientURL: String
        var peerAddress: String
        var isLeaving: Bool
        var hasJoined: Bool
        var replicas: Int64
        var leads: Int64
    }

    var epoch: Int64
    var isSettled: Bool
    var nodes: [Node]
    var removed: [Int64]
    var groups: [Group]

    /// - Throws: `CommandFailure` if the answer is not one about a cluster.
    init(_ json: JSONValue) throws(CommandFailure) {
        guard case .integer(let epoch)? = json["epoch"], case .bool(let isSettled)? = json["settled"],
            let nodes = json["nodes"]?.array, let groups = json["groups"]?.array
        else { throw CommandFailure("the answer says nothing of a cluster. Is this a Zonekeeper node?") }
        self.epoch = epoch
        self.isSettled = isSettled
        self.nodes = nodes.map { node in
            Node(
                id: Self.number(node["id"]) ?? 0, clientURL: node.text("clientURL"),
                peerAddress: node.text("peerAddress"), isLeaving: node["leaving"] == .bool(true),
                hasJoined: node["joined"] == .bool(true), replicas: Self.number(node["replicas"]) ?? 0,
                leads: Self.number(node["leads"]) ?? 0)
        }
        removed = (json["removed"]?.array ?? []).compactMap { Self.number($0) }
        self.groups = groups.map { group in
            let lags = (group["lag"]?.array ?? []).compactMap { entry -> (node: Int64, entries: Int64)? in
                guard let node = Self.number(entry["node"]), let entries = Self.number(entry["missingEntries"]) else {
                    return nil
                }
                return (node, entries)
            }
            return Group(
                name: Self.number(group["shard"]).map { "shard \($0)" } ?? "directory",
                isSettled: group["settled"] == .bool(true), leader: Self.number(group["leader"]),
                preferredLeader: Self.number(group["preferredLeader"]), waitsFor: group.text("waitsFor"),
                lag: lags.max { $0.entries < $1.entries })
        }
    }

    private static func number(_ json: JSONValue?) -> Int64? {
        if case .integer(let number)? = json { number } else { nil }
    }

    /// How far the replicas have moved.
    var progress: String {
        let settled = groups.count { $0.isSettled }
        var parts = ["\(settled) of \(groups.count) groups have the members they shall have"]
        if let first = groups.first(where: { !$0.isSettled }) { parts.append(first.state) }
        let absent = nodes.filter { !$0.hasJoined }.map { "\($0.id)" }
        if !absent.isEmpty { parts.append("node \(absent.joined(separator: ", ")) has not come yet") }
        if settled == groups.count, let leaving = nodes.first(where: \.isLeaving) {
            parts.append("node \(leaving.id) is about to go")
        }
        return parts.joined(separator: "; ")
    }

    /// How far leadership has moved.
    var leaderProgress: String {
        let right = groups.count { $0.leader == $0.preferredLeader }
        let first = groups.first { $0.leader != $0.preferredLeader }.map { group in
            "; \(group.name) is still led by \(group.leader.map { "node \($0)" } ?? "nobody")"
        }
        return "\(right) of \(groups.count) groups are led by the node that shall lead them" + (first ?? "")
    }

    var areLeadersSettled: Bool { groups.allSatisfy { $0.leader == $0.preferredLeader } }
}

extension ClusterOverview.Group {
    /// What an unsettled group is at.
    var state: String {
        if leader == nil { return "\(name) has no leader" }
        let behind = lag.map { ", node \($0.node) lacks \($0.entries) entries" } ?? ""
        return "\(name): \(waitsFor.isEmpty ? "a change is under way" : waitsFor)\(behind)"
    }
}
