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
    package let identity: NodeIdentity
    /// Placement as this node was started with; the directory holds the same once the cluster is made.
    package let map: ClusterMap
    package let directory: DirectoryMachine
    /// Seals and opens encrypted fields.
    package let vault: FieldVault
    package let router: Router
    /// Rings for what apply changes on this node.
    package let changes: ChangeBell
    let lane: Lane
    let log: RaftLog
    let platform: any NodePlatform
    let transport: any PeerNetwork
    let workers: [any SerialQueue]
    let appliers: [Applier]
    let checkpointer: Checkpointer
    let blockingPool: any WorkPool
    let snapshotPool: any WorkPool
    let logger: Logger
    let restore: RestoreMarker
    let refreshes: SharedRefresh
    let lease = DirectoryLease()
    private let running = Mutex(Running())

    /// What `start` begins and `stop` ends.
    private struct Running {
        var renewal: Task<Void, Never>?
        var checkpoints: (any Rounds)?
    }

    init(parts: NodeParts) {
        platform = parts.platform
        settings = parts.settings
        identity = parts.identity
        map = parts.map
        directory = parts.directory
        vault = parts.vault
        changes = parts.changes
        lane = parts.lane
        log = parts.log
        transport = parts.transport
        workers = parts.workers
        appliers = parts.appliers
        checkpointer = parts.checkpointer
        blockingPool = parts.blockingPool
        snapshotPool = parts.snapshotPool
        logger = parts.logger
        refreshes = SharedRefresh(platform: parts.platform)
        restore = RestoreMarker(folder: parts.settings.dataPath)
        router = Router(
            platform: parts.platform, nodeID: parts.settings.nodeID, lane: parts.lane, transport: parts.transport,
            leaders: parts.lane.leaders,
            members: { [map = parts.map] group in map.initialConfiguration(of: group).voters.map(\.node) })
    }

    /// Starts connections and timers.
    /// - Parameter onFatalError: called, once, when the node must not go on; the process should end.
    /// - Throws: `PeerTransportError` when the peer port cannot be used.
    package func start(onFatalError: @escaping @Sendable (String) -> Void) async throws {
        try await transport.start().get()
        let checkpoints = platform.makeRounds(
            name: "checkpoint", everyMilliseconds: settings.checkpoint.intervalMilliseconds
        ) { [checkpointer, clock = platform.clock] in checkpointer.round(now: clock.now) }
        try await lane.eventLoop.submit { [lane] in
            lane.onFatalError = onFatalError
            lane.start()
        }.get()
        let renewal = platform.startTask { [weak self] in await self?.keepLease() }
        running.withLock { $0 = Running(renewal: renewal, checkpoints: checkpoints) }
    }

    /// The time by which a request that begins now is answered.
    package func deadline() -> Deadline { deadline(milliseconds: settings.requestDeadlineMilliseconds) }

    func deadline(milliseconds: UInt64) -> Deadline { Deadline(milliseconds: milliseconds, from: platform.clock.now) }

    /// Makes the cluster's map known to the directory, whichever node comes first, and ends a restore that was begun. Returns when
    /// this node may serve clients.
    /// - Throws: `NodeStartError` when the cluster was made with another map: the node must not serve.
    package func awaitMap() async throws {
        while directory.snapshot.map == nil {
            do {
                let entry = DirectoryEntry(.installMap(map))
                _ = try await router.submit(.machine(entry.encoded()), to: .directory, by: deadline())
                try await refreshDirectory()
            } catch {
                try await platform.clock.sleep(milliseconds: 100)
            }
        }
        if let installed = directory.snapshot.map { try Self.requireSame(installed, map) }
        try await finishRestore()
    }

    /// What the node's replicas are at.
    package func status() async -> [ReplicaStatus] {
        (try? await lane.eventLoop.submit { [lane] in lane.status() }.get()) ?? []
    }

    /// The node that leads each group, as far as this one knows.
    package func leader(of group: GroupID) -> NodeID? { lane.leaders.leader(of: group) }

    /// Whether this node holds a replica of a group, and so rings for what the group applies.
    package func holdsReplica(of group: GroupID) -> Bool { appliers.contains { $0.group == group } }

    /// The hashes that this node's replica of a group recorded, newest first.
    package func stateHashes(of group: GroupID) async throws -> [(index: LogIndex, hash: [UInt8])] {
        guard let applier = appliers.first(where: { $0.group == group }) else { return [] }
        return try await blockingPool.run { try applier.database.read { try AppliedState.hashes(in: $0) } }
    }

    /// Sets what answers other nodes for the layers above; until then they are told to try again.
    package func serve(_ services: any NodeServices) { lane.services.set(services) }

    /// What the node's disk work came to since the start.
    package var logCounters: RaftLogCounters { log.counters }

    /// Stops in order: no more requests, everything handed over applied and checkpointed, files closed.
    package func stop() async {
        let running = running.withLock { running in
            defer { running = Running() }
            return running
        }
        running.renewal?.cancel()
        await running.renewal?.value
        _ = try? await lane.eventLoop.submit { [lane] in lane.stop() }.get()
        _ = try? await transport.shutdown().get()
        for worker in workers { worker.stop() }
        running.checkpoints?.stop()
        checkpointer.checkpointAll()
        log.close()
        await blockingPool.stop()
        await snapshotPool.stop()
        for applier in appliers {
            do {
                try applier.database.close()
            } catch {
                logger.error("group \(applier.group): closing the database failed: \(error)")
            }
        }
    }
}

extension ClusterNode {
    /// Whether the node can serve: every group it holds has a leader, nothing fails, and the cluster's map is known.
    package func isReady(_ replicas: [ReplicaStatus]) -> Bool {
        directory.snapshot.map != nil && !isRestoring && !replicas.isEmpty
            && replicas.allSatisfy { $0.leader != nil && $0.applyFailure == nil }
    }
}
