import Admission
import Directory
import Glibc
import RecordModel
import Service

/// `/admin/1/cluster`: who is in the cluster, and where replicas are and shall be.
struct ClusterRoutes {
    let request: AdminRequest
    private var cluster: ClusterAdministration { request.administration.cluster }

    func show() async throws(RequestFailure) -> Reply { Self.reply(try await cluster.overview()) }

    /// What every node is at, whichever is asked.
    func health() async throws(RequestFailure) -> Reply {
        let nodes = await request.administration.requests.health()
        return Reply { writer in
            writer.list("nodes", nodes) { node, writer in
                writer.member("id", count: node.node.id)
                writer.member("clientURL", node.node.clientURL)
                writer.member("answers", node.health != nil)
                writer.optional("problem", node.problem)
                if let health = node.health { Self.write(health, to: &writer) }
            }
        }
    }

    private static func write(_ health: NodeHealth, to writer: inout JSONWriter) {
        writer.member("ready", health.obstacle == nil)
        writer.optional("obstacle", health.obstacle)
        writer.member("version", health.version)
        writer.member("uptimeSeconds", count: health.uptimeSeconds)
        writer.member("cpuSeconds", number: health.cpuSeconds)
        writer.member("processors", count: health.processors)
        writer.member("memoryBytes", count: health.memoryBytes)
        writer.member("diskBytes", count: health.diskBytes)
        writer.member("diskFreeBytes", count: health.diskFreeBytes)
        writer.member("diskShort", health.isDiskShort)
        writer.optional("clockErrorMilliseconds", integer: health.clockErrorMilliseconds)
        writer.optional("certificateExpires", integer: health.certificateExpires)
        writer.member("leads", count: health.leads)
        writer.member("replicas", count: health.replicas)
        writer.member("unappliedEntries", count: health.unappliedEntries)
    }

    func addNode() async throws(RequestFailure) -> Reply {
        try await change(.addNode(try Self.node(try request.json())))
    }

    func removeNode() async throws(RequestFailure) -> Reply {
        _ = try request.url.need("id")
        guard let id = UInt64(request.url["id"] ?? "") else { throw Self.noNode("id") }
        return try await change(.removeNode(id))
    }

    func replaceNode() async throws(RequestFailure) -> Reply {
        let json = try request.json()
        return try await change(.replaceNode(try Self.id("old", json), with: try Self.node(json)))
    }

    func setLeaders() async throws(RequestFailure) -> Reply { try await change(try leaderChange()) }

    private func change(_ change: MapChange) async throws(RequestFailure) -> Reply {
        Self.reply(try await cluster.change(change))
    }

    // MARK: What is asked for

    private static func node(_ json: JSONValue) throws(RequestFailure) -> ClusterMap.Node {
        guard case .integer(let port)? = json["peerPort"], let peerPort = Int(exactly: port) else {
            throw .badRequest("peerPort: a number from 1 to 65535 is expected")
        }
        return ClusterMap.Node(
            id: try id("id", json), peerHost: try json.text("peerHost"), peerPort: peerPort,
            clientURL: try clientURL(json))
    }

    private static let clientURLBytesMax = 300

    /// Where clients reach a node: other nodes and clients put paths behind it.
    private static func clientURL(_ json: JSONValue) throws(RequestFailure) -> String {
        let text = try json.text("clientURL")
        guard text.utf8.count <= clientURLBytesMax, let address = WebAddress(text), address.isSecure,
            address.rest.isEmpty
        else {
            throw .badRequest(
                "clientURL: https, a host and its port, such as https://db4.example.com:24000, are expected, without a "
                    + "user or a path, in at most \(clientURLBytesMax) characters")
        }
        return text
    }

    private static func id(_ key: String, _ json: JSONValue) throws(RequestFailure) -> UInt64 {
        guard case .integer(let number)? = json[key], let id = UInt64(exactly: number) else { throw noNode(key) }
        return id
    }

    private static func noNode(_ name: String) -> RequestFailure {
        RequestFailure(.badRequest, "\(name): the id of a node is expected")
    }

    private func leaderChange() throws(RequestFailure) -> MapChange {
        let json = try request.json()
        if json["from"] != nil {
            return .moveLeaders(from: try Self.id("from", json), to: json["to"] == nil ? nil : try Self.id("to", json))
        }
        let node = try Self.id("node", json)
        guard let shard = json["shard"] else { return .preferLeader(shard: nil, node: node) }
        guard case .integer(let number) = shard, let index = Int(exactly: number), index >= 0 else {
            throw .badRequest("shard: the number of a shard is expected; without one the directory is meant")
        }
        return .preferLeader(shard: index, node: node)
    }

    // MARK: What there is

