import RaftCore
import Storage
import Synchronization
import Testing

@Suite("Raft log collection") struct RaftLogCollectionTests {
    let folder = TemporaryFolder()

    /// Group 2 is idle: its state lives in the first segment only. Group 1 writes on.
    private func fill(_ log: RaftLog, _ indexes: ClosedRange<UInt64>) async throws {
        for index in indexes {
            try await log.write([LogWrite(group: group1, entries: commands(index...index, 1))]).get()
        }
    }

    private func begin(_ log: RaftLog) async throws {
        try await log.write([LogWrite(group: group2, hardState: vote(9, 3), snapshotMark: mark(70, 8))]).get()
        try await log.write([LogWrite(group: group1, hardState: vote(1, 1))]).get()
    }

    @Test("nothing goes while it is needed; then all but the last segments do, and states are carried") func collect()
        async throws
    {
        do {
            let (log, _) = try RaftLog.open(directory: folder.path, options: .small(1_024))
            try await begin(log)
            try await fill(log, 1...100)
            #expect(try await log.collectNow().get() == 0)
            log.setDurableIndex(mark(50, 1), of: group1)
            #expect(try await log.collectNow().get() > 1)
            #expect(try log.all(group1, from: 51) == commands(51...100, 1))
            #expect(try log.all(group1, from: 1) == nil)
            log.setDurableIndex(mark(100, 1), of: group1)
            #expect(try await log.collectNow().get() > 1)
            #expect(try await log.collectNow().get() == 0)
            #expect(log.sizeBytes <= 2_048)
            try await fill(log, 101...102)
        }
        let (log, groups) = try RaftLog.open(directory: folder.path, options: .small(1_024))
        #expect(groups[group2] == RecoveredGroup(hardState: vote(9, 3), snapshot: mark(70, 8)))
        #expect(groups[group1]?.snapshot == mark(100, 1))
        #expect(groups[group1]?.hardState == vote(1, 1))
        #expect(try log.all(group1, from: 101) == commands(101...102, 1))
    }

