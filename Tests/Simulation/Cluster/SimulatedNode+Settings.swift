import Cluster
import Directory
import Logging
import PeerTransport
import RaftCore
import Storage

// What a simulated node is told, and what it says.
extension SimulatedNode {
    func logger(of process: ProcessLife) -> Logger {
        Logger(label: "node-\(number)") { [self] _ in NodeVoice(node: self, process: process) }
    }

    func settings(_ disk: SimulatedDisk) -> NodeSettings {
        var settings = NodeSettings(
            nodeID: NodeID(UInt64(number)), clusterID: "simulation", dataPath: folder, nodes: members,
            peerListenHost: "simulated",
            tls: PeerTLS(authorityPath: "", certificatePath: "", keyPath: ""))
        settings.featureLevels = levels
        settings.version = "\(levels)"
        settings.encryptionKey = [UInt8](repeating: 7, count: 32)
        settings.shardCount = options.shards
        settings.electionTimeoutMilliseconds = options.electionTimeoutMilliseconds
        settings.heartbeatIntervalMilliseconds = options.heartbeatIntervalMilliseconds
        settings.tickMilliseconds = options.tickMilliseconds
        settings.rebalanceDelayMilliseconds = options.rebalanceDelayMilliseconds
        settings.requestDeadlineMilliseconds = 6_000
        settings.directoryLeaseMilliseconds = 8_000
        settings.spaceReserveBytes = 64 << 10
        settings.scrubIntervalMilliseconds = options.scrubIntervalMilliseconds
        settings.log.segmentBytes = options.segmentBytes
        settings.commandBytesMax = options.segmentBytes / 2
        settings.log.sizeBytesTarget = options.logBytesTarget
        settings.log.keepEntries = options.keepEntries
        settings.log.disk = disk
        settings.log.queueBytesMax = options.logQueueBytes
        settings.raft = options.raft
        if let apply = options.apply {
            settings.apply.backlogEntriesMax = apply.backlogMax
            settings.apply.followerEntriesMax = apply.followerMax
            settings.apply.entriesPerTransactionMax = apply.transactionMax
        }
        settings.assets = assetSettings(disk)
        settings.checkpoint.intervalMilliseconds = options.checkpointMilliseconds
        settings.checkpoint.ageMilliseconds = options.checkpointAgeMilliseconds
        return settings
    }
}

/// Says in the simulation's story what a node logs, and passes on what it takes for an error.
private struct NodeVoice: LogHandler {
    let node: SimulatedNode
    let process: ProcessLife
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    init(node: SimulatedNode, process: ProcessLife) {
        self.node = node
        self.process = process
        logLevel = node.world.narrator == nil ? .info : .debug
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let text = "\(event.message)"
        node.world.note("  node \(node.number): \(text)")
        for (words, situation) in Situation.said where text.contains(words) {
            node.world.met(situation)
            guard situation == .snapshotInstalled, !process.isDead else { continue }
            node.onEffects?(.snapshotWithEffects)
            node.onInstall?(text)
        }
        // What is left of a dead process has lost its folder, and may say so.
        guard event.level >= .error, !process.isDead else { return }
        if text.contains("begins anew") { node.mustBeginAnew = nil }
        node.onError?(text)
    }
}
