import DequeModule
import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore
import Storage
import Wire

// Members of groups, as the map has them. Everything here is called on the lane's event loop.
extension Lane {
    /// How often the groups that this node leads are held against the map.
    private static let reconcileIntervalMilliseconds: UInt64 = 200

    /// Takes a new map.
    func take(_ map: ClusterMap) {
        eventLoop.preconditionInEventLoop()
        // Two maps may come from two threads.
        guard !isStopping, map.epoch >= self.map?.epoch ?? 0 else { return }
        self.map = map
        clockWatch.keep(only: map.nodes.map { NodeID(rawValue: $0.id) })
        for group in map.groups {
            preferredLeaders[group] = map.preferredLeader(of: group)
            if preferredLeaders[group] == settings.nodeID { replicas[group]?.leadershipSender = nil }
        }
        dialPeers()
        // Whose folder counts may have changed.
        for objection in trust.judgeAgain(rejectedOnly: false, by: map) { logger.warning("\(objection)") }
        nextReconcile = .zero
    }

    /// Looks for the cluster at the nodes of a peer's map, too, until one that is as new is taken.
    func hear(_ map: ClusterMap) {
        eventLoop.preconditionInEventLoop()
        guard !isStopping else { return }
        heard = map
        dialPeers()
    }

    private func dialPeers() {
        transport?.update(peers: peerBook?.addresses(by: map, heard: heard) ?? [])
    }

    /// Moves the members of the groups that this node leads one step towards the map, one change of a group at a time.
    /// An outdated map changes nothing: it could ask for replicas that were deleted since.
    func reconcile(now: MonotonicTime) {
        guard nextReconcile <= now else { return }
        nextReconcile = now.adding(milliseconds: Self.reconcileIntervalMilliseconds)
        guard let map, !submissions.isStalled, isDirectoryCurrent(now) else { return }
        for group in groups {
            guard let replica = replicas[group], replica.raft.role == .leader, replica.transferUntil <= now else {
                continue
            }
            let desired = map.configuration(of: group)
            guard replica.raft.configuration != desired, !desired.voters.isEmpty else {
                replica.waitsFor = ""
                continue
            }
            reconcile(replica, of: group, to: desired, now: now)
        }
    }

    private func reconcile(_ replica: Replica, of group: GroupID, to desired: Configuration, now: MonotonicTime) {
        let status = replica.raft.status
        let step = Reconciliation.next(
            from: status.configuration, isCommitted: status.isConfigurationCommitted,
            caughtUp: status.followers.filter(\.isCaughtUp).map(\.id), to: desired)
        switch step {
        case .settled: replica.waitsFor = ""
        case .waiting(let reason): replica.waitsFor = reason
        case .change(let target):
            do throws(ConfigurationChangeError) {
                let effects = try replica.raft.propose(
                    configuration: target, replacing: status.configuration, now: now
                ).effects
                logger.notice("group \(group): members become \(Self.text(target))")
                replica.waitsFor = "a change is under way"
                perform(effects, of: replica)
            } catch {
                if replica.waitsFor != error.description {
                    logger.info("group \(group): members stay as they are for now: \(error)")
                }
                replica.waitsFor = error.description
            }
        }
    }

    private static func text(_ configuration: Configuration) -> String {
        func list(_ replicas: [ReplicaID]) -> String {
            replicas.map { $0.generation == 0 ? "\($0.node)" : "\($0.node).\($0.generation)" }.joined(separator: ", ")
        }
        let learners = configuration.learners.isEmpty ? "" : ", learning: \(list(configuration.learners))"
        return "nodes \(list(configuration.voters))\(learners)"
    }

    /// Tells the members of a group that this node leads, once it is certain that it still does.
    func members(of group: GroupID, completion: @escaping Completion) {
        eventLoop.preconditionInEventLoop()
        guard !isStopping, replicas[group] != nil else { return completion(.failure(.notLeader(hint: nil))) }
        let run: @Sendable () -> Void = { [self] in
            guard let replica = replicas[group] else { return completion(.failure(.notLeader(hint: nil))) }
            let status = replica.raft.status
            let lag = status.followers.map {
                GroupMembers.Lag(
                    replica: $0.id, missingEntries: status.lastLog.index.rawValue - $0.match.rawValue)
            }
            let members = GroupMembers(
                leader: status.id, configuration: status.configuration, isCommitted: status.isConfigurationCommitted,
                lag: lag, epoch: map?.epoch ?? 0, waitsFor: replica.waitsFor)
            completion(.success(members.encoded()))
        }
        replicas[group]?.reads.append(Replica.Read(run: run, fail: { completion(.failure($0)) }))
        scheduleFlush(of: group)
    }