    @Test("what is submitted meanwhile waits for one segment, and not for all that go") func betweenSegments()
        async throws
    {
        let disk = FaultyDisk()
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small(1_024, disk: disk))
        try await begin(log)
        try await fill(log, 1...60)
        log.setDurableIndex(mark(60, 1), of: group1)
        let gone = Mutex(0)
        let goneWhenWritten = Mutex<Int?>(nil)
        disk.fail { call, path in
            guard call == .rename || call == .remove, path.hasSuffix(".seg") else { return nil }
            let number = gone.withLock { gone in
                gone += 1
                return gone
            }
            guard number == 1 else { return nil }
            log.submit([LogWrite(group: group1, entries: commands(61...61, 1))]) { _ in
                goneWhenWritten.withLock { $0 = gone.withLock(\.self) }
            }
            return nil
        }
        let dropped = try await log.collectNow().get()
        #expect(dropped > 2)
        #expect(gone.withLock(\.self) == dropped)
        #expect(goneWhenWritten.withLock(\.self) == 1)
        disk.fail(nil)
        #expect(try log.all(group1, from: 61) == commands(61...61, 1))
        log.close()
    }

    @Test("collected segments are kept for another use up to the target size, and the rest removed") func spares()
        async throws
    {
        let disk = FaultyDisk()
        var options = RaftLogOptions.small(1_024, disk: disk)
        options.sizeBytesTarget = 8 * 1_024
        let (log, _) = try RaftLog.open(directory: folder.path, options: options)
        try await fill(log, 1...200)
        log.setDurableIndex(mark(200, 1), of: group1)
        let dropped = try await log.collectNow().get()
        let used = log.sizeBytes / 1_024
        #expect(try folder.names(endingIn: ".free").count { $0.hasPrefix("spare") } == 8 - used)
        #expect(disk.count(.remove) == dropped - (8 - used))
        log.close()
    }

    @Test("a crash at any step of collection loses nothing") func crashes() async throws {
        let disk = FaultyDisk()
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small(1_024, disk: disk))
        try await begin(log)
        try await fill(log, 1...60)
        log.setDurableIndex(mark(40, 1), of: group1)
        let copies = Mutex<[TemporaryFolder]>([])
        let folder = folder
        disk.fail { _, _ in
            if let copy = try? folder.copy() { copies.withLock { $0.append(copy) } }
            return nil
        }
        #expect(try await log.collectNow().get() > 1)
        disk.fail(nil)
        log.close()
        let steps = copies.withLock { $0 }
        #expect(steps.count > 5)
        for step in steps {
            let (log, groups) = try RaftLog.open(directory: step.path, options: .small(1_024))
            #expect(groups[group2] == RecoveredGroup(hardState: vote(9, 3), snapshot: mark(70, 8)))
            #expect(groups[group1]?.hardState == vote(1, 1))
            #expect(groups[group1]?.lastLog.index == LogIndex(60))
            #expect(try log.all(group1, from: 41) == commands(41...60, 1))
        }
    }

    @Test("old content of recycled segments never comes back") func recycling() async throws {
        let disk = FaultyDisk()
        var next: UInt64 = 1
        for round in UInt64(1)...6 {
            let (log, groups) = try RaftLog.open(directory: folder.path, options: .small(1_024, disk: disk))
            #expect(groups[group1]?.lastLog.index.rawValue ?? 0 == next - 1)
            try await fill(log, next...next + 49)
            next += 50
            log.setDurableIndex(mark(next - 3, 1), of: group1)
            #expect(try await log.collectNow().get() > 1)
            try await fill(log, next...next + 29)
            next += 30
            // Odd rounds crash: the copy goes on in place of the folder.
            let crashed = try folder.copy()
            log.close()
            let source = round % 2 == 1 ? crashed : folder
            let (again, recovered) = try RaftLog.open(
                directory: source.path, options: .small(1_024))
            #expect(recovered[group1]?.lastLog.index.rawValue == next - 1)
            let first = try #require(recovered[group1]?.firstIndex.rawValue)
            #expect(try again.all(group1, from: first) == commands(first...next - 1, 1))
            again.close()
        }
        #expect(disk.count(.rename) > 12)
    }

    @Test("groups that hold up collection are named once the log is too large") func pinning() async throws {
        var options = RaftLogOptions.small(1_024)
        options.sizeBytesTarget = 4_096
        let (log, _) = try RaftLog.open(directory: folder.path, options: options)
        try await log.write([LogWrite(group: group2, entries: commands(1...1, 1))]).get()
        try await fill(log, 1...5)
        #expect(log.pinningGroups == [])
        try await fill(log, 6...100)
        #expect(log.pinningGroups == [group1, group2])
        log.setDurableIndex(mark(100, 1), of: group1)
        #expect(log.pinningGroups == [group2])
        #expect(try await log.collectNow().get() == 0)
        log.setDurableIndex(mark(1, 1), of: group2)
        #expect(log.pinningGroups == [])
        #expect(try await log.collectNow().get() > 0)
    }

    @Test("what the state machine has of another leader lets nothing go before the log has taken it") func otherTerm()
        async throws
    {
        do {
            let (log, _) = try RaftLog.open(directory: folder.path, options: .small(1_024))
            try await fill(log, 1...100)
            // A snapshot was put in place of the database; the log is told next.
            log.setDurableIndex(mark(90, 2), of: group1)
            #expect(try await log.collectNow().get() == 0)
            try await log.write([LogWrite(group: group1, snapshotMark: mark(90, 2))]).get()
            #expect(try await log.collectNow().get() > 0)
        }
        let (_, groups) = try RaftLog.open(directory: folder.path, options: .small(1_024))
        #expect(groups[group1]?.snapshot == mark(90, 2))
        #expect(groups[group1]?.lastLog == LogPosition(index: LogIndex(90), term: Term(2)))
    }

    @Test("groups are named as long as they have entries past what is durable") func uncheckpointed() async throws {
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small(1_024))
        #expect(log.uncheckpointedGroups == [])
        try await log.write([LogWrite(group: group2, entries: commands(1...1, 1))]).get()
        try await fill(log, 1...5)
        #expect(log.uncheckpointedGroups == [group1, group2])
        log.setDurableIndex(mark(4, 1), of: group1)
        log.setDurableIndex(mark(1, 1), of: group2)
        #expect(log.uncheckpointedGroups == [group1])
        log.setDurableIndex(mark(7, 1), of: group1)
        #expect(log.uncheckpointedGroups == [])
        try await fill(log, 6...8)
        #expect(log.uncheckpointedGroups == [group1])
    }

    @Test("recent entries are kept for followers while the log is small") func keptEntries() async throws {
        var options = RaftLogOptions.small(1_024)
        options.keepEntries = 30
        let (log, _) = try RaftLog.open(directory: folder.path, options: options)
        try await fill(log, 1...100)
        log.setDurableIndex(mark(100, 1), of: group1)
        #expect(try await log.collectNow().get() > 0)
        #expect(try log.all(group1, from: 71) == commands(71...100, 1))
    }

    @Test("what follows a copy that is on its way to a follower is kept, unless the log is far too large")
    func copies() async throws {
        for (targetBytes, isKept) in [(1 << 20, true), (256, false)] {
            let folder = TemporaryFolder()
            var options = RaftLogOptions.small(1_024)
            options.keepEntries = 0
            options.sizeBytesTarget = targetBytes
            let (log, _) = try RaftLog.open(directory: folder.path, options: options)
            func has(_ index: UInt64) throws -> Bool {
                try log.entries(of: group1, from: LogIndex(index), through: LogIndex(index), bytesMax: 1) != nil
            }
            try await fill(log, 1...100)
            log.keepEntries(past: LogIndex(40), forCopy: 7, of: group1)
            log.keepEntries(past: LogIndex(60), forCopy: 8, of: group1)
            log.setDurableIndex(mark(100, 1), of: group1)
            #expect(try await log.collectNow().get() > 0)
            #expect(try has(41) == isKept)
            log.keepEntries(past: nil, forCopy: 7, of: group1)
            #expect((try await log.collectNow().get() > 0) == isKept)
            #expect(try has(61) == isKept)
        }
    }
}
