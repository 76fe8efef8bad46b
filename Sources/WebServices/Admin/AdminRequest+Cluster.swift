import Cluster
import Directory
import PeerTransport
import RaftCore
import RecordModel
import Service

// Who is in the cluster, and where replicas are and shall be.
extension AdminRequest {
    func addNode() async throws(RequestFailure) -> Reply {
        try await change(.changeMap(.addNode(try node())))
        return try await cluster()
    }

    func removeNode() async throws(RequestFailure) -> Reply {
        try await change(.changeMap(.removeNode(try nodeParameter("id"))))
        return try await cluster()
    }

    func replaceNode() async throws(RequestFailure) -> Reply {
        try await change(.changeMap(.replaceNode(try nodeNumber("old"), with: try node())))
        return try await cluster()
    }

    func setLeaders() async throws(RequestFailure) -> Reply {
        try await change(.changeMap(try leaderChange()))
        return try await cluster()
    }

    /// The cluster's map, and how far the nodes are with it; also after a change of it.
    func cluster() async throws(RequestFailure) -> Reply {
        do throws(RequestFailure) {
            guard let map = try await directory().map else {
                throw RequestFailure(
                    ServiceError(
                        .tryAgainLater, "the cluster is being made; try again in a moment", retryAfterSeconds: 1))
            }
            return Self.overview(of: map, await context.service.node.members(by: deadline))
        } catch {
            // A change is made: that this node cannot find out now how far it is must not hide it. Nothing counts as
            // settled then.
            guard method != "GET" else { throw error }
            return Self.overview(of: context.service.node.map, [:])
        }
    }

    // MARK: What is asked for

    private func node() throws(RequestFailure) -> ClusterMap.Node {
        guard case .integer(let port)? = try json["peerPort"], let peerPort = Int(exactly: port) else {
            throw RequestFailure(.badRequest, "peerPort: a number from 1 to 65535 is expected")
        }
        return ClusterMap.Node(
            id: try nodeNumber("id"), peerHost: try text("peerHost"), peerPort: peerPort,
            clientURL: try text("clientURL"))
    }

    private func nodeNumber(_ key: String) throws(RequestFailure) -> UInt64 {
        guard case .integer(let number)? = try json[key], let id = UInt64(exactly: number) else {
            throw RequestFailure(.badRequest, "\(key): the id of a node is expected")
        }
        return id
    }

    private func nodeParameter(_ name: String) throws(RequestFailure) -> UInt64 {
        guard let id = UInt64(try parameter(name)) else {
            throw RequestFailure(.badRequest, "\(name): the id of a node is expected")
        }
        return id
    }

    private func leaderChange() throws(RequestFailure) -> MapChange {
        if try json["from"] != nil {
            return .moveLeaders(from: try nodeNumber("from"), to: try json["to"] == nil ? nil : nodeNumber("to"))
        }
        let node = try nodeNumber("node")
        guard let shard = try json["shard"] else { return .preferLeader(shard: nil, node: node) }
        guard case .integer(let number) = shard, let index = Int(exactly: number), index >= 0 else {
            throw RequestFailure(
                .badRequest, "shard: the number of a shard is expected; without one the directory is meant")
        }
        return .preferLeader(shard: index, node: node)
    }

    // MARK: What there is

    /// - Parameter members: what the groups' leaders say; a group without one counts as not settled.
    private static func overview(of map: ClusterMap, _ members: [GroupID: GroupMembers]) -> Reply {
        let open = map.groups.filter { group in
            members[group]?.isSettled(by: map.configuration(of: group), epoch: map.epoch) != true
        }
        let misled = map.groups.filter { members[$0]?.leader.node != map.preferredLeader(of: $0) }
        return Reply { writer in
            writer.member("clusterID", map.clusterID)
            writer.member("epoch", integer: Int64(map.epoch))
            writer.member("replicasPerShard", integer: Int64(map.replicasPerShard))
            // A node that leaves is there until the directory's leader has dropped it.
            writer.member("settled", open.isEmpty && !map.nodes.contains(where: \.isLeaving))
            writer.member("groupsToSettle", integer: Int64(open.count))
            writer.member("leadersToMove", integer: Int64(misled.count))
            writer.key("nodes")
            writer.array { writer in for node in map.nodes { write(node, in: map, members, to: &writer) } }
            writer.key("removed")
            writer.array { writer in for id in map.removed { writer.integer(Int64(id)) } }
            writer.key("groups")
            writer.array { writer in
                for group in map.groups { write(group, in: map, members[group], to: &writer) }
            }
        }
    }

    private static func write(
        _ node: ClusterMap.Node, in map: ClusterMap, _ members: [GroupID: GroupMembers], to writer: inout JSONWriter
    ) {
        let id = NodeID(rawValue: node.id)
        writer.object { writer in
            writer.member("id", integer: Int64(node.id))
            writer.member("peerAddress", "\(node.peerHost):\(node.peerPort)")
            writer.member("clientURL", node.clientURL)
            writer.member("leaving", node.isLeaving)
            writer.member("joined", node.incarnation != 0 || node.lastGeneration == 0)
            writer.member("replicas", integer: Int64(map.shards.count { $0.contains { $0.node == node.id } }))
            writer.member(
                "leads", integer: Int64(map.groups.dropFirst().count { members[$0]?.leader.node == id }))
        }
    }

    private static func write(
        _ group: GroupID, in map: ClusterMap, _ members: GroupMembers?, to writer: inout JSONWriter
    ) {
        let desired = map.configuration(of: group)
        writer.object { writer in
            writer.member("group", integer: Int64(group.rawValue))
            if let shard = group.shard { writer.member("shard", integer: Int64(shard)) }
            writer.member("preferredLeader", integer: Int64(map.preferredLeader(of: group).rawValue))
            writer.key("desired")
            write(desired, to: &writer)
            guard let members else { return writer.member("settled", false) }
            writer.member("leader", integer: Int64(members.leader.node.rawValue))
            writer.key("present")
            write(members.configuration, to: &writer)
            writer.member("settled", members.isSettled(by: desired, epoch: map.epoch))
            if !members.waitsFor.isEmpty { writer.member("waitsFor", members.waitsFor) }
            writer.key("lag")
            writer.array { writer in
                for entry in members.lag where entry.missingEntries > 0 {
                    writer.object { writer in
                        writer.member("node", integer: Int64(entry.replica.node.rawValue))
                        writer.member("missingEntries", integer: Int64(clamping: entry.missingEntries))
                    }
                }
            }
        }
    }

    private static func write(_ configuration: Configuration, to writer: inout JSONWriter) {
        writer.object { writer in
            for (key, replicas) in [
                ("voters", configuration.voters), ("outgoing", configuration.outgoing),
                ("learners", configuration.learners),
            ] where key != "outgoing" || !replicas.isEmpty {
                writer.key(key)
                writer.array { writer in
                    for replica in replicas {
                        writer.object { writer in
                            writer.member("node", integer: Int64(replica.node.rawValue))
                            writer.member("generation", integer: Int64(replica.generation))
                        }
                    }
                }
            }
        }
    }
}