    /// Removes a replica: it no longer sends or receives, and its callers get an error.
    /// - Returns: the replica; nil if there is none, or its writes may still be reordered in the log. Then try again
    ///   later.
    func remove(_ group: GroupID) -> Replica? {
        eventLoop.preconditionInEventLoop()
        finishTurn()
        guard !submissions.isStalled, let replica = replicas.removeValue(forKey: group) else { return nil }
        groups = replicas.keys.sorted()
        leaders.roleChanged(isLeading: false, leader: nil, of: group)
        replica.fail(.outcomeUnknown("the replica on node \(settings.nodeID) is given up"))
        replica.receivedSnapshot?.reply(.failed("the replica is given up"))
        replica.receivedSnapshot = nil
        return replica
    }

    /// A replica's data are damaged: told once for each, and again where it is worse than it was.
    func damaged(_ group: GroupID, _ error: any Error, _ kind: ReplicaDamage.Kind) {
        eventLoop.preconditionInEventLoop()
        guard let replica = replicas[group],
            replica.damage.map({ $0.kind.rawValue < kind.rawValue }) ?? true
        else { return }
        let damage = ReplicaDamage(error, kind, generation: replica.raft.id.generation)
        replica.damage = damage
        // Another one shall lead.
        nextRebalance = .zero
        onDamage(group, damage)
    }

    /// A replica that could not apply an entry could after all.
    func recovered(_ group: GroupID) {
        eventLoop.preconditionInEventLoop()
        if replicas[group]?.damage?.kind == .applying { replicas[group]?.damage = nil }
    }

    /// The condition of this node's replica; nil without one, or while the node is not accepted.
    func condition(of group: GroupID) -> ReplicaCondition? {
        eventLoop.preconditionInEventLoop()
        guard !trust.isHeld, let replica = replicas[group] else { return nil }
        return ReplicaCondition(
            replica.raft.id, applied: replica.applied, applies: replica.applyFailure == nil,
            isDamaged: replica.damage != nil, isVoter: replica.raft.configuration.voters.contains(replica.raft.id))
    }
}

extension Lane {
    /// The node must not go on.
    func end(_ reason: String) {
        eventLoop.preconditionInEventLoop()
        guard !isStopping else { return }
        stop()
        onFatalError(reason)
    }

    func logFailed(_ error: any Error) { end("the raft log failed: \(error)") }

    func syncFailed(_ path: String) {
        end("syncing \(path) to its disk failed: look at the disk, then start the node again")
    }
}

extension Lane {
    /// What a node's replicas have acknowledged to this one, where it leads, or have said is committed, where they led.
    func acknowledged(by node: NodeID) -> [Standing.Acknowledged] {
        eventLoop.preconditionInEventLoop()
        return groups.flatMap { group -> [Standing.Acknowledged] in
            guard let raft = replicas[group]?.raft else { return [] }
            guard raft.role == .leader else {
                guard let said = raft.leaderCommit, said.leader.node == node else { return [] }
                return [
                    Standing.Acknowledged(group: group, replica: said.leader, term: said.term, index: said.index)
                ]
            }
            return raft.status.followers.filter { $0.id.node == node }.map { follower in
                Standing.Acknowledged(group: group, replica: follower.id, term: raft.term, index: follower.match)
            }
        }
    }

    /// What this node has acknowledged and does not have.
    func lost(_ acknowledged: [Standing.Acknowledged]) -> Standing.Acknowledged? {
        eventLoop.preconditionInEventLoop()
        return acknowledged.first { entry in
            guard let raft = replicas[entry.group]?.raft else { return false }
            return entry.isLost(id: raft.id, term: raft.term, durable: raft.status.durableIndex)
        }
    }
}
