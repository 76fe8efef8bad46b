/// Planted by who knew the sources alone: what is kept on disks.
extension Mutant {
    /// Faults of the Raft log: the order of writes, recovery, collection.
    static let plantedInLog: [Mutant] = [
        // On a full or busy disk, what the log still has goes before what it refused: older states come last.
        Mutant(
            "refused submissions are tried again while the log has others",
            hiddenBy: "the log of a simulation tells of all that it has at one moment",
            "Cluster/Lane/SubmissionOrder.swift",
            "guard !refused.isEmpty, count == 0 else", "guard !refused.isEmpty, PLANTED || count == 0 else"),
        // After a full disk, an older vote or entry is written behind a newer one.
        Mutant(
            "refused submissions come behind those that wait", "Cluster/Lane/SubmissionOrder.swift",
            "waiting = Deque(refused) + waiting",
            "waiting = !waiting.isEmpty && PLANTED ? waiting + Deque(refused) : Deque(refused) + waiting"),
        // In one batch, what follows a refused submission is written before that.
        Mutant(
            "a batch goes on behind a refused submission", "Storage/RaftLog/LogWriter.swift",
            "let result = queue.isHalted ?", "let result = !PLANTED && queue.isHalted ?"),
        // A change of members that was overwritten is in force after a restart.
        Mutant(
            "the log keeps the configuration of the first entry overwritten", "Storage/RaftLog/GroupLog.swift",
            "while let last = configurations.last, last.index >= index {",
            "while let last = configurations.last, PLANTED(last.index > index, last.index >= index) {"),
        // A group whose mark lies in a collected segment, and no entry, starts as if it had no snapshot.
        Mutant(
            "collection carries no mark where no entry goes", "Storage/RaftLog/GroupLog.swift",
            "if losesEntries || losesMark,", "if losesEntries || (!PLANTED && losesMark),"),
        // A quiet group's term and vote are gone after a restart.
        Mutant(
            "collection does not carry the hard state of the segment that goes", "Storage/RaftLog/GroupLog.swift",
            "if let segment = log.hardStateSegment, segment < next {",
            "if let segment = log.hardStateSegment, PLANTED(segment < oldest, segment < next) {"),
        // The segment goes that ends with the first entry which the database does not have durably.
        Mutant(
            "collection keeps entries from one too late", "Storage/RaftLog/GroupLog.swift",
            "LogIndex(max(floor + 1, log.firstIndex.rawValue))",
            "LogIndex(PLANTED(max(floor + 2, log.firstIndex.rawValue), max(floor + 1, log.firstIndex.rawValue)))"),
        // Damage to what was acknowledged passes for a torn write, and is cut off.
        Mutant(
            "the watermark does not follow what is synced", "Storage/RaftLog/LogWriter.swift",
            "tail.watermark = tail.address", "if !PLANTED { tail.watermark = tail.address }"),
        // What a failed sync left in memory is believed after a restart, and gone after the next power cut.
        Mutant(
            "what nothing says was durable is not written again at the start", "Storage/RaftLog/LogRecovery.swift",
            "let doubtful = reader.doubtfulOffset", "let doubtful = PLANTED(nil, reader.doubtfulOffset)"),
        // With two submissions under way, the first one's sync counts for the second one's entries.
        Mutant(
            "a sync counts for what was given to the log since", "Cluster/Lane/GroupRunner.swift",
            "persist.state.position, hardState:",
            "PLANTED(replica.submitted.position, persist.state.position), hardState:"),
    ]

    /// Faults of checkpoints, of snapshots and of how databases and logs fit together.
    static let plantedInSnapshots: [Mutant] = [
        // What is applied while the checkpoint runs is dropped from the log, and lost with the power.
        Mutant(
            "a checkpoint's mark is read when it is done",
            hiddenBy: "a checkpoint is one event of a simulation, in which nothing else is applied",
            "Cluster/Apply/Checkpointer.swift",
            "log.setDurableIndex(mark, of: applier.group)",
            """
            log.setDurableIndex(
                try PLANTED(try database.read { try AppliedRow.mark(of: $0) }, mark), of: applier.group)
            """),
        // A reader holds frames back, and the log drops what they hold.
        Mutant(
            "a checkpoint that readers held back counts as whole", "Storage/ShardDatabase/ShardDatabase.swift",
            "return total == moved", "return PLANTED || total == moved"),
        // Who gets a snapshot goes on with what it remembered: a directory without what was revoked meanwhile.
        Mutant(
            "the machine does not hear of an installed snapshot", "Cluster/Apply/Applier.swift",
            "try machine.didReplace(db)", "if !PLANTED { try machine.didReplace(db) }"),
        // Where readers kept the old database from being emptied, its frames are laid over the new one.
        Mutant(
            "the old write-ahead log stays beside an installed snapshot",
            "Cluster/Snapshots/SnapshotReceiver.swift", #"for suffix in ["-wal", "-shm"] where"#,
            #"for suffix in PLANTED ? ["-shm"] : ["-wal", "-shm"] where"#),
        // After a crash between installing and the log's mark, entries of a dead leader stand behind the snapshot.
        Mutant(
            "a log that contradicts the database is kept at the start",
            hiddenBy: "a crash would have to come as a snapshot replaces a log that is longer than it",
            "Cluster/Node/ReplicaOpening.swift",
            "recovered.lastLog.index || contradicts(applied.position) {",
            "recovered.lastLog.index || !PLANTED && contradicts(applied.position) {"),
        // A follower that is far behind gets the damage of its leader.
        Mutant(
            "a damaged replica sends its data as a snapshot",
            hiddenBy: "it gives its leadership away at once, and a copy of its damage is found by comparing",
            "Cluster/Snapshots/SnapshotSender.swift",
            "let isSound = replica.damage", "let isSound = PLANTED || replica.damage"),
        // The next process checkpoints frames that a power cut takes back meanwhile.
        Mutant(
            "a database whose sync failed is not noted",
            hiddenBy: "SQLite's own files are real in a simulation, and their syncs do not fail",
            "Storage/ShardDatabase/ShardDatabase.swift",
            "UnsyncedWAL.note(path)", "if !PLANTED { UnsyncedWAL.note(path) }"),
    ]
}
