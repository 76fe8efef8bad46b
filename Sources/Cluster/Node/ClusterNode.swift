package import Directory
import Foundation
package import Logging
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
    private let parts: NodeParts
    /// What the node was opened with; its timers count into `metrics`.
    package let settings: NodeSettings
    /// This node's copy of the directory, which may be behind the leader's (`requireDirectory`). Any thread.
    package var directory: DirectoryMachine { parts.keeper.directory }
    /// Seals and opens encrypted fields.
    package var vault: FieldVault { parts.keeper.vault }
    /// Brings requests to the leaders of their groups.
    package let router: Router
    /// Rings for what apply changes on this node.
    package var changes: ChangeBell { parts.keeper.changes }
    /// The cluster as the configuration has it.
    var configured: ClusterMap { parts.configured }
    var folder: NodeFolder { parts.keeper.folder }
    var placement: Placement { parts.keeper.placement }
    var keeper: ReplicaKeeper { parts.keeper }
    var lane: Lane { parts.lane }
    var log: RaftLog { parts.keeper.log }
    /// The clocks, threads, randomness and network that the node runs on.
    package var platform: any NodePlatform { parts.platform }
    let transport: any PeerNetwork
    var workers: [any SerialQueue] { parts.keeper.workers }
    var holdings: HostedGroups { parts.keeper.holdings }
    var checkpointer: Checkpointer { parts.checkpointer }
    var pools: WorkPools { parts.pools }
    var logger: Logger { parts.logger }
    /// The files that records name.
    let assets: AssetExchange
    private var assetNews: AssetNews { parts.keeper.assetNews }
    /// The feature levels of groups, as far as they are known.
    package let levels: KnownLevels
    private let outboxes: OutboxSender
    private let restore: RestoreMarker
    let leasedDirectory: LeasedDirectory
    let participation: Participation
    private let membership: Membership
    private let peerHost: PeerHost
    private let running = Mutex(Running())
    /// What is done when the node must not go on.
    private let fatal = Mutex<@Sendable (String) -> Void>({ _ in })

    /// The replica of a group as it is now, for a simulation, whose loops share one thread.
    package func raft(of group: GroupID) -> Raft? { lane.replicas[group]?.raft }

    /// What the log has durably of a group, for the same.
    package func logged(of group: GroupID) -> RecoveredGroup? { log.held(of: group) }

    /// What the folder says of itself.
    package var identity: NodeIdentity { folder.identity }

    /// How much work of clients can go on at the same time, as far as the machine's processors go.
    package var processors: Int { pools.reads.parallelism }

    /// Who is in the cluster, and where everything is, as this node knows it; before, as the configuration has it.
    package var map: ClusterMap { parts.map }

    /// - Throws: `NodeStartError` or `PeerTransportError` where certificates or the configuration cannot be used.
    private init(_ parts: NodeParts) throws {
        self.parts = parts
        settings = parts.settings
        transport = try parts.makeTransport()
        restore = RestoreMarker(folder: parts.settings.dataPath)
        let router = Router(
            platform: parts.platform, nodeID: parts.settings.nodeID, lane: parts.lane, transport: transport,
            leaders: parts.lane.leaders, candidates: parts.candidates)
        self.router = router
        leasedDirectory = LeasedDirectory(parts, router: router)
        participation = Participation(parts)
        membership = Membership(parts, router: router, lease: leasedDirectory.lease, participation: participation)
        peerHost = PeerHost(parts, router: router, directory: leasedDirectory, membership: membership)
        levels = KnownLevels(platform: parts.platform, router: router, holdings: parts.keeper.holdings)
        outboxes = OutboxSender(parts, router: router, levels: levels)
        parts.keeper.effects.listen { [weak outboxes] in outboxes?.ring($0) }
        assets = AssetExchange(
            settings: parts.settings, platform: parts.platform, files: parts.assets, pool: parts.pools.assets,
            router: router, transport: transport, clockWatch: parts.lane.clockWatch, logger: parts.logger)
    }

    /// Opens the data folder and everything in it; makes what is missing. The node neither listens nor connects before
    /// `start`.
    ///
    /// Damaged or abandoned data are moved aside if peers have a good copy; the node then joins again when it is
    /// started.
    /// - Throws: `NodeStartError`, `RaftLogError` or a database's error, each saying what to do.
    package static func open(
        _ settings: NodeSettings, platform: any NodePlatform, logger: Logger
    ) async throws -> ClusterNode {
        let parts = try await NodeParts.open(settings, platform: platform, logger: logger)
        let node = try ClusterNode(parts)
        if let map = node.directory.snapshot.map { try map.requireShards(of: node.configured) }
        try await node.connectLane(parts)
        if settings.nodes.count == 1, node.placement.map == nil { try await node.membership.foundAlone() }
        return node
    }

    /// Lets the lane reach the rest of the node.
    private func connectLane(_ parts: NodeParts) async throws {
        let map = placement.map
        // A folder that may be an old one counts for nothing before the peers were asked.
        let mayBeOld = membership.mayBeOld
        try await lane.eventLoop.submit { [self] in
            let trust = PeerTrust(known: parts.knownPeers, mayBeOld: mayBeOld)
            lane.peers.connect(transport, by: parts.peerBook, trust)
            lane.assets = assets
            lane.members.isDirectoryCurrent = { [lease = leasedDirectory.lease] in lease.isValid(at: $0) }
            lane.clockWatch.onJump { [lease = leasedDirectory.lease] in lease.end(at: $0) }
            lane.host = peerHost
            lane.reads.catchUp = { [platform, weak leasedDirectory] completion in
                guard let leasedDirectory else { return completion(false) }
                platform.startTask { completion(await (try? leasedDirectory.refresh()) != nil) }
            }
            lane.context.onFatalError = { [weak self] reason in self?.fatal.withLock { $0 }(reason) }
            lane.health.onDamage = { [weak membership] group, damage in membership?.repair(group, damage) }
            if let map { lane.take(map) }
        }.get()
        parts.heard.listen { [weak lane] map in
            if let lane { lane.eventLoop.execute { lane.hear(map) } }
        }
        // The directory's replica, which the lane has, leads to the listeners.
        placement.listen { [weak lane] map in
            if let lane { lane.eventLoop.execute { lane.take(map) } }
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
        ) { [parts] in parts.map }
        let tasks = [
            platform.startTask { [leasedDirectory] in await leasedDirectory.keep() },
            platform.startTask { [membership] in await membership.keep() },
            platform.startTask { await ContainerPurge(node: self).keep() },
            platform.startTask { await files.run() },
            platform.startTask { await files.scrub() },
            platform.startTask { [outboxes] in await outboxes.run() },
        ]
        running.withLock { $0 = Running(tasks: tasks, checkpoints: checkpoints) }
    }

    /// The time by which a request that begins now is answered.
    package func deadline() -> Deadline { deadline(milliseconds: settings.requestDeadlineMilliseconds) }

    /// The time by which a request that begins now is answered, on the clock that counts suspension.
    package func deadline(milliseconds: UInt64) -> Deadline { platform.deadline(milliseconds: milliseconds) }

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
        if let installed = directory.snapshot.map { try installed.requireShards(of: configured) }
        try await finishRestore()
    }

    /// Whether a restore waits for its new incarnations. Until then clients are not served: their tokens and tags may
    /// be of a future that was lost, and nothing would tell.
    package var isRestoring: Bool { restore.isPresent }

    /// Has every shard begin the restore's incarnation. Doing it twice, or on several nodes at once, changes nothing
    /// more.
    private func finishRestore() async throws {
        guard let incarnation = try restore.incarnation() else { return }
        logger.notice("this cluster was restored: zones begin incarnation \(incarnation)")
        try await NewIncarnation(of: self).begin(incarnation)
        try restore.remove()
    }

    /// Why the node has ended by itself; nil while it has not. Set before `onFatalError` is called.
    package var ending: NodeEnding? { participation.ending }

    /// Waits until this node knows everything of the directory that was acknowledged before the call. Callers that come
    /// while one is underway share the next, so that a flood of them costs no more than one after another.
    /// - Throws: `ClusterError.unavailable` when the directory's leader cannot be asked, or this node does not catch up
    ///   in time.
    package func refreshDirectory() async throws(ClusterError) { try await leasedDirectory.refresh() }

    /// Makes sure that this node may rely on what it knows of the directory: at once while the lease is in force, else
    /// after a renewal.
    /// - Throws: `ClusterError.unavailable` where it cannot be renewed; what was revoked meanwhile would be unknown
    ///   here.
    package func requireDirectory() async throws(ClusterError) { try await leasedDirectory.require() }

    /// Whether what this node knows of the directory may be relied on now, without asking.
    package var isDirectoryCurrent: Bool { leasedDirectory.isCurrent }

    /// Has a change applied by the directory, and waits until no node relies on anything older.
    package func changeDirectory(_ entry: DirectoryEntry, by deadline: Deadline) async throws(ClusterError) -> [UInt8] {
        try await leasedDirectory.change(entry, by: deadline)
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

    /// Sets what answers other nodes for the layers above. It is held weakly: before this, and once it is gone, other
    /// nodes are told to try again.
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
        _ = try? await lane.eventLoop.submit { [lane] in lane.context.stop() }.get()
        _ = try? await transport.shutdown().get()
        // Gives up a copy that is being made: checkpoints would wait for it.
        await pools.snapshots.stop()
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
    /// The members in force of each group, asked of their leaders; groups without a leader are missing.
    package func members(by deadline: Deadline) async -> [GroupID: GroupMembers] {
        let groups = map.groups
        return await withTaskGroup(of: (GroupID, GroupMembers?).self) { tasks in
            for group in groups {
                tasks.addTask { (group, try? await self.router.members(of: group, by: deadline)) }
            }
            var members: [GroupID: GroupMembers] = [:]
            for await (group, found) in tasks { members[group] = found }
            return members
        }
    }

    /// Whether the node can serve: every group that it shall hold has a leader and nothing fails, and the cluster's map
    /// is known.
    package func isReady(_ replicas: [ReplicaStatus]) -> Bool { obstacle(replicas) == nil }

    /// Why the node cannot serve, in words; nil if it can.
    package func obstacle(_ replicas: [ReplicaStatus]) -> String? {
        guard let map = directory.snapshot.map else { return "this node does not know the cluster's map yet" }
        if isRestoring { return "a restore is under way" }
        if let problem = lane.clockWatch.problem ?? diskProblem { return problem }
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
    /// Whether the node takes only reads and deletions, because its disk is full.
    package var isDiskShort: Bool { lane.context.disk.isShort }
    private var diskProblem: String? {
        isDiskShort
            ? "the disk of node \(settings.nodeID) is full, so it takes only reads and deletions: make room on it" : nil
    }
    /// Why nothing should be refused for its date, in words for clients; nil where the node's clock is known to be
    /// right or wrong.
    package var clockDoubt: String? { lane.clockWatch.doubt }

    /// How far this node's clock is from those of most nodes, in milliseconds, if it is wrong; then it makes no
    /// commands.
    package var clockErrorMilliseconds: Int64? { lane.clockWatch.errorMilliseconds }
}

extension ClusterMap {
    /// The cluster's map as the directory's database of a node that does not run has it; nil where it has none yet.
    /// - Throws: where the file is no directory's database, or cannot be read.
    package static func ofStopped(_ path: String) throws -> ClusterMap? {
        try SnapshotInstall.read(path) { try installed(in: $0) }
    }

    /// How many shards there are is decided when the cluster is made; a configuration that says otherwise would look
    /// for zones where they are not. Who is in it, and where replicas are, the directory knows.
    func requireShards(of configured: ClusterMap) throws {
        guard slots != configured.slots else { return }
        throw NodeStartError(
            "the cluster was made with \(shards.count) shards, the configuration says \(configured.shards.count): give it "
                + "what it was made with")
    }
}

/// What `start` begins and `stop` ends.
private struct Running {
    var tasks: [Task<Void, Never>] = []
    var checkpoints: (any Rounds)?
}
