import DequeModule
import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore
import Storage

/// What the parts of a lane share: their surroundings, this node's replicas and peers, and whether all goes on.
///
/// A part holds those that were made before it, and none holds the lane. So what waits for a disk or a peer may hold
/// its part, and none is kept for ever.
final class LaneContext: @unchecked Sendable {
    // What changes here and in the parts is touched on `eventLoop` only: that makes them safe to share.
    let platform: any NodePlatform
    let eventLoop: any EventLoop
    let log: RaftLog
    let settings: NodeSettings
    let leaders: LeaderTable
    let pools: WorkPools
    let logger: Logger
    /// Whether this node's clock may be trusted.
    let clockWatch: ClockWatch
    let replicas: ReplicaTable
    let peers: PeerLinks
    let disk: DiskSpace
    private(set) var isStopping = false
    /// What the node does when its log fails: it must not go on.
    var onFatalError: @Sendable (String) -> Void = { _ in }
    /// Callers on this node, by deadline.
    private var pendingCalls: Deque<(MonotonicTime, PendingCall)> = []

    init(
        platform: any NodePlatform, log: RaftLog, settings: NodeSettings, leaders: LeaderTable, pools: WorkPools,
        logger: Logger
    ) {
        (self.platform, self.log, self.settings) = (platform, log, settings)
        (self.leaders, self.pools, self.logger) = (leaders, pools, logger)
        eventLoop = platform.eventLoop
        clockWatch = ClockWatch(node: settings.nodeID, clock: platform.clock)
        replicas = ReplicaTable(on: eventLoop)
        peers = PeerLinks(on: eventLoop, logger)
        disk = DiskSpace(platform, settings, log: log, upkeep: pools.upkeep, logger)
    }

    /// The node's clock for elections and heartbeats; it counts suspension.
    var now: MonotonicTime { clock.now }

    var clock: any NodeClock { platform.clock }

    /// The replica of a group; nil where there is none, or the node is stopping.
    func replica(of group: GroupID) -> Replica? { isStopping ? nil : replicas[group] }

    /// Whether nothing here should lead: the disk is full, or the clock is wrong.
    var isUnfit: Bool { disk.isShort || clockWatch.errorMilliseconds != nil }

    /// Has a waiting caller answered by its deadline, whatever becomes of the request. Deadlines come in nearly in
    /// order.
    func expire(_ call: PendingCall, at deadline: MonotonicTime) {
        eventLoop.preconditionInEventLoop()
        pendingCalls.append((deadline, call))
    }

    func expireCalls(now: MonotonicTime) {
        while let (deadline, call) = pendingCalls.first, deadline <= now {
            pendingCalls.removeFirst()
            call.resume(.failure(call.overdue))
        }
    }

    /// Answers everything that waits with "outcome unknown" and takes nothing more. Nothing expires from here on.
    func stop() {
        eventLoop.preconditionInEventLoop()
        isStopping = true
        let error = ReplicaError.outcomeUnknown("the node is stopping")
        for group in replicas.groups { replicas[group]?.fail(error) }
        for (_, call) in pendingCalls { call.resume(.failure(error)) }
        pendingCalls = []
    }

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

/// The replicas of a node, as its lane has them.
final class ReplicaTable: @unchecked Sendable {
    // Touched on the event loop only, which makes it safe to share.
    private let eventLoop: any EventLoop
    private var replicas: [GroupID: Replica] = [:]
    /// Sorted: the order of every walk over the replicas.
    private(set) var groups: [GroupID] = []

    init(on eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    subscript(group: GroupID) -> Replica? { replicas[group] }

    /// Adds a replica, which takes part from here on.
    func add(_ replica: Replica, for group: GroupID) {
        precondition(replicas[group] == nil, "group \(group) has a replica here already")
        replicas[group] = replica
        groups = replicas.keys.sorted()
    }

    func remove(_ group: GroupID) -> Replica? {
        guard let replica = replicas.removeValue(forKey: group) else { return nil }
        groups = replicas.keys.sorted()
        return replica
    }

    /// The other replicas of this node's groups that a node has.
    func members(on node: NodeID) -> [(GroupID, ReplicaID)] {
        groups.flatMap { group in
            (replicas[group]?.raft.configuration.all ?? []).filter { $0.node == node }.map { (group, $0) }
        }
    }

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
