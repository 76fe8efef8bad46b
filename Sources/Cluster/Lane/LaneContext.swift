import Directory
import HeapModule
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
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
    private var pendingCalls = CallDeadlines()

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

    /// Has a waiting caller answered by its deadline, whatever becomes of the request.
    func expire(_ call: PendingCall, at deadline: MonotonicTime) {
        eventLoop.preconditionInEventLoop()
        pendingCalls.add(call, at: deadline)
    }

    func expireCalls(now: MonotonicTime) {
        while let call = pendingCalls.takeOverdue(now: now) { call.resume(.failure(call.overdue)) }
    }

    /// Answers everything that waits with "outcome unknown" and takes nothing more. Nothing expires from here on.
    func stop() {
        eventLoop.preconditionInEventLoop()
        isStopping = true
        let error = ReplicaError.outcomeUnknown("the node is stopping")
        for group in replicas.groups { replicas[group]?.fail(error) }
        for call in pendingCalls.takeAll() { call.resume(.failure(error)) }
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

/// The other nodes as a lane sees them: where they are, which of them count, and the way to them.
final class PeerLinks: @unchecked Sendable {
    // Touched on the lane's event loop only, which makes it safe to share.
    private let eventLoop: any EventLoop
    private let logger: Logger
    /// Nil until `connect`.
    private(set) var transport: (any PeerNetwork)?
    private var book: PeerBook?
    var trust = PeerTrust()
    /// The cluster's map; nil while this node is of no cluster.
    private(set) var map: ClusterMap?
    /// The newest that a peer came with by itself; it tells only whom to ask.
    private var heard: ClusterMap?

    init(on eventLoop: any EventLoop, _ logger: Logger) { (self.eventLoop, self.logger) = (eventLoop, logger) }

    func connect(_ transport: any PeerNetwork, by book: PeerBook, _ trust: PeerTrust) {
        (self.transport, self.book, self.trust) = (transport, book, trust)
    }

    /// Takes a new map.
    func take(_ map: ClusterMap) {
        self.map = map
        dial()
        // Whose folder counts may have changed.
        for objection in trust.judgeAgain(rejectedOnly: false, by: map) { logger.warning("\(objection)") }
    }

    /// Looks for the cluster at the nodes of a peer's map, too, until one that is as new is taken.
    func hear(_ map: ClusterMap) {
        heard = map
        dial()
    }

    private func dial() { transport?.update(peers: book?.addresses(by: map, heard: heard) ?? []) }

    func judge(_ peer: PeerIdentity, isDialled: Bool) {
        if let objection = trust.judge(peer, isDialled: isDialled, by: map) { logger.warning("\(objection)") }
    }

    func judgeRejectedAgain() {
        for objection in trust.judgeAgain(rejectedOnly: true, by: map) { logger.warning("\(objection)") }
    }

    func isConnected(_ node: NodeID) -> Bool { transport?.isConnected(node, channel: .raft) == true }

    /// Whether a node is connected right now with the data folder that counts, which is not this one.
    func isRunningElsewhere(_ node: NodeID, than incarnation: UInt64) -> Bool {
        eventLoop.preconditionInEventLoop()
        guard let counting = map?.node(node.rawValue)?.incarnation, counting != 0, counting != incarnation else {
            return false
        }
        return trust.dialledIncarnation(of: node) == counting && isConnected(node)
    }

    func send(_ messages: [Message], of group: GroupID) {
        guard let transport else { return }
        for message in messages where !trust.rejects(message.to.node) {
            transport.send([PeerMessage(group: group, message: message)], to: message.to.node)
        }
    }
}

/// Which peers count for this node's replicas, and whether the node itself does.
struct PeerTrust {
    /// True until peers confirmed that this node's data folder is the newest. Until then nothing is sent, and what is
    /// received is dropped.
    var isHeld = false
    /// Peers that confirmed this node's data folder; what any other one sends is dropped. Nil where the folder cannot
    /// be an old one.
    var met: Set<NodeID>?
    private let known: KnownPeers?
    /// Who the peers said they are, at their last connection, and at the last one that this node dialled.
    private var peers: [NodeID: PeerIdentity] = [:]
    private var dialled: [NodeID: PeerIdentity] = [:]
    /// Nodes whose data folder is not the one that is known of them: nothing of theirs counts.
    private var rejected: Set<NodeID> = []

    /// - Parameters:
    ///   - known: nil for a node without peers.
    ///   - mayBeOld: whether this node's folder may be an old one.
    init(known: KnownPeers? = nil, mayBeOld: Bool = false) {
        self.known = known
        (isHeld, met) = (mayBeOld, mayBeOld ? [] : nil)
    }

    /// Whether what a node sends counts here.
    func accepts(_ node: NodeID) -> Bool { !isHeld && !rejects(node) && met?.contains(node) != false }

    func rejects(_ node: NodeID) -> Bool { rejected.contains(node) }

    /// The feature levels of the build that a node runs; nil where it has not said.
    func levels(of node: NodeID) -> ClosedRange<UInt64>? { peers[node]?.build.levels }

    /// Whether a node's build can apply commands of a feature level.
    func canFollow(_ level: FeatureLevel, _ node: NodeID) -> Bool {
        levels(of: node).map { $0.contains(level.rawValue) } ?? true
    }

    /// Which data folder answered when this node dialled another.
    func dialledIncarnation(of node: NodeID) -> UInt64? { dialled[node]?.incarnation }

    /// Takes a peer for the one that is known, or not. Writes a small file when the peer was restarted, which is rare
    /// enough to be done on the lane: nothing of the peer may count before it is durable.
    /// - Returns: what speaks against the peer, where nothing did before.
    mutating func judge(_ peer: PeerIdentity, isDialled: Bool = false, by map: ClusterMap?) -> String? {
        peers[peer.node] = peer
        if isDialled { dialled[peer.node] = peer }
        var objection: String?
        do {
            objection = try known?.judge(peer, by: map).objection(to: peer.node)
        } catch {
            objection = "what is known of node \(peer.node) cannot be kept: \(error)"
        }
        guard let objection else {
            rejected.remove(peer.node)
            return nil
        }
        return rejected.insert(peer.node).inserted ? objection : nil
    }

    /// Judges the peers again that said who they are.
    /// - Returns: what speaks against peers that nothing spoke against before.
    mutating func judgeAgain(rejectedOnly: Bool, by map: ClusterMap?) -> [String] {
        let nodes = rejectedOnly ? rejected : Set(peers.keys)
        return nodes.sorted().compactMap { peers[$0] }.compactMap { judge($0, by: map) }
    }
}

/// Callers that wait on this node, by when each of them is answered, whatever becomes of its request.
///
/// Deadlines come in any order: most requests have a few seconds, and the hold of an upload a minute. Those that were
/// answered are let go of before the table doubles, so that it stays as large as what waits.
struct CallDeadlines {
    private static let sweepMin = 64

    private struct Entry: Comparable {
        let deadline: MonotonicTime
        let call: PendingCall

        static func < (left: Self, right: Self) -> Bool { left.deadline < right.deadline }
        static func == (left: Self, right: Self) -> Bool { left.deadline == right.deadline }
    }

    private var entries = Heap<Entry>()
    /// How many there are when those that were answered are looked for.
    private var sweepAt = sweepMin

    var count: Int { entries.count }

    mutating func add(_ call: PendingCall, at deadline: MonotonicTime) {
        if entries.count >= sweepAt { sweep() }
        entries.insert(Entry(deadline: deadline, call: call))
    }

    /// The next call whose deadline has passed; nil where there is no more.
    mutating func takeOverdue(now: MonotonicTime) -> PendingCall? {
        guard let first = entries.min, first.deadline <= now else { return nil }
        return entries.removeMin().call
    }

    mutating func takeAll() -> [PendingCall] {
        defer { self = Self() }
        return entries.unordered.map(\.call)
    }

    private mutating func sweep() {
        entries = Heap(entries.unordered.filter { !$0.call.isAnswered })
        sweepAt = max(Self.sweepMin, 2 * entries.count)
    }
}
