import Directory
import Foundation
import GRDB
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import Storage
import Synchronization
import Telemetry

/// What a node is made of.
struct NodeParts {
    var platform: any NodePlatform
    var settings: NodeSettings
    var configured: ClusterMap
    var keeper: ReplicaKeeper
    /// Replicas that are damaged and not open.
    var damaged: [GroupID: ReplicaDamage]
    var knownPeers: KnownPeers
    var peerBook: PeerBook
    /// The newest map that a peer brought; where it is newer than this node's, it says whom to ask, and no more.
    var heard = Placement(nil)
    var lane: Lane
    var checkpointer: Checkpointer
    var pools: WorkPools
    var assets: AssetFiles
    var logger: Logger

    /// Who is in the cluster: as `ClusterNode.map`.
    var map: ClusterMap { keeper.placement.map ?? configured }

    /// Whom to ask for the leader of a group: this node if it holds a replica, then the others that shall, then all
    /// others, since replicas may be on their way.
    func candidates(for group: GroupID) -> [NodeID] {
        let (map, node) = (map, settings.nodeID)
        let members = map.replicas(ofShard: group.shard).map { NodeID(rawValue: $0.node) }
        let others = map.nodes.map { NodeID(rawValue: $0.id) }.filter { !members.contains($0) && $0 != node }
        let own = keeper.holdings[group] == nil ? [] : [node]
        return own + members.filter { $0 != node } + others
    }

    /// The time by which a request that begins now is answered.
    var deadline: Deadline { platform.deadline(milliseconds: settings.requestDeadlineMilliseconds) }

    /// Opens the data folder and everything in it; makes what is missing.
    static func open(
        _ settings: NodeSettings, platform: any NodePlatform, logger: Logger
    ) async throws -> NodeParts {
        var settings = settings
        settings.log.timers = NodeTimers(settings.metrics)
        settings.apply.timers = settings.log.timers
        let configured = ClusterMap(
            clusterID: settings.clusterID, nodes: settings.nodes, shardCount: settings.shardCount,
            replicasPerShard: settings.replicasPerShard)
        let (folder, log, recovered) = try DataFolder(settings, platform, logger).open(configured: configured)
        let assets: AssetFiles
        do {
            assets = try AssetFiles.opened(settings, random: platform.random)
        } catch {
            log.close()
            throw error
        }
        let pools = WorkPools(platform)
        let lane = Lane(
            LaneContext(
                platform: platform, log: log, settings: settings, leaders: LeaderTable(nodeID: settings.nodeID),
                pools: pools, logger: logger))
        let keeper = makeKeeper(settings, platform, folder: folder, log: log, lane: lane, logger)
        let damaged = try await keeper.openPresent(recovered)
        return try NodeParts(
            platform: platform, settings: settings, configured: configured, keeper: keeper, damaged: damaged,
            knownPeers: KnownPeers(folder: settings.dataPath, on: settings.log.disk),
            peerBook: PeerBook(node: settings.nodeID.rawValue, configured: settings.nodes, map: keeper.placement.map),
            lane: lane,
            checkpointer: Checkpointer(
                holdings: keeper.holdings, log: log, settings: settings.checkpoint, logger: logger,
                onDamage: { group, error in
                    lane.eventLoop.execute { lane.health.damaged(group, error, .reading) }
                },
                onFailedSync: { path in lane.eventLoop.execute { lane.context.syncFailed(path) } }),
            pools: pools, assets: assets, logger: logger)
    }

    private static func makeKeeper(
        _ settings: NodeSettings, _ platform: any NodePlatform, folder: NodeFolder, log: RaftLog, lane: Lane,
        _ logger: Logger
    ) -> ReplicaKeeper {
        let vault = FieldVault(clusterKey: settings.encryptionKey)
        let changes = ChangeBell()
        let placement = Placement(folder.founding)
        // The machine rings before there is a listener.
        let news = Bell<Void>()
        let directory = DirectoryMachine(vault: vault) {
            changes.ring(.directory)
            news.ring(())
        }
        news.listen { [weak directory] in placement.offer(directory?.snapshot.map) }
        return ReplicaKeeper(
            platform: platform, settings: settings, folder: folder, placement: placement, log: log, lane: lane,
            workers: (0...max(settings.apply.workers, 1)).map { platform.makeSerialQueue(name: "apply-\($0)") },
            holdings: HostedGroups(), directory: directory, vault: vault, changes: changes, logger: logger)
    }

    func makeTransport() throws -> any PeerNetwork {
        guard let own = settings.nodes.first(where: { $0.id == settings.nodeID.rawValue }) else {
            throw NodeStartError("node \(settings.nodeID) is not among the nodes of the configuration")
        }
        let identity = keeper.folder.identity
        let configuration = PeerTransportConfiguration(
            nodeID: settings.nodeID, clusterID: settings.clusterID, listenHost: settings.peerListenHost,
            listenPort: own.peerPort, peers: peerBook.addresses(by: keeper.placement.map), tls: settings.tls,
            incarnation: identity.incarnation, bootCounter: identity.bootCounter
        ) { [weak lane, settings, platform] in
            let least = max(settings.featureLevels.lowerBound, lane?.builds.directoryLevel ?? .first)
            let most = max(settings.featureLevels.upperBound, least)
            return PeerPresence(
                build: PeerBuild(version: settings.version, levels: least.rawValue...most.rawValue),
                wallMilliseconds: platform.clock.wallMilliseconds)
        }
        settings.checkSizes(frameBytesMax: configuration.frameBytesMax)
        return try platform.makeNetwork(configuration, delegate: lane, logger: logger)
    }
}
