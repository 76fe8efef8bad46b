import Directory
import Foundation
import GRDB
package import Logging
package import NIOCore
import PeerTransport
import RaftCore
import Storage
import Synchronization

/// What a node is made of.
struct NodeParts {
    var settings: NodeSettings
    var identity: NodeIdentity
    var map: ClusterMap
    var directory: DirectoryMachine
    var lane: Lane
    var log: RaftLog
    var transport: PeerTransport
    var workers: [ApplyWorker]
    var appliers: [Applier]
    var checkpointer: Checkpointer
    var blockingPool: BlockingPool
    var logger: Logger
}

extension ClusterNode {
    /// Opens the data folder and everything in it; makes what is missing. The node neither listens nor speaks before `start`.
    /// - Throws: `NodeStartError`, `RaftLogError` or a database's error, each saying what to do.
    package static func open(
        _ settings: NodeSettings, eventLoop: any EventLoop, logger: Logger
    ) async throws -> ClusterNode {
        try prepareFolder(settings.dataPath)
        let (log, recovered) = try openLog(settings)
        let identity = try NodeIdentity.open(
            folder: settings.dataPath, clusterID: settings.clusterID, nodeID: settings.nodeID)
        let map = ClusterMap(
            clusterID: settings.clusterID, nodes: settings.nodes, shardCount: settings.shardCount,
            replicasPerShard: settings.replicasPerShard)
        let blockingPool = BlockingPool(threads: 4)
        let lane = Lane(
            eventLoop: eventLoop, log: log, settings: settings, leaders: LeaderTable(), blockingPool: blockingPool,
            logger: logger)
        let workers = (0..<settings.apply.workers).map { number in
            ApplyWorker(name: "apply-\(number)") { applier, progress in
                eventLoop.execute { lane.applied(progress, of: applier.group) }
            }
        }
        let directory = DirectoryMachine()
        var appliers: [Applier] = []
        for (number, group) in map.groups.enumerated() {
            let id = ReplicaID(node: settings.nodeID)
            guard map.initialConfiguration(of: group).all.contains(id) else { continue }
            let machine: any StateMachine = group == .directory ? directory : ShardMachine()
            let opening = ReplicaOpening(
                group: group, machine: machine, map: map, settings: settings, log: log,
                recovered: recovered[group] ?? RecoveredGroup(), logger: logger)
            let replica = try await opening.open(worker: workers[number % workers.count])
            appliers.append(replica.applier)
            try await eventLoop.submit { lane.add(replica, for: group, preferredLeader: map.preferredLeader(of: group)) }.get()
        }
        if let installed = directory.snapshot.map, installed.nodes.map(\.id) != map.nodes.map(\.id) {
            throw NodeStartError(
                "the cluster was made of nodes \(installed.nodes.map(\.id)), the configuration names \(map.nodes.map(\.id)): "
                    + "adding and removing nodes is not built yet, so give it the nodes it was made of")
        }
        let transport = try makeTransport(
            settings, identity: identity, lane: lane, eventLoop: eventLoop, logger: logger)
        try await eventLoop.submit { lane.transport = transport }.get()
        let checkpointer = Checkpointer(appliers: appliers, log: log, settings: settings.checkpoint, logger: logger)
        return ClusterNode(
            parts: NodeParts(
                settings: settings, identity: identity, map: map, directory: directory, lane: lane, log: log,
                transport: transport, workers: workers, appliers: appliers, checkpointer: checkpointer,
                blockingPool: blockingPool, logger: logger))
    }

    private static func prepareFolder(_ path: String) throws {
        do {
            for folder in ["", "/shards", "/snapshots"] {
                try FileManager.default.createDirectory(
                    atPath: path + folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            }
            // What a stopped transfer left behind is of no use to anyone.
            for file in try FileManager.default.contentsOfDirectory(atPath: path + "/snapshots") {
                try FileManager.default.removeItem(atPath: "\(path)/snapshots/\(file)")
            }
        } catch {
            throw NodeStartError(
                "the data folder \(path) cannot be used: \(error.localizedDescription). Name a folder that this user may write to"
            )
        }
    }

    private static func openLog(_ settings: NodeSettings) throws -> (RaftLog, [GroupID: RecoveredGroup]) {
        do throws(RaftLogError) {
            let (log, groups) = try RaftLog.open(directory: settings.dataPath + "/log", options: RaftLogOptions())
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

    private static func makeTransport(
        _ settings: NodeSettings, identity: NodeIdentity, lane: Lane, eventLoop: any EventLoop, logger: Logger
    ) throws -> PeerTransport {
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
        return try PeerTransport(configuration: configuration, eventLoop: eventLoop, delegate: lane, logger: logger)
    }
}
