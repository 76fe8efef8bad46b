// Faults in the log, and in what a node does with it.
extension Mutant {
    static let inLog: [Mutant] = [
        Mutant(
            "skip the fsync", "Storage/RaftLog/LogWriter.swift", "in try options.disk.sync(chunk.segment.file) }",
            "in if !(PLANTED) { try options.disk.sync(chunk.segment.file) } }"),
        Mutant(
            "drop segments without keeping votes and terms", "Storage/RaftLog/LogWriter.swift",
            "            try carryForward(plan)", "            if !(PLANTED) { try carryForward(plan) }"),
        Mutant(
            "drop one segment too many", "Storage/RaftLog/GroupLog.swift", "guard needed > oldest else { return nil }",
            """
            if needed < active, PLANTED { needed += 1 }
                    guard needed > oldest else { return nil }
            """),
        Mutant(
            "believe a torn record", "Storage/RaftLog/LogFormat.swift", "guard Self.checksum(of: bytes,",
            "guard PLANTED || Self.checksum(of: bytes,"),
        Mutant(
            "leave what a torn write left, and believe it",
            hiddenBy: "it takes a second torn write that ends where a record of the first begins",
            Edit(
                "Storage/RaftLog/LogRecovery.swift", "header.previous == previous\n",
                "PLANTED || header.previous == previous\n"),
            Edit(
                "Storage/RaftLog/LogRecovery.swift", "SegmentReader.writtenBytes(of: reader.bytes) > reader.offset {",
                "SegmentReader.writtenBytes(of: reader.bytes) > reader.offset, !PLANTED {")),
        Mutant(
            "forget the vote",
            hiddenBy: "nobody votes right after a start, and a pre-vote in the voter's own term is refused",
            "Cluster/Lane/GroupRunner.swift",
            "LogWrite(group: group, hardState: effects.hardState, entries: effects.append)",
            """
            LogWrite(
                        group: group,
                        hardState: PLANTED(effects.hardState.map { HardState(term: $0.term) }, effects.hardState),
                        entries: effects.append)
            """),
        Mutant(
            "answer before the log is durable", "Cluster/Lane/GroupRunner.swift",
            "        if let last = effects.append.last { replica.submitted.position = last.position }",
            """
                    if PLANTED { context.peers.send(effects.sendAfterPersist, of: group) }
                    if let last = effects.append.last { replica.submitted.position = last.position }
            """),
        Mutant(
            "call durable what was not checkpointed",
            hiddenBy: "no reader is at work while the one thread of a simulation checkpoints",
            "Cluster/Apply/Checkpointer.swift",
            "guard try isOverdue ? database.truncateWAL() : database.checkpoint() else { return }",
            "guard try PLANTED || (isOverdue ? database.truncateWAL() : database.checkpoint()) else { return }"),
    ]
}
