import RaftCore
import Synchronization
import Testing

@testable import Storage

@Suite("Raft log") struct RaftLogTests {
    let folder = TemporaryFolder()

    @Test("a new log is empty") func newLogIsEmpty() throws {
        let (log, groups) = try RaftLog.open(directory: folder.path, options: .small())
        #expect(groups.isEmpty)
        #expect(try log.all(group1, from: 1) == nil)
    }

    @Test("what was acknowledged is there after opening again, over several segments") func reopen() async throws {
        do {
            let (log, _) = try RaftLog.open(directory: folder.path, options: .small(disk: PosixDisk()))
            for index in UInt64(1)...200 {
                let write = LogWrite(group: group1, hardState: vote(3, 2), entries: [command(index, index / 50 + 1)])
                try await log.write([write]).get()
            }
            #expect(log.counters.appends == 200)
            #expect(log.sizeBytes > 3 * 4_096)
            log.close()
        }
        let (log, groups) = try RaftLog.open(directory: folder.path, options: .small(disk: PosixDisk()))
        let group = try #require(groups[group1])
        #expect(group.hardState == vote(3, 2))
        #expect(group.firstIndex == LogIndex(1))
        #expect(group.lastLog == LogPosition(index: LogIndex(200), term: Term(5)))
        #expect(group.terms.map(\.index.rawValue) == [1, 50, 100, 150, 200])
        #expect(try log.all(group1, from: 1) == (1...200).map { command($0, $0 / 50 + 1) })
        #expect(try log.all(group1, from: 201) == [])
    }

