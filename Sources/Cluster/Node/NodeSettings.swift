package import Directory
package import PeerTransport
package import RaftCore
package import RecordModel
package import Storage
package import Telemetry

/// What a node must be told to run.
package struct NodeSettings: Sendable {
    /// The id of this node; the node does not start unless `nodes` has it.
    package var nodeID: NodeID
    /// Random, the same on every node of a cluster.
    package var clusterID: String
    /// The folder that holds everything this node keeps.
    package var dataPath: String
    /// Every node of the cluster, this one among them.
    package var nodes: [ClusterMap.Node]
    /// Where the peer port listens; nodes are dialled at the addresses of `nodes`.
    package var peerListenHost: String
    /// The PEM files with which connections between nodes are authenticated, in both directions.
    package var tls: PeerTLS
    /// What is watched for certificates that are about to expire.
    package var certificates: [CertificateFile]
    /// The key, 32 bytes, that wraps the keys of encrypted fields, the same on every node; without it such fields are
    /// refused.
    package var encryptionKey: [UInt8]?
    /// The program's version, for peers and operators.
    package var version = ""
    /// The feature levels that this node follows. The upper end may be lowered: it holds the cluster back while it is
    /// upgraded.
    package var featureLevels = FeatureLevel.supported
    /// Counts only when the cluster is made.
    package var shardCount = 16
    /// Counts only when the cluster is made; a shard has fewer replicas while there are fewer nodes.
    package var replicasPerShard = 3
    /// `RaftSettings.electionTimeoutMilliseconds` of a group's preferred leader; half as much again for other replicas.
    /// At least two heartbeat intervals, and the same on every node, since leases depend on it.
    package var electionTimeoutMilliseconds: UInt64 = 600
    /// How often an idle leader sends heartbeats, at multiples of the interval; the same on every node.
    package var heartbeatIntervalMilliseconds: UInt64 = 100
    /// For how long a node relies on what it knows of the directory; the same on every node, and a change of the
    /// directory takes that long when a node cannot be reached.
    package var directoryLeaseMilliseconds: UInt64 = 1_000
    /// Whether leaders answer reads under a lease, without a round of messages. Each node's own matter.
    package var usesLeases = true
    /// How often timers are looked at: how late an election or a heartbeat may be.
    package var tickMilliseconds: UInt64 = 10
    /// What the node counts and times.
    package var metrics = MetricsRegistry()
    /// What records the traces of its requests; nil: nothing does.
    package var tracer: NodeTracer?
    /// The options of the raft log; the node sets `haltsAfterRefusal`, `scheduling`, `timers` and `random` itself.
    package var log = RaftLogOptions()
    /// The limits of each replica's core; its times and turns are set for each.
    package var raft = RaftSettings()
    /// The most bytes of one command, encoded; the same on every node. It must fit a segment of `log`.
    package var commandBytesMax = Entry.commandBytesMax
    /// Room on the disk that is kept for when there is no other, beside the log's reserve segment.
    package var spaceReserveBytes = 8 << 20
    /// How committed entries are applied; the node sets `timers` itself.
    package var apply = ApplySettings()
    /// When changes move from the WALs into the databases.
    package var checkpoint = CheckpointSettings()
    /// The limits and intervals of work with the files that records name.
    package var assets = AssetSettings()
    /// How often a part of a group's state is compared over its replicas, in milliseconds.
    package var scrubIntervalMilliseconds: UInt64 = 10_000
    /// How long a node must lead a group that another should lead before it hands it over.
    package var rebalanceDelayMilliseconds: UInt64 = 5_000
    /// How often the replicas on this node are held against the map.
    package var membershipIntervalMilliseconds: UInt64 = 500
    /// How long a request is tried before its client is told to try again, in milliseconds.
    package var requestDeadlineMilliseconds: UInt64 = 2_400

    package init(
        nodeID: NodeID, clusterID: String, dataPath: String, nodes: [ClusterMap.Node], peerListenHost: String,
        tls: PeerTLS
    ) {
        self.nodeID = nodeID
        self.clusterID = clusterID
        self.dataPath = dataPath
        self.nodes = nodes
        self.peerListenHost = peerListenHost
        self.tls = tls
        certificates = [
            CertificateFile("peer", path: tls.certificatePath), CertificateFile("peer-ca", path: tls.authorityPath),
        ]
    }

    /// How a command is too large; nil if it is not.
    func excess(of command: [UInt8]) -> Oversize? {
        command.count <= commandBytesMax
            ? nil : Oversize(.request, bytes: command.count, bytesMax: commandBytesMax)
    }

    /// Traps unless what one limit lets through fits the next: a command the frames that carry it, the log's segment,
    /// and memory until it is applied, as its outcome is not known otherwise; an append of several entries its frame;
    /// and what one group may have uncommitted the log's queue. What all groups may have together is more than that
    /// queue takes; then the lane refuses proposals until there is room.
    func checkSizes(frameBytesMax: Int) {
        let entryBytesMax = commandBytesMax + Entry.overheadBytesMax
        let appendBytesMax = max(raft.appendBytesMax, raft.probeBytesMax) + Entry.overheadBytesMax
        precondition(
            max(entryBytesMax, appendBytesMax) <= frameBytesMax,
            "a command of \(commandBytesMax) bytes or an append of \(appendBytesMax) does not fit a frame of \(frameBytesMax)"
        )
        precondition(
            entryBytesMax <= log.recordBytesMax,
            "a command of \(commandBytesMax) bytes does not fit a record of \(log.recordBytesMax)")
        precondition(
            entryBytesMax <= 3 * raft.cacheBytesMax,
            "a command of \(commandBytesMax) bytes leaves a cache of \(raft.cacheBytesMax) before it is applied")
        precondition(
            commandBytesMax <= raft.uncommittedBytesMax && raft.uncommittedBytesMax <= log.queueBytesMax,
            "\(commandBytesMax) of a command, \(raft.uncommittedBytesMax) uncommitted, \(log.queueBytesMax) in the queue"
        )
    }
}

