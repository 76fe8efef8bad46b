import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import Storage
import Synchronization
import Wire

// What a node does again and again so that its replicas, and what the directory says of it, are as they should be.
extension ClusterNode {
    /// One round. What fails is tried again in the next.
    func tend() async {
        guard let map = placement.map else { return }
        checkOwnPlace(in: map)
        guard ending == nil else { return }
        await giveUpDamaged()
        let plan = ReplicaPlan(
            map: map, node: settings.nodeID.rawValue, held: folder.held, used: folder.used)
        for place in plan.open {
            await attempt("opening a replica of group \(place.group)") { try await keeper.open(place) }
        }
        for place in plan.release { await release(place) }
        for place in plan.renew { await renew(place) }
        await tellAddress(map)
        await dropLeaving(map)
    }

    private func attempt(_ what: String, _ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            logger.error("\(what) failed: \(error)")
        }
    }

    /// A node that the directory does not count any more takes no further part.
    private func checkOwnPlace(in map: ClusterMap) {
        guard let own = map.node(settings.nodeID.rawValue) else {
            if map.removed.contains(settings.nodeID.rawValue) {
                end(.excluded(Formation.removal(of: settings.nodeID.rawValue)))
            }
            return
        }
        if own.incarnation != 0, own.incarnation != identity.incarnation, identity.hasTakenPart {
            beginAnew("the cluster goes by another data folder of node \(settings.nodeID): this one is an old one")
        }
    }

    /// Gives a replica up once its group's leader says that it is not in force.
    private func release(_ place: ReplicaPlan.Place) async {
        let replica = ReplicaID(.init(node: settings.nodeID.rawValue, generation: place.generation))
        guard let members = try? await router.members(of: place.group, by: deadline()), members.isWithout(replica)
        else { return }
        await attempt("giving up the replica of group \(place.group)") { try await keeper.release(place.group) }
    }

    private func renew(_ place: ReplicaPlan.Place) async {
        let replica = ClusterMap.Replica(node: settings.nodeID.rawValue, generation: place.generation)
        await change(.renewReplica(shard: place.group.shard, replica))
    }

    private func tellAddress(_ map: ClusterMap) async {
        guard let own = peerBook.correction(to: map), !membership.withLock(\.isAddressTold) else { return }
        if await change(.moveNode(own)) { membership.withLock { $0.isAddressTold = true } }
    }

    /// A replica's data were found to be damaged.
    func repair(_ group: GroupID, _ damage: ReplicaDamage) {
        guard map.replicas(ofShard: group.shard).count > 1 else {
            return logger.error(
                "group \(group): the data here are damaged, and there is no other copy: \(damage.error). Restore a backup"
            )
        }
        if damage.error is RaftLogError { return beginAnew("its raft log is damaged: \(damage.error)") }
        // Replicas are opened and given up by one task only.
        membership.withLock { $0.damaged[group] = damage }
    }

    private func giveUpDamaged() async {
        let damaged = membership.withLock(\.damaged)
        for group in damaged.keys.sorted() {
            guard let damage = damaged[group] else { continue }
            let own = try? await lane.eventLoop.submit { [lane] in lane.condition(of: group) }.get()
            let others = await conditions(of: group)
            let isLed = (try? await router.members(of: group, by: deadline(milliseconds: 1_000))) != nil
            switch damage.verdict(own: own ?? nil, others: others, isLed: isLed) {
            case .giveUp:
                await attempt("giving up the damaged replica of group \(group)") {
                    guard try await keeper.lose(group, because: damage.error) else { return }
                    membership.withLock { _ = $0.damaged.removeValue(forKey: group) }
                }
            case .recovered:
                membership.withLock { _ = $0.damaged.removeValue(forKey: group) }
                try? await lane.eventLoop.submit { [lane] in lane.recovered(group) }.get()
            case .keep:
                if damage.isTold { continue }
                membership.withLock { $0.damaged[group]?.isTold = true }
                logger.error(
                    "group \(group): the data of this node's replica are damaged (\(damage.error)), and no other node is known to have a better copy: nothing is given up, and the others are asked again and again"
                )
            }
        }
    }

    /// What the other nodes say of their replicas of a group.
    private func conditions(of group: GroupID) async -> [ReplicaCondition] {
        var found: [ReplicaCondition] = []
        for replica in map.replicas(ofShard: group.shard) where replica.node != settings.nodeID.rawValue {
            let node = NodeID(rawValue: replica.node)
            if let condition = await router.condition(of: group, on: node, by: deadline(milliseconds: 1_000)) {
                found.append(condition)
            }
        }
        return found
    }

    /// The directory's leader drops nodes that have nothing left.
    private func dropLeaving(_ map: ClusterMap) async {
        let leaving = map.nodes.filter(\.isLeaving).map { NodeID(rawValue: $0.id) }
        guard !leaving.isEmpty, leader(of: .directory) == settings.nodeID else { return }
        var left = leaving
        for group in map.groups where !left.isEmpty {
            guard let members = try? await router.members(of: group, by: deadline()), members.isCommitted else {
                return
            }
            // A node that leaves follows the directory to the end, to hear of it.
            let inForce =
                group == .directory
                ? members.configuration.voters + members.configuration.outgoing : members.configuration.all
            left.removeAll { node in inForce.contains { $0.node == node } }
        }
        for node in left { await change(.dropNode(node.rawValue)) }
    }

    /// Has the directory change the map on this node's own account.
    /// - Returns: whether it is done.
    @discardableResult
    private func change(_ change: MapChange) async -> Bool {
        do {
            let origin = AuditOrigin(
                actor: "node \(settings.nodeID)", requestID: "", address: "", time: platform.clock.wallMilliseconds)
            let entry = DirectoryEntry(.changeMap(change), origin: origin)
            let bytes = try await router.submit(.machine(entry.encoded()), to: .directory, by: deadline())
            guard case .refused(let error) = try DirectoryOutcome(decoding: bytes) else { return true }
            logger.error("\(change.auditSummary.action) was refused: \(error.reason)")
        } catch {
            logger.info("\(change.auditSummary.action) has to wait: \(error)")
        }
        return false
    }
}
