package import Directory
import Foundation
import Logging
import NIOCore
package import PeerTransport
package import RaftCore
import RecordModel
package import Storage
import Synchronization
import Wire

/// One node: its raft log, its replicas and their databases, and its connections to the other nodes.
///
/// A cluster of one node is the same thing with groups of one voter.
package final class ClusterNode: Sendable {
    package let settings: NodeSettings
    package let directory: DirectoryMachine
    /// Seals and opens encrypted fields.
    package let vault: FieldVault
    package let router: Router
    /// Rings for what apply changes on this node.
    package let changes: ChangeBell
    /// The cluster as the configuration has it.
    let configured: ClusterMap
    let folder: NodeFolder
    let placement: Placement
    /// The newest map that a peer brought; where it is newer than this node's, it says whom to ask, and no more.
    let heard = Placement(nil)
    let peerBook: PeerBook
    let knownPeers: KnownPeers
    let keeper: ReplicaKeeper
    let lane: Lane
    let log: RaftLog
    package let platform: any NodePlatform
    let transport: any PeerNetwork
    let workers: [any SerialQueue]
    let holdings: HostedGroups
    let checkpointer: Checkpointer
    let pools: WorkPools
    let logger: Logger
    /// The files that records name.
    let assets: AssetExchange
    private let assetNews: AssetNews
    /// The feature levels of groups, as far as they are known.
    package let levels: KnownLevels
    private let outboxes: OutboxSender
    let restore: RestoreMarker
    let refreshes: SingleFlight
    let lease: DirectoryLease
    let membership = Mutex(MembershipState())
    private let running = Mutex(Running())
    /// What is done when the node must not go on.
    let fatal = Mutex<@Sendable (String) -> Void>({ _ in })

    /// What the folder says of itself.
    package var identity: NodeIdentity { folder.identity }

    /// How much work of clients can go on at the same time, as far as the machine's processors go.
    package var processors: Int { pools.reads.parallelism }

    /// Who is in the cluster, and where everything is: as the directory has it, as far as this node knows; before it is
    /// known, as the configuration has it.
    package var map: ClusterMap { placement.map ?? configured }

    /// - Throws: `NodeStartError` or `PeerTransportError` where certificates or the configuration cannot be used.
    init(parts: NodeParts) throws {
        platform = parts.platform
        settings = parts.settings
        configured = parts.configured
        folder = parts.keeper.folder
        placement = parts.keeper.placement
        keeper = parts.keeper
        knownPeers = try KnownPeers(folder: parts.settings.dataPath, on: parts.settings.log.disk)
        directory = parts.keeper.directory
        vault = parts.keeper.vault
        changes = parts.keeper.changes
        lane = parts.lane
        log = parts.keeper.log
        peerBook = PeerBook(
            node: parts.settings.nodeID.rawValue, configured: parts.settings.nodes, map: parts.keeper.placement.map)
        transport = try Self.makeTransport(
            parts.settings, identity: folder.identity, peers: peerBook.addresses(by: placement.map), lane: parts.lane,
            platform: parts.platform, logger: parts.logger)
        workers = parts.keeper.workers
        holdings = parts.keeper.holdings
        checkpointer = parts.checkpointer
        pools = parts.pools
        logger = parts.logger
        lease = DirectoryLease(lengthMilliseconds: parts.settings.directoryLeaseMilliseconds)
        refreshes = SingleFlight(platform: parts.platform)
        restore = RestoreMarker(folder: parts.settings.dataPath)
        let router = Router(
            platform: parts.platform, nodeID: parts.settings.nodeID, lane: parts.lane, transport: transport,
            leaders: parts.lane.leaders,
            candidates: Self.candidates(
                parts.keeper.placement, parts.configured, holdings: parts.keeper.holdings, node: parts.settings.nodeID))
        self.router = router
        assetNews = parts.keeper.assetNews
        levels = KnownLevels(platform: parts.platform, router: router, holdings: parts.keeper.holdings)
        outboxes = OutboxSender(parts, router: router, levels: levels)
        parts.keeper.effects.listen { [weak outboxes] in outboxes?.ring($0) }
        assets = AssetExchange(
            settings: parts.settings, platform: parts.platform, files: parts.assets, pool: parts.pools.assets,
            router: router, transport: transport, clockWatch: parts.lane.clockWatch, logger: parts.logger)
    }

    /// Whom to ask for the leader of a group: this node if it holds a replica, then the others that shall, then all
    /// others, since replicas may be on their way.
    private static func candidates(
        _ placement: Placement, _ configured: ClusterMap, holdings: HostedGroups, node: NodeID
    ) -> @Sendable (GroupID) -> [NodeID] {
        { group in
            let map = placement.map ?? configured
            let members = map.replicas(ofShard: group.shard).map { NodeID(rawValue: $0.node) }
            let others = map.nodes.map { NodeID(rawValue: $0.id) }.filter { !members.contains($0) && $0 != node }
            let own = holdings[group] == nil ? [] : [node]
            return own + members.filter { $0 != node } + others
        }
    }

    /// Starts connections and timers.
    /// - Parameter onFatalError: called, once, when the node must not go on; the process should end.
    /// - Throws: `PeerTransportError` when the peer port cannot be used.
    package func start(onFatalError: @escaping @Sendable (String) -> Void) async throws {
        // Peers may say at once that the node is not wanted.
        fatal.withLock { $0 = onFatalError }
        try await transport.start().get()
        let checkpoints = platform.makeRounds(
            name: "checkpoint", everyMilliseconds: settings.checkpoint.intervalMilliseconds
        ) { [checkpointer, clock = platform.clock] in checkpointer.round(now: clock.now) }
        try await lane.eventLoop.submit { [lane] in lane.start() }.get()
        let files = AssetKeeper(
            exchange: assets, news: assetNews, holdings: holdings, lane: lane, upkeep: pools.upkeep, folder: folder,
            logger: logger
        ) { [placement, configured] in placement.map ?? configured }
        let tasks = [
            platform.startTask { [weak self] in await self?.keepLease() },
            platform.startTask { [weak self] in await self?.keepMembership() },
            platform.startTask { [weak self] in await self?.keepPurging() },
            platform.startTask { await files.run() },
            platform.startTask { await files.scrub() },
            platform.startTask { [outboxes] in await outboxes.run() },
        ]
        running.withLock { $0 = Running(tasks: tasks, checkpoints: checkpoints) }
    }

    /// The time by which a request that begins now is answered.
    package func deadline() -> Deadline { deadline(milliseconds: settings.requestDeadlineMilliseconds) }

    package func deadline(milliseconds: UInt64) -> Deadline {
        Deadline(milliseconds: milliseconds, from: platform.clock.now)
    }

    /// Makes the cluster's map known to the directory, whichever node comes first, and ends a restore that was begun.
    /// Returns when this node may serve clients.
    /// - Throws: `NodeStartError` when the cluster was made with another map: the node must not serve.
    package func awaitMap() async throws {
        while directory.snapshot.map == nil {
            do {
                // A founder's is the first map; who joins later finds one.
                if let founding = folder.founding {
                    let entry = DirectoryEntry(.installMap(founding))
                    _ = try await router.submit(.machine(entry.encoded()), to: .directory, by: deadline())
                }
                try await refreshDirectory()
            } catch {
                try await platform.clock.sleep(milliseconds: 100)
            }
        }
        if let installed = directory.snapshot.map { try Self.requireSame(installed, configured) }
        try await finishRestore()
    }

    /// What the node's replicas are at.
    package func status() async -> [ReplicaStatus] {
        (try? await lane.eventLoop.submit { [lane] in lane.status() }.get()) ?? []
    }

    /// The node that leads each group, as far as this one knows.
    package func leader(of group: GroupID) -> NodeID? { lane.leaders.leader(of: group) }

    /// Whether this node leads a group: by what its own replica says, whatever others do.
    package func leads(_ group: GroupID) -> Bool { lane.leaders.leads(group) }

    /// The hashes that this node's replica of a group recorded, newest first.
    package func stateHashes(of group: GroupID) async throws -> [(index: LogIndex, hash: [UInt8])] {
        guard let applier = holdings[group] else { return [] }
        return try await pools.upkeep.run { try applier.database.read { try AppliedRow.hashes(in: $0) } }
    }

    /// Sets what answers other nodes for the layers above; until then they are told to try again.
    package func serve(_ services: any NodeServices) { lane.services.set(services) }

    /// What the node's disk work came to since the start.
    package var logCounters: RaftLogCounters { log.counters }
    /// Raft messages that were not sent since the start.
    package var droppedMessages: (tooLarge: UInt64, full: UInt64) { transport.counters.messagesDropped }

    /// Stops in order: no more requests, everything handed over applied and checkpointed, files closed.
    package func stop() async {
        let running = running.withLock { running in
            defer { running = Running() }
            return running
        }
        for task in running.tasks { task.cancel() }
        for task in running.tasks { await task.value }
        _ = try? await lane.eventLoop.submit { [lane] in lane.stop() }.get()
        _ = try? await transport.shutdown().get()
        for worker in workers { worker.stop() }
        running.checkpoints?.stop()
        checkpointer.checkpointAll()
        log.close()
        await pools.stop()
        for applier in holdings.all {
            do {
                try applier.database.close()
            } catch {
                logger.error("group \(applier.group): closing the database failed: \(error)")
            }
        }
    }
}