    private static func reply(_ overview: ClusterAdministration.Overview) -> Reply {
        let map = overview.map
        return Reply { writer in
            writer.member("clusterID", map.clusterID)
            writer.member("epoch", count: map.epoch)
            writer.member("replicasPerShard", count: map.replicasPerShard)
            writer.member("settled", overview.isSettled)
            writer.member("groupsToSettle", count: overview.groupsToSettle)
            writer.member("leadersToMove", count: overview.leadersToMove)
            writer.list("nodes", map.nodes) { node, writer in
                writer.member("id", count: node.id)
                writer.member("peerAddress", "\(node.peerHost):\(node.peerPort)")
                writer.member("clientURL", node.clientURL)
                writer.member("leaving", node.isLeaving)
                writer.member("joined", node.incarnation != 0 || node.lastGeneration == 0)
                writer.member("replicas", count: map.shards.count { $0.contains { $0.node == node.id } })
                writer.member(
                    "leads", count: overview.groups.count { $0.shard != nil && $0.present?.leader == node.id })
            }
            writer.array("removed") { writer in for id in map.removed { writer.integer(Int64(id)) } }
            writer.list("groups", overview.groups) { write($0, to: &$1) }
        }
    }

    private static func write(_ group: ClusterAdministration.Group, to writer: inout JSONWriter) {
        writer.member("group", count: group.id)
        writer.optional("shard", integer: group.shard.map { Int64($0) })
        writer.member("preferredLeader", count: group.preferredLeader)
        write(group.desired, "desired", to: &writer)
        guard let present = group.present else { return writer.member("settled", false) }
        writer.member("leader", count: present.leader)
        write(present.members, "present", to: &writer)
        writer.member("settled", present.isSettled)
        if !present.waitsFor.isEmpty { writer.member("waitsFor", present.waitsFor) }
        writer.list("lag", present.lag) { entry, writer in
            writer.member("node", count: entry.node)
            writer.member("missingEntries", count: entry.missingEntries)
        }
    }

    private static func write(
        _ members: ClusterAdministration.Group.Members, _ name: String, to writer: inout JSONWriter
    ) {
        writer.object(name) { writer in
            for (key, replicas) in [
                ("voters", members.voters), ("outgoing", members.outgoing), ("learners", members.learners),
            ] where key != "outgoing" || !replicas.isEmpty {
                writer.list(key, replicas) { replica, writer in
                    writer.member("node", count: replica.node)
                    writer.member("generation", count: replica.generation)
                }
            }
        }
    }
}

/// What the node that is asked is at.
struct NodeRoutes {
    let request: AdminRequest
    private var cluster: ClusterAdministration { request.administration.cluster }

    func status() async throws(RequestFailure) -> Reply {
        let status = await cluster.status()
        return Reply { writer in
            writer.member("node", count: status.node)
            writer.member("pid", count: getpid())
            writer.member("clusterID", status.clusterID)
            writer.member("ready", status.obstacle == nil)
            writer.optional("obstacle", status.obstacle)
            writer.member("version", status.version)
            writer.member("featureLevelMax", count: status.featureLevelMax)
            writer.optional("clockErrorMilliseconds", integer: status.clockErrorMilliseconds)
            writer.member("diskShort", status.isDiskShort)
            writer.object("assets") { writer in
                writer.member("fetching", count: status.fetchingFiles)
                writer.member("missing", count: status.missingFiles)
                // A hash tells whether somebody has a file: that is not for those who look after one container.
                let isAdmin = request.administration.caller?.isClusterAdmin == true
                writer.list("missingFiles", isAdmin ? status.missingHashes.map { Hex.encode($0) } : [])
            }
            writer.list("replicas", status.replicas) { replica, writer in
                writer.member("group", count: replica.group)
                writer.member("role", replica.role)
                writer.member("term", count: replica.term)
                if let leader = replica.leader { writer.member("leader", count: leader) }
                writer.member("commitIndex", count: replica.commitIndex)
                writer.member("appliedIndex", count: replica.appliedIndex)
                writer.member("featureLevel", count: replica.featureLevel)
                if replica.waitingEffects > 0 { writer.member("waitingEffects", count: replica.waitingEffects) }
                if replica.waitingMatches > 0 { writer.member("waitingMatches", count: replica.waitingMatches) }
                writer.optional("failure", replica.failure)
            }
        }
    }

    /// Whether this node leads the shard of a container's public data.
    func leader() async throws(RequestFailure) -> Reply {
        let (isLeader, shard) = cluster.leads(try request.url.schemaKey())
        return Reply { writer in
            writer.member("leader", isLeader)
            writer.member("shard", count: shard)
        }
    }

    func metrics() async throws(RequestFailure) -> Reply {
        let text = await request.responder.context.metrics.text(of: request.service)
        return Reply(body: Array(text.utf8), contentType: "text/plain; version=0.0.4")
    }

    /// Has every replica of a group hash its state at the same place of the log.
    func hashState() async throws(RequestFailure) -> Reply {
        let hash = try await cluster.hashState(of: try group())
        return Reply { $0.member("hash", Hex.encode(hash)) }
    }

    /// The hashes that this node's replica recorded.
    func stateHashes() async throws(RequestFailure) -> Reply {
        let hashes = try await cluster.stateHashes(of: try group())
        return Reply { writer in
            writer.list("hashes", hashes) { entry, writer in
                writer.member("index", count: entry.index)
                writer.member("hash", Hex.encode(entry.hash))
            }
        }
    }

    private func group() throws(RequestFailure) -> UInt64 {
        _ = try request.url.need("group")
        return try request.url.number("group") ?? 0
    }
}
