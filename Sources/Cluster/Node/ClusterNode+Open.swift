import Directory
import Foundation
import GRDB
package import Logging
import NIOCore
import PeerTransport
import RaftCore
import Storage
import Synchronization

/// What a node is made of.
struct NodeParts {
    var platform: any NodePlatform
    var settings: NodeSettings
    var identity: NodeIdentity
    var map: ClusterMap
    var directory: DirectoryMachine
    var vault: FieldVault
    var changes: ChangeBell
    var lane: Lane
    var log: RaftLog
    var transport: any PeerNetwork
    var workers: [any SerialQueue]
    var appliers: [Applier]
    var checkpointer: Checkpointer
    var blockingPool: any WorkPool
    var snapshotPool: any WorkPool
    var logger: Logger
}

extension ClusterNode {
    /// Opens the data folder and everything in it; makes what is missing. The node neither listens nor speaks before `start`.
    /// - Throws: `NodeStartError`, `RaftLogError` or a database's error, each saying what to do.
    package static func open(
        _ settings: NodeSettings, platform: any NodePlatform, logger: Logger
    ) async throws -> ClusterNode {
        let eventLoop = platform.eventLoop
        try prepareFolder(settings.dataPath)
        try requireLog(settings.dataPath)
        let (log, recovered) = try openLog(settings, platform)
        // The log's lock makes sure that these are nobody else's: what a stopped transfer left behind is of no use.
        try clearSnapshots(settings.dataPath)
        let identity = try NodeIdentity.open(
            folder: settings.dataPath, clusterID: settings.clusterID, nodeID: settings.nodeID,
            random: platform.random)
        let map = ClusterMap(
            clusterID: settings.clusterID, nodes: settings.nodes, shardCount: settings.shardCount,
            replicasPerShard: settings.replicasPerShard)
        let blockingPool = platform.makeWorkPool(threads: 4)
        let snapshotPool = platform.makeWorkPool(threads: 1)
        let lane = Lane(
            platform: platform, log: log, settings: settings, leaders: LeaderTable(), blockingPool: blockingPool,
            snapshotPool: snapshotPool, logger: logger)
        let workers = (0..<settings.apply.workers).map { platform.makeSerialQueue(name: "apply-\($0)") }
        let vault = FieldVault(clusterKey: settings.encryptionKey)
        let changes = ChangeBell()
        let directory = DirectoryMachine(vault: vault) { changes.ring(.directory) }
        var appliers: [Applier] = []
        for (number, group) in map.groups.enumerated() {
            let id = ReplicaID(node: settings.nodeID)
            guard map.initialConfiguration(of: group).all.contains(id) else { continue }
            let machine: any StateMachine =
                group == .directory ? directory : shardMachine(of: group, vault: vault, changes: changes)
            let opening = ReplicaOpening(
                group: group, machine: machine, map: map, settings: settings, log: log,
                recovered: recovered[group] ?? RecoveredGroup(), platform: platform, logger: logger)
            let replica = try await opening.open(worker: workers[number % workers.count])
            appliers.append(replica.applier)
            try await eventLoop.submit {
                lane.add(replica, for: group, preferredLeader: map.preferredLeader(of: group))
            }.get()
        }
        if let installed = directory.snapshot.map { try requireSame(installed, map) }
        let transport = try makeTransport(
            settings, identity: identity, lane: lane, platform: platform, logger: logger)
        try await eventLoop.submit { lane.transport = transport }.get()
        let checkpointer = Checkpointer(appliers: appliers, log: log, settings: settings.checkpoint, logger: logger)
        let node = ClusterNode(
            parts: NodeParts(
                platform: platform, settings: settings, identity: identity, map: map, directory: directory,
                vault: vault, changes: changes,
                lane: lane, log: log, transport: transport, workers: workers, appliers: appliers,
                checkpointer: checkpointer,
                blockingPool: blockingPool, snapshotPool: snapshotPool, logger: logger))
        try await eventLoop.submit {
            lane.catchUp = { [weak node] completion in
                guard let node else { return completion(false) }
                platform.startTask { completion(await (try? node.refreshDirectory()) != nil) }
            }
        }.get()
        return node
    }