extension ClusterNode {
    /// Whether the node can serve: every group that it shall hold has a leader and nothing fails, and the cluster's map
    /// is known.
    package func isReady(_ replicas: [ReplicaStatus]) -> Bool { obstacle(replicas) == nil }

    /// Why the node cannot serve, in words; nil if it can.
    package func obstacle(_ replicas: [ReplicaStatus]) -> String? {
        guard let map = directory.snapshot.map else { return "this node does not know the cluster's map yet" }
        if isRestoring { return "a restore is under way" }
        if let problem = lane.clockWatch.problem { return problem }
        for group in map.groups {
            let wanted = map.replicas(ofShard: group.shard).first { $0.node == settings.nodeID.rawValue }
            guard let wanted else { continue }
            let present = replicas.first { $0.group == group && $0.id == ReplicaID(wanted) }
            if let failure = present?.applyFailure { return "group \(group) fails: \(failure)" }
            if present?.leader == nil { return "a group that this node holds has no leader yet" }
            if let level = present?.awaitedLevel {
                return "group \(group) is new and not at feature level \(level) yet"
            }
        }
        return nil
    }

    /// Why this node makes no commands, where its clock is wrong.
    package var clockProblem: String? { lane.clockWatch.problem }
    /// Why nothing should be refused for its date, in words for clients; nil where the node's clock is known to be
    /// right or wrong.
    package var clockDoubt: String? { lane.clockWatch.doubt }

    /// How far this node's clock is from those of most nodes, in milliseconds, if it is wrong; then it makes no
    /// commands.
    package var clockErrorMilliseconds: Int64? { lane.clockWatch.errorMilliseconds }
}

/// What `start` begins and `stop` ends.
private struct Running {
    var tasks: [Task<Void, Never>] = []
    var checkpoints: (any Rounds)?
}
