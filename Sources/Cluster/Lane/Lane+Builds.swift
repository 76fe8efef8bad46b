import DequeModule
import Directory
import Logging
import NIOCore
package import PeerTransport
import RaftCore
import RecordModel
import Wire

// What this node's build, its peers' builds and their clocks allow its replicas to do. Everything here is called on the
// lane's event loop.
extension Lane {
    /// How often groups are looked through for a level that all of their nodes can follow, and the clock is looked at;
    /// more often while a group is new, because clients wait for its level.
    private var buildIntervalMilliseconds: UInt64 {
        groups.contains { replicas[$0]?.applier.level == .first } ? 100 : 1_000
    }

    /// Raises feature levels where all nodes can follow, says how the clock is, and judges rejected peers again.
    func reviewBuilds(now: MonotonicTime) {
        guard nextBuildReview <= now else { return }
        nextBuildReview = now.adding(milliseconds: buildIntervalMilliseconds)
        clockWatch.say(logger)
        // A full disk may be why a peer could not be remembered, and was rejected; its connection may last.
        for objection in trust.judgeAgain(rejectedOnly: true, by: map) { logger.warning("\(objection)") }
        // Another node shall lead at once.
        if isUnfit { nextRebalance = .zero }
        for group in groups { raiseLevel(of: group, now: now) }
    }

    /// Whether nothing here should lead: the disk is full, or the clock is wrong.
    var isUnfit: Bool { space.isShort || clockWatch.errorMilliseconds != nil }

    /// Proposes the level that every node can follow.
    private func raiseLevel(of group: GroupID, now: MonotonicTime) {
        guard let replica = replicas[group], replica.raft.role == .leader, replica.applyFailure == nil, !isUnfit,
            !submissions.isStalled, replica.transferUntil <= now, !replica.isRaising,
            let level = commonLevel(of: group, replica), level > replica.applier.level
        else { return }
        replica.isRaising = true
        propose(GroupCommand.raise(level).encoded(), to: group) { [self] result in
            eventLoop.execute { [self] in
                replica.isRaising = false
                guard case .success = result else { return }
                logger.notice("group \(group): feature level \(level) is in force")
            }
        }
    }

    /// The highest level that all nodes of a group can follow; nil where one cannot be asked now.
    ///
    /// The directory goes first, which every node has a replica of. So a node that is in the cluster by the directory's
    /// level, which each hello says, can follow every group.
    private func commonLevel(of group: GroupID, _ replica: Replica) -> FeatureLevel? {
        guard let map else { return nil }
        var level = settings.featureLevels.upperBound
        var nodes = Set(replica.raft.configuration.all.map(\.node))
        if group == .directory {
            nodes.formUnion(map.nodes.map { NodeID(rawValue: $0.id) })
        } else {
            level = min(level, directoryLevel ?? .first)
        }
        for node in nodes where node != settings.nodeID {
            guard isConnected(node), !trust.rejects(node), let most = trust.levels(of: node)?.upperBound
            else { return nil }
            level = min(level, FeatureLevel(most))
        }
        return level
    }

    /// The level that a new group reaches once its leader has proposed it; nil if it waits for none.
    ///
    /// A group begins at the first level, and what clients find in its documents may need a later one.
    func awaitedLevel(of group: GroupID, _ replica: Replica) -> FeatureLevel? {
        guard replica.applier.level == .first, let level = commonLevel(of: group, replica), level > .first else {
            return nil
        }
        return level
    }

    /// The level that the cluster has reached, as far as this node knows.
    var directoryLevel: FeatureLevel? { replicas[.directory]?.applier.level }

    private func isConnected(_ node: NodeID) -> Bool { transport?.isConnected(node, channel: .raft) == true }

    /// Whether a node's build can apply what a replica's log holds.
    func canFollow(_ replica: Replica, _ node: NodeID) -> Bool {
        trust.levels(of: node).map { $0.contains(replica.applier.level.rawValue) } ?? true
    }

    /// This build cannot apply the next entry of a replica: it keeps its log and votes, answers nothing that it has not
    /// applied, and waits for a build that can.
    func stopped(_ replica: Replica, by error: BuildTooOld) {
        replica.tooOld = error
        replica.applyFailure = error.description
        // Trying again changes nothing.
        replica.nextApply = MonotonicTime(nanoseconds: .max)
        replica.failReads(replica.refusal ?? .unavailable(error.description))
        nextRebalance = .zero
    }

    package func peerClock(of node: NodeID, ahead: ClosedRange<Int64>) {
        if !trust.rejects(node) { clockWatch.heard(node, ahead: ahead) }
    }
}
