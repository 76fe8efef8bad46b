import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import Storage
import Synchronization
import Wire

/// Makes this node's replicas, and its row in the directory, what the map says.
final class ReplicaTending: Sendable {
    private struct State {
        /// Replicas whose data were found to be damaged, to be exchanged once a sound one is known.
        var damaged: [GroupID: ReplicaDamage]
        /// Whether the directory has this node's addresses.
        var isAddressTold = false
    }

    private let parts: NodeParts
    private let router: Router
    private let lane: Lane
    private let lease: DirectoryLease
    private let participation: Participation
    private let state: Mutex<State>
    private var folder: NodeFolder { parts.keeper.folder }

    /// - Parameter lease: of what this node knows of the directory.
    init(_ parts: NodeParts, router: Router, lease: DirectoryLease, participation: Participation) {
        self.parts = parts
        self.router = router
        lane = parts.lane
        self.lease = lease
        self.participation = participation
        state = Mutex(State(damaged: parts.damaged))
    }

    /// One round. What fails is tried again in the next.
    func reconcile() async {
        guard let map = parts.keeper.placement.map else { return }
        checkOwnPlace(in: map)
        guard participation.isAllowed else { return }
        await mendDamaged(map)
        let plan = ReplicaPlan(
            map: map, node: parts.settings.nodeID.rawValue, held: folder.held, used: folder.used)
        await openUnopened()
        for place in plan.open where participation.isAllowed { await open(place, parts.keeper.open) }
        for place in plan.release { await release(place) }
        for place in plan.renew { await renew(place) }
        await tellAddress(map)
        await dropLeaving(map)
    }

    /// Opens replicas that are in the folder's account but could not be opened before, though nothing is known to be
    /// damaged: the disk may have been full.
    private func openUnopened() async {
        let (held, damaged) = (folder.held, state.withLock(\.damaged))
        for group in held.keys.sorted() where parts.keeper.holdings[group] == nil && damaged[group] == nil {
            guard participation.isAllowed, let generation = held[group] else { continue }
            await open(ReplicaPlan.Place(group: group, generation: generation), parts.keeper.openAgain)
        }
    }

    private func open(_ place: ReplicaPlan.Place, _ body: (ReplicaPlan.Place) async throws -> Void) async {
        await attempt("opening a replica of group \(place.group)") { try await body(place) }
    }

    private func attempt(_ what: String, _ body: () async throws -> Void) async {
        do {
            try await body()
        } catch let old as OldCopy {
            participation.beginAnew(old.description)
        } catch {
            parts.logger.error("\(what) failed: \(error)")
            // Such a log takes nothing more: the node must not go on.
            if case .failed? = error as? RaftLogError {
                lane.eventLoop.execute { [lane] in lane.context.logFailed(error) }
            }
        }
    }

    /// A removed node stops taking part.
    private func checkOwnPlace(in map: ClusterMap) {
        guard let own = map.node(parts.settings.nodeID.rawValue) else {
            if map.removed.contains(parts.settings.nodeID.rawValue) {
                participation.end(.excluded(Bootstrap.removal(of: parts.settings.nodeID.rawValue)))
            }
            return
        }
        let identity = folder.identity
        if own.incarnation != 0, own.incarnation != identity.incarnation, identity.hasTakenPart {
            participation.beginAnew(
                "the cluster goes by another data folder of node \(parts.settings.nodeID): this one is an old one")
        }
    }

    /// Gives a replica up once its group's leader says that it is not in force.
    private func release(_ place: ReplicaPlan.Place) async {
        let replica = ReplicaID(.init(node: parts.settings.nodeID.rawValue, generation: place.generation))
        guard let members = try? await router.members(of: place.group, by: parts.deadline), members.isWithout(replica)
        else { return }
        let damage = state.withLock { $0.damaged[place.group] }
        await attempt("giving up the replica of group \(place.group)") {
            try await parts.keeper.release(place.group, damage: damage?.generation == place.generation ? damage : nil)
            // The next replica begins empty: nothing is to be judged by it.
            if place.group == .directory { lease.end(at: parts.platform.clock.now) }
        }
    }

    private func renew(_ place: ReplicaPlan.Place) async {
        let replica = ClusterMap.Replica(node: parts.settings.nodeID.rawValue, generation: place.generation)
        await change(.renewReplica(shard: place.group.shard, replica))
    }

    private func tellAddress(_ map: ClusterMap) async {
        guard let own = parts.peerBook.correction(to: map), !state.withLock(\.isAddressTold) else { return }
        if await change(.moveNode(own)) { state.withLock { $0.isAddressTold = true } }
    }