/// How committed entries are applied.
package struct ApplySettings: Sendable {
    /// Threads that apply shards, each of which belongs to one; the directory has another to itself.
    package var workers = 2
    /// How far a follower may stay behind in order to apply in larger transactions.
    package var followerDelayMilliseconds: UInt64 = 100
    /// Committed entries at which a follower applies before that delay is over.
    package var followerEntriesMax: UInt64 = 2_000
    /// Entries that may wait for an applier in memory.
    package var backlogEntriesMax: UInt64 = 10_000
    /// Entries of one SQLite transaction.
    package var entriesPerTransactionMax = 2_000
    /// Bytes of the entries of one SQLite transaction, which has one at least.
    package var bytesPerTransactionMax = 4 << 20
    /// A SQLite transaction ends with the command that brings its changed rows to this number.
    package var rowsPerTransactionMax = 50_000
    /// Where transactions are timed.
    package var timers = NodeTimers(MetricsRegistry())
}

/// When shard databases are checkpointed.
package struct CheckpointSettings: Sendable {
    /// How often the databases are looked at.
    package var intervalMilliseconds: UInt64 = 1_000
    /// A write-ahead log above this many bytes is checkpointed at once.
    package var walBytesMax = 8 * 1_048_576
    /// A database with anything to checkpoint is, after this long.
    package var ageMilliseconds: UInt64 = 30_000
}

/// How the files that records name are kept.
package struct AssetSettings: Sendable {
    /// The calls of the disk.
    package var disk: any LogDisk = PosixDisk()
    /// Uploads that may be received at once.
    package var uploadsMax = 64
    /// Files that are fetched from peers at once.
    package var pullsMax = 4
    /// Missing files that are noted at a time, a page of tables more or less; the others follow once these are fetched.
    /// Of those that no node has, as many are remembered beside them.
    package var wantedMax = 10_000
    /// How long a peer has for a piece of 256 KiB, in milliseconds.
    package var pieceMilliseconds: UInt64 = 5_000
    /// How long a peer that copies an upload waits for the next block of it, in milliseconds; no upload takes longer.
    package var uploadMilliseconds: UInt64 = 3_700_000
    /// How long the nodes of a group have to fetch a file that they are to hold, in milliseconds.
    package var holdMilliseconds: UInt64 = 60_000
    /// Room on the disk that files never take.
    package var spareBytes = 64 << 20
    /// How long a file is kept that no record names, in milliseconds.
    package var graceMilliseconds = AssetReference.graceMilliseconds
    /// A file that was asked for so recently is not marked again, in milliseconds.
    package var renewalMilliseconds: Int64 = 600_000

    /// How often work with files is looked for, in milliseconds.
    package var roundMilliseconds: UInt64 = 500
    /// How often all tables are compared with the files, beside at the start and after a snapshot, in milliseconds.
    package var comparisonMilliseconds: UInt64 = 3_600_000
    /// How often nodes are asked again for files that none of them had, in milliseconds.
    package var searchMilliseconds: UInt64 = 60_000
    /// How often files are looked for that nothing names, in milliseconds.
    package var collectionMilliseconds: UInt64 = 600_000
    /// Bytes that are compared with their hashes in a second; at least 1.
    package var scrubBytesPerSecond: UInt64 = 4 << 20
    /// How long that rests when it has been through all files, in milliseconds.
    package var scrubPauseMilliseconds: UInt64 = 3_600_000

    /// The standard values.
    package init() {}
}
