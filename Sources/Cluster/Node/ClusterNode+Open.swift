import Directory
import Foundation
import GRDB
package import Logging
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
    var lane: Lane
    var checkpointer: Checkpointer
    var pools: WorkPools
    var assets: AssetFiles
    var logger: Logger
}

extension ClusterNode {
    /// Opens the data folder and everything in it; makes what is missing. The node neither listens nor connects before
    /// `start`.
    ///
    /// Damaged or abandoned data are moved aside if peers have a good copy; the node then joins again when it is
    /// started.
    /// - Throws: `NodeStartError`, `RaftLogError` or a database's error, each saying what to do.
    package static func open(
        _ settings: NodeSettings, platform: any NodePlatform, logger: Logger
    ) async throws -> ClusterNode {
        var settings = settings
        settings.log.timers = NodeTimers(settings.metrics)
        settings.apply.timers = settings.log.timers
        let configured = ClusterMap(
            clusterID: settings.clusterID, nodes: settings.nodes, shardCount: settings.shardCount,
            replicasPerShard: settings.replicasPerShard)
        let (folder, log, recovered) = try openFolder(settings, configured: configured, platform, logger)
        let assets: AssetFiles
        do {
            assets = try AssetFiles.opened(settings, random: platform.random)
        } catch {
            log.close()
            throw error
        }
        let pools = WorkPools(platform)
        let lane = Lane(
            platform: platform, log: log, settings: settings, leaders: LeaderTable(nodeID: settings.nodeID),
            pools: pools, logger: logger)
        let keeper = makeKeeper(settings, platform, folder: folder, log: log, lane: lane, logger)
        let damaged = try await keeper.openPresent(recovered)
        let node = try ClusterNode(
            parts: NodeParts(
                platform: platform, settings: settings, configured: configured, keeper: keeper, lane: lane,
                checkpointer: Checkpointer(
                    holdings: keeper.holdings, log: log, settings: settings.checkpoint, logger: logger,
                    onDamage: { group, error in
                        lane.eventLoop.execute { lane.damaged(group, error, .reading) }
                    },
                    onFailedSync: { path in lane.eventLoop.execute { lane.syncFailed(path) } }),
                pools: pools, assets: assets, logger: logger))
        node.membership.withLock { $0.damaged = damaged }
        if let map = node.directory.snapshot.map { try requireSame(map, configured) }
        try await node.connectLane()
        if settings.nodes.count == 1, node.placement.map == nil { try await node.foundAlone() }
        return node
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

    /// Lets the lane reach the rest of the node.
    private func connectLane() async throws {
        let map = placement.map
        // A folder that may be an old one counts for nothing before the peers were asked.
        let mayBeOld = identity.hasTakenPart && !peers.isEmpty
        membership.withLock { $0.mayBeOld = mayBeOld }
        try await lane.eventLoop.submit { [self] in
            lane.transport = transport
            lane.knownPeers = knownPeers
            lane.peerBook = peerBook
            lane.assets = assets
            lane.isDirectoryCurrent = { [lease] in lease.isValid(at: $0) }
            lane.clockWatch.onJump { [lease] in lease.end(at: $0) }
            lane.host = self
            lane.catchUp = { [weak self] completion in
                guard let self else { return completion(false) }
                platform.startTask { completion(await (try? self.refreshDirectory()) != nil) }
            }
            lane.onFatalError = { [weak self] reason in self?.fatal.withLock { $0 }(reason) }
            lane.onDamage = { [weak self] group, damage in self?.repair(group, damage) }
            (lane.isHeld, lane.metPeers) = (mayBeOld, mayBeOld ? [] : nil)
            if let map { lane.take(map) }
        }.get()
        heard.listen { [lane] map in
            lane.eventLoop.execute { lane.hear(map) }
        }
        placement.listen { [lane] map in
            lane.eventLoop.execute { lane.take(map) }
        }
    }

    /// Opens the log and the folder's account, after giving up what must not be used.
    private static func openFolder(
        _ settings: NodeSettings, configured: ClusterMap, _ platform: any NodePlatform, _ logger: Logger
    ) throws -> (NodeFolder, RaftLog, [GroupID: RecoveredGroup]) {
        let path = settings.dataPath
        try NodeFolder.check(settings)
        if let reason = try Quarantine.reason(of: path) {
            try setAside(settings, because: reason, logger)
        }
        try prepareFolder(path)
        func openAfterAll(_ reason: String) throws -> (RaftLog, [GroupID: RecoveredGroup]) {
            try setAside(settings, because: reason, logger)
            try prepareFolder(path)
            return try openLog(settings, platform)
        }
        var opened: (log: RaftLog, groups: [GroupID: RecoveredGroup])
        do throws(RaftLogError) {
            opened = try openLog(settings, platform)
        } catch {
            guard case .corrupt = error, settings.nodes.count > 1 else {
                throw startError(error, settings)
            }
            opened = try openAfterAll("its raft log is damaged below what was durable (\(error))")
        }
        // A first start that was cut short leaves an empty log.
        if !opened.groups.isEmpty, try NodeFolder.read(path) == nil {
            opened.log.close()
            opened = try openAfterAll("\(path)/node.json is missing, but its raft log holds replicas")
        }
        // The log's lock makes these our own: the remains of a stopped transfer are useless.
        try clearSnapshots(path)
        let folder = try NodeFolder(settings, configured: configured, random: platform.random)
        return (folder, opened.log, opened.groups)
    }

    /// Gives up what the folder holds, if there are others to fetch it from.
    private static func setAside(_ settings: NodeSettings, because reason: String, _ logger: Logger) throws {
        guard settings.nodes.count > 1 else {
            throw NodeStartError(
                "\(reason). The configuration file names no other node to fetch a copy from: name the cluster's other nodes there, or, "
                    + "where there are none, put back what is missing")
        }
        let place = try Quarantine.run(settings.dataPath, because: reason, on: settings.log.disk)
        logger.error(
            "node \(settings.nodeID) begins anew and fetches its data from its peers, because \(reason). What was there is in \(place), and may be deleted when the node is ready"
        )
    }

    private static func prepareFolder(_ path: String) throws {
        do {
            for folder in ["", "/shards", "/snapshots"] {
                try FileManager.default.createDirectory(
                    atPath: path + folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            }
        } catch {
            throw NodeStartError(
                "the data folder \(path) cannot be used: \(error.localizedDescription). Name a folder that this user may write to"
            )
        }
    }

    private static func clearSnapshots(_ path: String) throws {
        do {
            for file in try FileManager.default.contentsOfDirectory(atPath: path + "/snapshots") {
                try FileManager.default.removeItem(atPath: "\(path)/snapshots/\(file)")
            }
        } catch {
            throw NodeStartError("\(path)/snapshots cannot be cleared: \(error.localizedDescription)")
        }
    }

    private static func openLog(
        _ settings: NodeSettings, _ platform: any NodePlatform
    ) throws(RaftLogError) -> (RaftLog, [GroupID: RecoveredGroup]) {
        var options = settings.log
        options.haltsAfterRefusal = true
        options.scheduling = platform.logScheduling
        options.random = platform.random
        let (log, groups) = try RaftLog.open(directory: settings.dataPath + "/log", options: options)
        return (log, groups)
    }

    private static func startError(_ error: RaftLogError, _ settings: NodeSettings) -> NodeStartError {
        switch error {
        case .locked: NodeStartError("another process is using \(settings.dataPath): stop it first")
        case .corrupt(let segment, let position, let detail):
            NodeStartError(
                "the raft log is damaged below what was durable: \(segment) at byte \(position): \(detail). Nothing was "
                    + "changed. There is no other node to fetch a copy from: restore this node's folder from a backup of the "
                    + "stopped cluster")
        case .diskFull:
            NodeStartError("the disk that holds \(settings.dataPath) is full: make space and start again")
        default: NodeStartError("the raft log in \(settings.dataPath)/log cannot be opened: \(error)")
        }
    }

    /// How many shards there are is decided when the cluster is made; a configuration that says otherwise would look
    /// for zones where they are not. Who is in it, and where replicas are, the directory knows.
    static func requireSame(_ installed: ClusterMap, _ configured: ClusterMap) throws {
        guard installed.slots != configured.slots else { return }
        throw NodeStartError(
            "the cluster was made with \(installed.shards.count) shards, the configuration says \(configured.shards.count): give it "
                + "what it was made with")
    }

    static func makeTransport(
        _ settings: NodeSettings, identity: NodeIdentity, peers: [PeerAddress], lane: Lane,
        platform: any NodePlatform, logger: Logger
    ) throws -> any PeerNetwork {
        guard let own = settings.nodes.first(where: { $0.id == settings.nodeID.rawValue }) else {
            throw NodeStartError("node \(settings.nodeID) is not among the nodes of the configuration")
        }
        let configuration = PeerTransportConfiguration(
            nodeID: settings.nodeID, clusterID: settings.clusterID, listenHost: settings.peerListenHost,
            listenPort: own.peerPort, peers: peers, tls: settings.tls, incarnation: identity.incarnation,
            bootCounter: identity.bootCounter
        ) { [weak lane] in
            let least = max(settings.featureLevels.lowerBound, lane?.directoryLevel ?? .first)
            let most = max(settings.featureLevels.upperBound, least)
            return PeerPresence(
                build: PeerBuild(version: settings.version, levels: least.rawValue...most.rawValue),
                wallMilliseconds: platform.clock.wallMilliseconds)
        }
        settings.checkSizes(frameBytesMax: configuration.frameBytesMax)
        return try platform.makeNetwork(configuration, delegate: lane, logger: logger)
    }
}
