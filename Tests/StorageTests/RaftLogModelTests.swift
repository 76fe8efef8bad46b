import RaftCore
import Storage
import Testing

/// What the log must hold of a group: the naive twin.
private struct TwinGroup: Equatable {
    var hardState = HardState()
    var snapshot: SnapshotMark?
    var entries: [Entry] = []
    /// What the state machine said it has; never rewritten, as in Raft.
    var durable: UInt64 = 0
    var snapshotIndex: UInt64 { snapshot?.position.index.rawValue ?? 0 }
    var last: LogPosition { entries.last?.position ?? snapshot?.position ?? .zero }

    mutating func take(_ mark: SnapshotMark) {
        guard mark.position.index.rawValue > snapshotIndex else { return }
        let isHeld = entries.contains { $0.position == mark.position }
        entries = isHeld ? entries.filter { $0.index > mark.position.index } : []
        snapshot = mark
    }

    mutating func append(_ new: [Entry]) {
        guard let first = new.first else { return }
        entries = entries.filter { $0.index < first.index } + new
    }
}

@Suite("Raft log against a naive twin") struct RaftLogModelTests {
    @Test("random writes, marks, collections, ends and crashes", arguments: UInt64(1)...12)
    func model(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        var folder = TemporaryFolder()
        var twins: [GroupID: TwinGroup] = [:]
        var options = RaftLogOptions.small(Int.random(in: 1...6, using: &random) * 1_024)
        options.keepEntries = Int.random(in: 0...20, using: &random)
        for _ in 0..<12 {
            let (log, groups) = try RaftLog.open(directory: folder.path, options: options)
            try Self.compare(groups, &twins, log)
            for _ in 0..<Int.random(in: 1...40, using: &random) {
                try await Self.step(log, &twins, &random)
            }
            try Self.compare(log, twins)
            if Bool.random(using: &random) {
                // A crash, as far as the files' content goes.
                let crashed = try folder.copy()
                log.close()
                folder = crashed
            } else {
                log.close()
            }
        }
    }

    private static func step(
        _ log: RaftLog, _ twins: inout [GroupID: TwinGroup], _ random: inout SplitMix64
    ) async throws {
        let group = GroupID(UInt64.random(in: 1...4, using: &random))
        switch Int.random(in: 0..<20, using: &random) {
        case 0:
            twins[group] = nil
            try await log.write([LogWrite(group: group, removeGroup: true)]).get()
        case 1:
            let index = (twins[group]?.last.index.rawValue ?? 0) + UInt64.random(in: 0...6, using: &random)
            guard index > 3, index - 3 > twins[group]?.durable ?? 0 else { return }
            let isTrue = Bool.random(using: &random)
            let known = twins[group]?.entries.first { isTrue && $0.index.rawValue == index - 3 }?.term.rawValue
            let mark = mark(index - 3, known ?? (twins[group]?.last.term.rawValue ?? 0) + 1)
            twins[group, default: TwinGroup()].take(mark)
            try await log.write([LogWrite(group: group, snapshotMark: mark)]).get()
        case 2, 3:
            guard let position = twins[group]?.entries.randomElement(using: &random)?.position else { return }
            log.setDurableIndex(mark(position.index.rawValue, position.term.rawValue), of: group)
            let known = twins[group]?.durable ?? 0
            twins[group]?.durable = max(known, position.index.rawValue)
            _ = try await log.collectNow().get()
        default:
            let twin = twins[group] ?? TwinGroup()
            let low = max(twin.snapshotIndex + 1, twin.last.index.rawValue > 2 ? twin.last.index.rawValue - 2 : 1)
            let isRewrite = Int.random(in: 0..<8, using: &random) == 0
            let first = isRewrite ? max(low, twin.durable + 1) : twin.last.index.rawValue + 1
            let term = twin.last.term.rawValue + (isRewrite ? 1 : UInt64.random(in: 0...1, using: &random))
            let count = UInt64.random(in: 1...8, using: &random)
            let text = String(repeating: "x", count: Int.random(in: 0...60, using: &random))
            let write = LogWrite(
                group: group, hardState: Bool.random(using: &random) ? vote(term, count % 2 == 0 ? count : nil) : nil,
                entries: commands(first...first + count - 1, max(1, term), text))
            var changed = twin
            changed.hardState = write.hardState ?? changed.hardState
            changed.append(write.entries)
            twins[group] = changed
            try await log.write([write]).get()
        }
    }

    /// The log may have dropped what was durable; then the twin drops it too.
    private static func compare(
        _ groups: [GroupID: RecoveredGroup], _ twins: inout [GroupID: TwinGroup], _ log: RaftLog
    ) throws {
        #expect(groups.keys.sorted() == twins.keys.sorted())
        for group in twins.keys.sorted() {
            guard var twin = twins[group], let recovered = groups[group] else { continue }
            let dropped = recovered.firstIndex.rawValue - 1
            #expect(dropped >= twin.snapshotIndex && dropped <= max(twin.snapshotIndex, twin.durable))
            #expect(recovered.hardState == twin.hardState)
            #expect(recovered.lastLog == twin.last)
            if dropped > twin.snapshotIndex { twin.snapshot = recovered.snapshot }
            twin.entries.removeAll { $0.index.rawValue <= dropped }
            twins[group] = twin
            #expect(recovered.snapshot == twin.snapshot)
            var terms: [LogPosition] = []
            for entry in twin.entries where terms.last?.term != entry.term { terms.append(entry.position) }
            #expect(recovered.terms == terms)
        }
        try compare(log, twins)
    }

    private static func compare(_ log: RaftLog, _ twins: [GroupID: TwinGroup]) throws {
        for group in twins.keys.sorted() {
            guard let twin = twins[group] else { continue }
            let first = max(twin.snapshotIndex, twin.durable) + 1
            #expect(try log.all(group, from: first) == twin.entries.filter { $0.index.rawValue >= first })
        }
    }
}