    private static func shardMachine(of group: GroupID, vault: FieldVault, changes: ChangeBell) -> ShardMachine {
        ShardMachine(vault: vault) { change in
            switch change {
            case .stores(let stores): changes.ring(.stores(stores, in: group))
            case .all: changes.ring(.everyStore(in: group))
            }
        }
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

    /// A folder that has been started before has a log: without it the node would have forgotten its votes.
    private static func requireLog(_ path: String) throws {
        let files = FileManager.default
        guard files.fileExists(atPath: path + "/node.json"), !files.fileExists(atPath: path + "/log/identity") else {
            return
        }
        throw NodeStartError(
            "\(path)/log is missing, and with it what this node voted and acknowledged: put it back (replacing a node is not "
                + "built yet)")
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
    ) throws -> (RaftLog, [GroupID: RecoveredGroup]) {
        do throws(RaftLogError) {
            var options = settings.log
            options.haltsAfterRefusal = true
            options.scheduling = platform.logScheduling
            options.random = platform.random
            let (log, groups) = try RaftLog.open(directory: settings.dataPath + "/log", options: options)
            return (log, groups)
        } catch {
            switch error {
            case .locked: throw NodeStartError("another process is using \(settings.dataPath): stop it first")
            case .corrupt(let segment, let position, let detail):
                throw NodeStartError(
                    "the raft log is damaged below what was durable: \(segment) at byte \(position): \(detail). Nothing was "
                        + "changed. Restore this node's folder from a backup of the stopped cluster")
            case .diskFull:
                throw NodeStartError("the disk that holds \(settings.dataPath) is full: make space and start again")
            default: throw NodeStartError("the raft log in \(settings.dataPath)/log cannot be opened: \(error)")
            }
        }
    }

    /// Placement is decided when the cluster is made; a configuration that says otherwise would look for zones where they are
    /// not. Addresses may change.
    static func requireSame(_ installed: ClusterMap, _ configured: ClusterMap) throws {
        guard
            installed.nodes.map(\.id) != configured.nodes.map(\.id) || installed.shards != configured.shards
                || installed.slots != configured.slots
        else { return }
        throw NodeStartError(
            "the cluster was made of nodes \(installed.nodes.map(\.id)) with \(installed.shards.count) shards of "
                + "\(installed.shards.first?.count ?? 0) replicas, the configuration says nodes \(configured.nodes.map(\.id)), "
                + "\(configured.shards.count) shards, \(configured.shards.first?.count ?? 0) replicas: changing them is not built "
                + "yet, so give it what it was made with")
    }

    private static func makeTransport(
        _ settings: NodeSettings, identity: NodeIdentity, lane: Lane, platform: any NodePlatform, logger: Logger
    ) throws -> any PeerNetwork {
        guard let own = settings.nodes.first(where: { $0.id == settings.nodeID.rawValue }) else {
            throw NodeStartError("node \(settings.nodeID) is not among the nodes of the configuration")
        }
        let knownPeers = try KnownPeers(folder: settings.dataPath)
        let configuration = PeerTransportConfiguration(
            nodeID: settings.nodeID, clusterID: settings.clusterID, listenHost: settings.peerListenHost,
            listenPort: own.peerPort,
            peers: settings.nodes.filter { $0.id != own.id }.map {
                PeerAddress(node: NodeID(rawValue: $0.id), host: $0.peerHost, port: $0.peerPort)
            },
            tls: settings.tls, incarnation: identity.incarnation, bootCounter: identity.bootCounter)
        lane.knownPeers = knownPeers
        return try platform.makeNetwork(configuration, delegate: lane, logger: logger)
    }
}