    @Test("entries come with a bound on bytes, at least one") func boundedReads() async throws {
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
        try await log.write([LogWrite(group: group1, entries: commands(1...20, 1))]).get()
        let few = try log.entries(of: group1, from: LogIndex(3), through: LogIndex(9), bytesMax: 150)
        #expect(few == commands(3...4, 1))
        #expect(try log.entries(of: group1, from: LogIndex(3), through: LogIndex(9), bytesMax: 0) == [command(3, 1)])
        #expect(
            try log.entries(of: group1, from: LogIndex(3), through: LogIndex(5), bytesMax: 9_999) == commands(3...5, 1))
    }

    @Test("an entry at or below the last replaces it and what follows") func suffixTruncation() async throws {
        let configuration = Entry(
            index: LogIndex(4), term: Term(1), payload: .configuration(Configuration(voters: [ReplicaID(7)])))
        do {
            let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
            try await log.write([LogWrite(group: group1, entries: commands(1...3, 1) + [configuration, command(5, 1)])])
                .get()
            try await log.write([LogWrite(group: group1, entries: commands(4...4, 2))]).get()
            #expect(try log.all(group1, from: 1) == commands(1...3, 1) + [command(4, 2)])
        }
        let (log, groups) = try RaftLog.open(directory: folder.path, options: .small())
        #expect(groups[group1]?.lastLog == LogPosition(index: LogIndex(4), term: Term(2)))
        #expect(groups[group1]?.configurations == [])
        #expect(try log.all(group1, from: 1) == commands(1...3, 1) + [command(4, 2)])
    }

    @Test("configurations in the retained log are found") func configurations() async throws {
        let voters = Configuration(voters: [ReplicaID(1), ReplicaID(2)], learners: [ReplicaID(3)])
        do {
            let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
            let entry = Entry(index: LogIndex(1), term: Term(1), payload: .configuration(voters))
            try await log.write([LogWrite(group: group1, entries: [entry, command(2, 1)])]).get()
        }
        let (_, groups) = try RaftLog.open(directory: folder.path, options: .small())
        #expect(groups[group1]?.configurations == [PlacedConfiguration(index: LogIndex(1), configuration: voters)])
    }

    @Test("a configuration that was overwritten is gone, also where its entry was the first to go")
    func overwrittenConfiguration() async throws {
        let voters = Configuration(voters: [ReplicaID(1), ReplicaID(2)])
        do {
            let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
            let entry = Entry(index: LogIndex(2), term: Term(1), payload: .configuration(voters))
            try await log.write([LogWrite(group: group1, entries: [command(1, 1), entry])]).get()
            try await log.write([LogWrite(group: group1, entries: [command(2, 2)])]).get()
            #expect(log.held(of: group1)?.configurations == [])
        }
        let (_, groups) = try RaftLog.open(directory: folder.path, options: .small())
        #expect(groups[group1]?.configurations == [])
    }

    @Test("a gap is refused and changes nothing") func gap() async throws {
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
        try await log.write([LogWrite(group: group1, entries: commands(1...2, 1))]).get()
        let result = await log.write([
            LogWrite(group: group2, entries: commands(1...1, 1)), LogWrite(group: group1, entries: commands(4...4, 1)),
        ])
        #expect(throws: RaftLogError.outOfOrder(group: group1, first: LogIndex(4), last: LogIndex(2))) {
            try result.get()
        }
        #expect(try log.all(group2, from: 1) == nil)
        try await log.write([LogWrite(group: group1, entries: commands(3...3, 1))]).get()
        #expect(try log.all(group1, from: 1) == commands(1...3, 1))
    }

    @Test("an entry that fits in no segment is refused; one that just does not fit in the rest goes to the next")
    func largeEntries() async throws {
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
        let huge = Entry(index: LogIndex(1), term: Term(1), payload: .command([UInt8](repeating: 7, count: 4_096)))
        guard case .failure(.tooLarge) = await log.write([LogWrite(group: group1, entries: [huge])]) else {
            Issue.record("accepted")
            return
        }
        for index in UInt64(1)...5 {
            let large = Entry(
                index: LogIndex(index), term: Term(1), payload: .command([UInt8](repeating: UInt8(index), count: 3_900))
            )
            try await log.write([LogWrite(group: group1, entries: [large])]).get()
        }
        #expect(try log.all(group1, from: 1)?.count == 5)
    }

    @Test("a snapshot mark within the log drops what is before it; one beyond it resets the log") func marks()
        async throws
    {
        do {
            let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
            try await log.write([LogWrite(group: group1, entries: commands(1...9, 1))]).get()
            try await log.write([LogWrite(group: group2, entries: commands(1...9, 1))]).get()
            try await log.write([LogWrite(group: group1, snapshotMark: mark(4, 1))]).get()
            #expect(try log.all(group1, from: 4) == nil)
            #expect(try log.all(group1, from: 5) == commands(5...9, 1))
            try await log.write([LogWrite(group: group2, entries: commands(31...32, 2), snapshotMark: mark(30, 2))])
                .get()
        }
        let (log, groups) = try RaftLog.open(directory: folder.path, options: .small())
        #expect(groups[group1]?.snapshot == mark(4, 1))
        #expect(groups[group1]?.firstIndex == LogIndex(5))
        #expect(groups[group1]?.terms == [LogPosition(index: LogIndex(5), term: Term(1))])
        #expect(groups[group2]?.snapshot == mark(30, 2))
        #expect(try log.all(group1, from: 5) == commands(5...9, 1))
        #expect(try log.all(group2, from: 31) == commands(31...32, 2))
        #expect(try log.all(group2, from: 30) == nil)
    }

    @Test("a mark that contradicts the entry at its index resets the log") func contradictingMark() async throws {
        do {
            let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
            try await log.write([LogWrite(group: group1, entries: commands(1...9, 1))]).get()
            try await log.write([LogWrite(group: group1, snapshotMark: mark(5, 2))]).get()
            #expect(try log.all(group1, from: 6) == [])
        }
        let (_, groups) = try RaftLog.open(directory: folder.path, options: .small())
        #expect(groups[group1]?.lastLog == LogPosition(index: LogIndex(5), term: Term(2)))
    }

    @Test("a removed group is gone, and may begin anew") func removal() async throws {
        do {
            let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
            try await log.write([LogWrite(group: group1, hardState: vote(4), entries: commands(1...9, 1))]).get()
            try await log.write([LogWrite(group: group2, hardState: vote(4), entries: commands(1...9, 1))]).get()
            try await log.write([LogWrite(group: group1, removeGroup: true)]).get()
            try await log.write([LogWrite(group: group2, removeGroup: true)]).get()
            try await log.write([LogWrite(group: group2, entries: commands(1...2, 7))]).get()
        }
        let (log, groups) = try RaftLog.open(directory: folder.path, options: .small())
        #expect(groups[group1] == nil)
        #expect(groups[group2]?.hardState == HardState())
        #expect(try log.all(group2, from: 1) == commands(1...2, 7))
    }

    @Test("two owners cannot open the same log") func lock() throws {
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
        #expect(throws: RaftLogError.locked(path: folder.path)) {
            _ = try RaftLog.open(directory: folder.path, options: .small())
        }
        log.close()
    }

    @Test("a closed log refuses") func closed() async throws {
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
        log.close()
        let result = await log.write([LogWrite(group: group1, entries: commands(1...1, 1))])
        #expect(throws: RaftLogError.closed) { try result.get() }
    }
}