    /// A replica's data were found to be damaged.
    func repair(_ group: GroupID, _ damage: ReplicaDamage) {
        if damage.error is RaftLogError, parts.map.replicas(ofShard: group.shard).count > 1 {
            return participation.beginAnew("its raft log is damaged: \(damage.error)")
        }
        // Replicas are opened and given up by one task only.
        state.withLock { $0.damaged[group] = damage }
    }

    /// Has the directory give this node a later replica of each group whose replica here is damaged, where another one
    /// is sound. The old one is given up as every other that the map does not want.
    private func mendDamaged(_ map: ClusterMap) async {
        let held = folder.held
        let damaged = state.withLock { state in
            state.damaged = state.damaged.filter { held[$0.key] == $0.value.generation }
            return state.damaged.filter { group, damage in
                let wanted = map.replicas(ofShard: group.shard).first { $0.node == parts.settings.nodeID.rawValue }
                return wanted?.generation == damage.generation
            }
        }
        if damaged.isEmpty { return }
        let others = await conditions(of: damaged.keys.sorted(), by: map)
        for group in damaged.keys.sorted() where !Task.isCancelled {
            guard let damage = damaged[group] else { continue }
            let own = try? await lane.eventLoop.submit { [lane] in lane.health.condition(of: group) }.get()
            switch damage.verdict(own: own ?? nil, others: others[group] ?? []) {
            case .exchange:
                parts.logger.error(
                    "group \(group): the data of this node's replica are damaged (\(damage.error)); a good copy is fetched from the others"
                )
                await renew(ReplicaPlan.Place(group: group, generation: damage.generation))
            case .recovered:
                state.withLock { _ = $0.damaged.removeValue(forKey: group) }
                try? await lane.eventLoop.submit { [lane] in lane.health.recovered(group) }.get()
            case .keep: logOnce(damage, of: group, isOnly: map.replicas(ofShard: group.shard).count == 1)
            }
        }
    }

    private func logOnce(_ damage: ReplicaDamage, of group: GroupID, isOnly: Bool) {
        if damage.isTold { return }
        state.withLock { $0.damaged[group]?.isTold = true }
        let consequence =
            isOnly
            ? "there is no other copy: restore a backup"
            : "no other node is known to have a better copy: nothing is given up, and they are asked again and again"
        parts.logger.error("group \(group): the data here are damaged (\(damage.error)), and \(consequence)")
    }

    /// What the other nodes say of their replicas of the groups, each of the replica that the map has there.
    private func conditions(of groups: [GroupID], by map: ClusterMap) async -> [GroupID: [ReplicaCondition]] {
        let deadline = parts.platform.deadline(milliseconds: 1_000)
        return await withTaskGroup(of: (GroupID, ReplicaCondition?).self) { tasks in
            for group in groups {
                for replica in map.replicas(ofShard: group.shard) where replica.node != parts.settings.nodeID.rawValue {
                    tasks.addTask {
                        let node = NodeID(rawValue: replica.node)
                        let condition = await self.router.condition(of: group, on: node, by: deadline)
                        return (group, condition?.replica == ReplicaID(replica) ? condition : nil)
                    }
                }
            }
            var found: [GroupID: [ReplicaCondition]] = [:]
            for await (group, condition) in tasks {
                if let condition { found[group, default: []].append(condition) }
            }
            return found
        }
    }

    /// The directory's leader drops nodes that have nothing left.
    private func dropLeaving(_ map: ClusterMap) async {
        let leaving = map.nodes.filter(\.isLeaving).map { NodeID(rawValue: $0.id) }
        guard !leaving.isEmpty, lane.leaders.leads(.directory) else { return }
        var left = leaving
        for group in map.groups where !left.isEmpty {
            guard let members = try? await router.members(of: group, by: parts.deadline), members.isCommitted else {
                return
            }
            // A leaving node follows the directory to the end, to learn of its removal.
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
            let origin = AuditOrigin.node(parts.settings.nodeID, at: parts.platform.clock.wallMilliseconds)
            let entry = DirectoryEntry(.changeMap(change), origin: origin)
            let bytes = try await router.submit(.machine(entry.encoded()), to: .directory, by: parts.deadline)
            guard case .refused(let error) = try DirectoryOutcome(decoding: bytes) else { return true }
            parts.logger.error("\(change.auditSummary.action) was refused: \(error.reason)")
        } catch {
            parts.logger.info("\(change.auditSummary.action) has to wait: \(error)")
        }
        return false
    }
}
