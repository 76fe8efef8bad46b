import Cluster
import Directory
import Glibc
import PeerTransport
import RaftCore
import RecordModel
import Service

extension AdminRequest {
    /// What this node is at.
    func status() async throws(RequestFailure) -> Reply {
        let replicas = await context.service.node.status()
        let ownID = context.service.node.settings.nodeID
        let level = context.service.node.settings.featureLevels.upperBound
        let assets = context.service.node.assetCounts
        return Reply { writer in
            writer.member("node", integer: Int64(ownID.rawValue))
            writer.member("pid", integer: Int64(getpid()))
            writer.member("clusterID", context.service.node.settings.clusterID)
            let obstacle = context.service.node.obstacle(replicas)
            writer.member("ready", obstacle == nil)
            if let obstacle { writer.member("obstacle", obstacle) }
            writer.member("version", context.service.node.settings.version)
            writer.member("featureLevelMax", integer: Int64(clamping: level.rawValue))
            if let ahead = context.service.node.clockErrorMilliseconds {
                writer.member("clockErrorMilliseconds", integer: ahead)
            }
            writer.key("assets")
            writer.object { writer in
                writer.member("fetching", integer: Int64(clamping: assets.fetching))
                writer.member("missing", integer: Int64(clamping: assets.missing))
                writer.key("missingFiles")
                writer.array { writer in for file in assets.missingFiles { writer.string(Hex.encode(file.sha256)) } }
            }
            writer.key("replicas")
            writer.array { writer in
                for replica in replicas { writer.object { write(replica, to: &$0) } }
            }
        }
    }

    private func write(_ replica: ReplicaStatus, to writer: inout JSONWriter) {
        writer.member("group", integer: Int64(replica.group.rawValue))
        writer.member("role", "\(replica.role)")
        writer.member("term", integer: Int64(replica.term.rawValue))
        if let leader = replica.leader { writer.member("leader", integer: Int64(leader.node.rawValue)) }
        writer.member("commitIndex", integer: Int64(replica.commitIndex.rawValue))
        writer.member("appliedIndex", integer: Int64(replica.appliedIndex.rawValue))
        writer.member("featureLevel", integer: Int64(clamping: replica.level.rawValue))
        if replica.waitingEffects > 0 { writer.member("waitingEffects", integer: Int64(replica.waitingEffects)) }
        if let failure = replica.applyFailure { writer.member("failure", failure) }
    }

    /// Whether this node leads the shard of a container's public data.
    func leader() async throws(RequestFailure) -> Reply {
        let key = try schemaKey()
        let database = DatabaseKey(
            container: key.container, environment: key.environment, scope: .public, owner: DatabaseKey.publicOwner)
        let group = context.service.node.map.group(of: ZoneKey(database: database, name: ZoneKey.defaultZoneName))
        let leader = context.service.node.leader(of: group)
        return Reply { writer in
            writer.member("leader", leader == context.service.node.settings.nodeID)
            writer.member("shard", integer: Int64(group.shard ?? -1))
        }
    }

    /// Has every replica of a group hash its state at the same place of the log.
    func hashState() async throws(RequestFailure) -> Reply {
        let group = try group()
        do throws(ClusterError) {
            let hash = try await context.service.node.router.submit(.hashState, to: group, by: deadline)
            return Reply { $0.member("hash", Hex.encode(hash)) }
        } catch {
            throw RequestFailure(error)
        }
    }

    /// The hashes that this node's replica recorded.
    func stateHashes() async throws(RequestFailure) -> Reply {
        let group = try group()
        let hashes: [(index: LogIndex, hash: [UInt8])]
        do {
            hashes = try await context.service.node.stateHashes(of: group)
        } catch {
            throw RequestFailure(.internalError, "reading failed: \(error)")
        }
        return Reply { writer in
            writer.key("hashes")
            writer.array { writer in
                for entry in hashes {
                    writer.object { writer in
                        writer.member("index", integer: Int64(entry.index.rawValue))
                        writer.member("hash", Hex.encode(entry.hash))
                    }
                }
            }
        }
    }

    private func group() throws(RequestFailure) -> GroupID {
        guard let number = UInt64(try parameter("group")), context.service.node.map.groups.contains(GroupID(number))
        else {
            throw RequestFailure(.badRequest, "group: 0 to \(context.service.node.map.groups.count - 1) is expected")
        }
        return GroupID(number)
    }
}
