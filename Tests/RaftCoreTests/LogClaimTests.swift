import Testing

@testable import RaftCore

@Suite("Replication and commit (dissertation sections 3.5, 3.6, 10.2.1)")
struct LogClaimTests {
    /// Figure 3.7: an entry of an earlier term is on a majority and may still be lost, so counting must not commit it.
    @Test("A leader commits by counting only entries of its own term (figure 3.7)")
    func ownTermOnly() throws {
        let ids = (1...5).map { ReplicaID($0) }
        let configuration = Configuration(voters: ids)
        let mark = SnapshotMark(position: .zero, configuration: configuration)
        let old = [1, 2].map { Entry(index: LogIndex($0), term: Term($0), payload: .command([UInt8($0)])) }
        let restored = RestoredState(hardState: HardState(term: Term(3)), snapshot: mark, entries: old)
        var raft = Raft(id: ids[0], settings: RaftSettings(), seed: 1, restored: restored, now: .zero)
        let now = MonotonicTime(milliseconds: 5000)
        func from(_ id: Int, _ body: Message.Body) -> Message {
            Message(from: ids[id - 1], to: ids[0], term: Term(4), body: body)
        }
        _ = raft.tick(now: now)
        for id in [2, 3] { _ = raft.receive(from(id, .preVoteResponse(granted: true)), now: now) }
        let vote = HardState(term: Term(4), vote: ids[0])
        _ = raft.persisted(old[1].position, hardState: vote, now: now)
        for id in [2, 3] { _ = raft.receive(from(id, .voteResponse(granted: true)), now: now) }
        #expect(raft.role == .leader && raft.lastLog.index == LogIndex(3))
        for id in [2, 3] { _ = raft.receive(from(id, .appendResponse(.accepted(match: LogIndex(2)))), now: now) }
        // Entry 2, of term 2, is on three of five.
        #expect(raft.commitIndex == .zero)
        _ = raft.persisted(raft.lastLog, hardState: vote, now: now)
        for id in [2, 3] { _ = raft.receive(from(id, .appendResponse(.accepted(match: LogIndex(3)))), now: now) }
        #expect(raft.commitIndex == LogIndex(3))
    }

    @Test("A follower acknowledges new entries only after they are durable")
    func acknowledgesAfterPersist() throws {
        var cluster = try TestCluster(voters: 3, leader: 1)
        try cluster.propose(1, "a")
        let append = try #require(cluster.messages.first { $0.to == ReplicaID(2) })
        var follower = try #require(cluster[2].raft)
        let first = follower.receive(append, now: cluster.now)
        #expect(first.sendNow.isEmpty)
        #expect(first.sendAfterPersist.map(\.body) == [.appendResponse(.accepted(match: LogIndex(2)))])
        // Asked again before the persist is done, it tells only what is durable, and the rest when it is.
        let again = follower.receive(append, now: cluster.now)
        #expect(again.sendNow.map(\.body) == [.appendResponse(.accepted(match: LogIndex(1)))])
        let done = follower.persisted(follower.lastLog, hardState: follower.replica.hardState, now: cluster.now)
        #expect(done.sendNow.map(\.body) == [.appendResponse(.accepted(match: LogIndex(2)))])
        #expect(follower.receive(append, now: cluster.now).sendNow.map(\.body) == done.sendNow.map(\.body))
    }

    @Test("A leader tells of nothing committed that it could lose itself, and followers remember what it told")
    func announcedCommit() throws {
        var cluster = try TestCluster(voters: 3, leader: 1)
        try cluster.propose(1, "a")
        var leader = try #require(cluster[1].raft)
        var follower = try #require(cluster[2].raft)
        let append = try #require(cluster.messages.first { $0.to == follower.id })
        _ = follower.receive(append, now: cluster.now)
        _ = follower.persisted(follower.lastLog, hardState: follower.replica.hardState, now: cluster.now)
        let before = leader.commitIndex
        for id in [ReplicaID(2), ReplicaID(3)] {
            let answer = Message.Body.appendResponse(.accepted(match: leader.lastLog.index))
            _ = leader.receive(Message(from: id, to: leader.id, term: leader.term, body: answer), now: cluster.now)
        }
        #expect(leader.commitIndex == leader.lastLog.index && leader.commitIndex > before)
        var now = cluster.now
        func told() -> [LogIndex] {
            now = now.adding(milliseconds: leader.settings.heartbeatIntervalMilliseconds)
            return leader.tick(now: now).sendNow.compactMap { message in
                guard case .heartbeatRequest(let commit, _) = message.body else { return nil }
                _ = message.to == follower.id ? follower.receive(message, now: now) : Effects()
                return commit
            }
        }
        #expect(told() == [before, before])
        #expect(follower.leaderCommit == LeaderCommit(leader: leader.id, term: leader.term, index: before))
        _ = leader.persisted(leader.lastLog, hardState: leader.replica.hardState, now: now)
        #expect(told() == [leader.lastLog.index, leader.lastLog.index])
        #expect(
            follower.leaderCommit == LeaderCommit(leader: leader.id, term: leader.term, index: leader.lastLog.index))
    }

    @Test("A leader does not count its own entry before it is durable")
    func leaderCountsItselfLast() throws {
        var cluster = try TestCluster(voters: 3, leader: 1)
        try cluster.propose(1, "a")
        var leader = try #require(cluster[1].raft)
        #expect(leader.commitIndex == LogIndex(1))
        let answer = Message.Body.appendResponse(.accepted(match: LogIndex(2)))
        let term = leader.term
        _ = leader.receive(Message(from: ReplicaID(2), to: ReplicaID(1), term: term, body: answer), now: cluster.now)
        #expect(leader.commitIndex == LogIndex(1))
        let effects = leader.persisted(leader.lastLog, hardState: leader.replica.hardState, now: cluster.now)
        #expect(effects.commitIndex == LogIndex(2))
    }

    /// Each answer to an earlier append ended the probe and had the window sent again, so that messages multiplied.
    @Test("Messages that overtake each other do not multiply", arguments: 1...8 as ClosedRange<UInt64>)
    func windowsUnderReordering(seed: UInt64) throws {
        var settings = RaftSettings()
        (settings.appendBytesMax, settings.probeBytesMax, settings.cacheBytesMax) = (80, 40, 1 << 20)
        var cluster = TestCluster(voters: 3, settings: settings)
        let late = ReplicaID(3)
        try cluster.elect(1, without: [late])
        for _ in 0..<400 {
            try cluster.propose(1, "a")
            try cluster.settle(without: [late])
        }
        var generator = SplitMix64(seed: seed)
        var (most, steps) = (0, 0)
        while steps < 20_000, cluster[1].raft?.lastLog != cluster[3].raft?.lastLog {
            steps += 1
            if cluster.messages.isEmpty {
                cluster.now = cluster.now.adding(milliseconds: settings.heartbeatIntervalMilliseconds)
                try cluster.event(0) { $0.tick(now: $1) }
            }
            if steps.isMultiple(of: 100) || cluster.messages.isEmpty {
                for node in 0..<3 { try cluster.persistAll(node) }
            }
            guard !cluster.messages.isEmpty else { continue }
            try cluster.deliver(
                cluster.messages.remove(at: Int.random(in: cluster.messages.indices, using: &generator)))
            most = max(most, cluster.messages.count)
        }
        #expect(most < 16 * settings.inflightAppendsMax)
    }

    /// The persist of entries that were cut off since, and that then came back, is not the persist of those that came
    /// back.
    @Test("A persist from before a cut does not count, even if the log holds the same entry again")
    func supersededPersist() {
        let ids = (1...3).map { ReplicaID($0) }
        let restored = RestoredState(bootstrap: Configuration(voters: ids))
        var raft = Raft(id: ids[0], settings: RaftSettings(), seed: 1, restored: restored, now: .zero)
        func append(_ sender: Int, term: UInt64, entryTerm: UInt64) -> Effects {
            let entry = Entry(index: LogIndex(1), term: Term(entryTerm), payload: .empty)
            let request = AppendRequest(previous: .zero, entries: [entry], commit: .zero)
            let body = Message.Body.appendRequest(request)
            return raft.receive(Message(from: ids[sender - 1], to: ids[0], term: Term(term), body: body), now: .zero)
        }
        _ = append(2, term: 1, entryTerm: 1)
        _ = append(3, term: 2, entryTerm: 2)
        let third = append(2, term: 3, entryTerm: 1)
        #expect(third.append.count == 1)
        let position = LogPosition(index: LogIndex(1), term: Term(1))
        let early = raft.persisted(position, hardState: HardState(term: Term(1)), now: .zero)
        #expect(raft.status.durableIndex == .zero && early.sendNow.isEmpty)
        _ = raft.persisted(position, hardState: HardState(term: Term(3)), now: .zero)
        #expect(raft.status.durableIndex == LogIndex(1))
    }

    /// The next leader may hold another entry in that place, and would count this replica for its own.
    @Test("A match that was owed to a leader is not told to the next one")
    func voidMatch() {
        let ids = (1...3).map { ReplicaID($0) }
        let restored = RestoredState(bootstrap: Configuration(voters: ids))
        var raft = Raft(id: ids[0], settings: RaftSettings(), seed: 1, restored: restored, now: .zero)
        let entry = Entry(index: LogIndex(1), term: Term(1), payload: .empty)
        let append = Message.Body.appendRequest(AppendRequest(previous: .zero, entries: [entry], commit: .zero))
        // Asked again before the entry is durable, it owes the match.
        for _ in 1...2 { _ = raft.receive(Message(from: ids[1], to: ids[0], term: Term(1), body: append), now: .zero) }
        let empty = Message.Body.appendRequest(AppendRequest(previous: .zero, entries: [], commit: .zero))
        _ = raft.receive(Message(from: ids[2], to: ids[0], term: Term(2), body: empty), now: .zero)
        let done = raft.persisted(entry.position, hardState: raft.replica.hardState, now: .zero)
        #expect(raft.leader == ids[2] && raft.status.durableIndex == entry.index)
        #expect(done.sendNow.isEmpty)
    }

    @Test("A follower commits no further than it is known to agree with the leader (figure 3.1)")
    func commitsWhatMatches() {
        let ids = (1...3).map { ReplicaID($0) }
        let mark = SnapshotMark(position: .zero, configuration: Configuration(voters: ids))
        let entries = (1...3).map { Entry(index: LogIndex($0), term: Term(1), payload: .command([UInt8($0)])) }
        let restored = RestoredState(hardState: HardState(term: Term(2)), snapshot: mark, entries: entries)
        var raft = Raft(id: ids[0], settings: RaftSettings(), seed: 1, restored: restored, now: .zero)
        // Entries 2 and 3 may contradict what the leader of term 2 has committed there.
        let request = AppendRequest(previous: entries[0].position, entries: [], commit: LogIndex(3))
        let append = Message(from: ids[1], to: ids[0], term: Term(2), body: .appendRequest(request))
        #expect(raft.receive(append, now: .zero).commitIndex == LogIndex(1))
        #expect(raft.commitIndex == LogIndex(1))
    }

    @Test("A configuration is in force when it is appended, and rolled back with its entry (section 4.1)")
    func configurationInLog() {
        let ids = (1...4).map { ReplicaID($0) }
        let first = Configuration(voters: Array(ids[..<3]))
        let joint = Configuration(voters: ids, outgoing: Array(ids[..<3]))
        var raft = Raft(
            id: ids[0], settings: RaftSettings(), seed: 1, restored: RestoredState(bootstrap: first), now: .zero)
        func append(_ sender: Int, term: UInt64, _ payload: Entry.Payload) {
            let entry = Entry(index: LogIndex(1), term: Term(term), payload: payload)
            let body = Message.Body.appendRequest(AppendRequest(previous: .zero, entries: [entry], commit: .zero))
            _ = raft.receive(Message(from: ids[sender - 1], to: ids[0], term: Term(term), body: body), now: .zero)
        }
        append(2, term: 1, .configuration(joint))
        #expect(raft.configuration == joint)
        append(3, term: 2, .empty)
        #expect(raft.configuration == first)
    }

    @Test("Going back over a long conflicting log takes a rejection a term, not one an entry (section 3.5)")
    func fastBackUp() throws {
        var cluster = try TestCluster(voters: 3, leader: 1)
        for number in 0..<200 { try cluster.propose(1, "lost \(number)") }
        cluster.messages = []
        try cluster.persistAll(0)
        try cluster.elect(2, without: [ReplicaID(1)])
        for number in 0..<100 { try cluster.propose(2, "kept \(number)") }
        try cluster.settle(without: [ReplicaID(1)])
        cluster.notes = []
        try cluster.run(milliseconds: 500)
        #expect(cluster.notes.filter { $0.contains("rejected") }.count <= 3)
        #expect(cluster[1].raft?.lastLog == cluster[2].raft?.lastLog)
        #expect(cluster[1].disk.entries == cluster[2].disk.entries)
    }

    @Test("Appends to a follower stop at the window, and go on when it answers")
    func flowControl() throws {
        var settings = RaftSettings()
        settings.inflightAppendsMax = 3
        var cluster = try TestCluster(voters: 3, leader: 1, settings: settings)
        for number in 0..<10 { try cluster.propose(1, "\(number)") }
        #expect(cluster.messages.filter { $0.to == ReplicaID(2) }.count == 3)
        try cluster.settle()
        #expect(cluster[1].raft?.status.followers.map(\.match) == [LogIndex(11), LogIndex(11)])
    }

    @Test("What earlier leaders left uncommitted counts against the limit of the next one")
    func inheritedBackPressure() throws {
        var settings = RaftSettings()
        settings.uncommittedBytesMax = 300
        var cluster = try TestCluster(voters: 3, leader: 1, settings: settings)
        try cluster.run(milliseconds: 100)
        // 250 bytes reach replicas 1 and 2, but nobody hears that they did.
        try cluster.propose(1, String(repeating: "x", count: 218))
        cluster.messages.removeAll { $0.to != ReplicaID(2) }
        for message in cluster.messages { try cluster.deliver(message) }
        cluster.messages = []
        try cluster.persistAll(1)
        cluster.messages = []
        cluster.now = cluster.now.adding(milliseconds: 2000)
        try cluster.event(1) { $0.tick(now: $1) }
        while cluster[2].raft?.role != .leader {
            let message = try #require(cluster.messages.first)
            cluster.messages.removeFirst()
            if message.from == ReplicaID(1) || message.to == ReplicaID(1) { continue }
            try cluster.deliver(message)
            for offset in [1, 2] { try cluster.persistAll(offset) }
        }
        #expect(cluster[2].raft?.status.uncommittedBytes == 282)
        #expect(throws: ProposalError.overloaded(uncommittedBytes: 282, uncommittedBytesMax: 300)) {
            try cluster.propose(2, "y")
        }
        try cluster.settle(without: [ReplicaID(1)])
        #expect(cluster[2].raft?.status.uncommittedBytes == 0)
    }

    @Test("Proposals beyond the uncommitted bytes are refused, and taken again after a commit")
    func backPressure() throws {
        var settings = RaftSettings()
        settings.uncommittedBytesMax = 200
        var cluster = try TestCluster(voters: 3, leader: 1, settings: settings)
        try cluster.propose(1, String(repeating: "x", count: 150))
        #expect(throws: ProposalError.overloaded(uncommittedBytes: 182, uncommittedBytesMax: 200)) {
            try cluster.propose(1, "y")
        }
        try cluster.settle()
        #expect(cluster[1].raft?.status.uncommittedBytes == 0)
        try cluster.propose(1, "y")
    }

    @Test("Of commands that are proposed together as many are taken, in order, as may be uncommitted")
    func partOfAProposal() throws {
        var settings = RaftSettings()
        settings.uncommittedBytesMax = 200
        var cluster = try TestCluster(voters: 3, leader: 1, settings: settings)
        let commands = [60, 60, 60, 1].map { [UInt8](repeating: 7, count: $0) }
        var proposal: Proposal?
        try cluster.event(0) {
            let (taken, effects) = try $0.propose(commands, now: $1)
            proposal = taken
            return effects
        }
        #expect(proposal?.count == 2)
        #expect(cluster[1].raft?.status.uncommittedBytes == 184)
        try cluster.settle()
        #expect(cluster[1].raft?.lastLog.index == LogIndex(3))
    }
}

@Suite("Snapshots (dissertation section 5)")
struct SnapshotClaimTests {
    @Test("One with an entry of a later term than its sender's message is not wanted, and ends nothing")
    func laterThanItsMessage() throws {
        var cluster = try TestCluster(voters: 3, leader: 1)
        let configuration = try #require(cluster[1].raft?.configuration)
        let mark = SnapshotMark(
            position: LogPosition(index: LogIndex(9), term: Term(2)), configuration: configuration)
        var install: SnapshotMark?
        try cluster.event(1) {
            let effects = $0.snapshotReceived(mark, from: ReplicaID(1), term: Term(1), now: $1)
            install = effects.install
            return effects
        }
        #expect(install == nil && cluster[2].raft?.term == Term(1))
        #expect(cluster[2].raft?.leader == ReplicaID(1))
    }

    @Test("A follower whose news of an installed snapshot is lost is not sent another one")
    func lostNews() throws {
        var settings = RaftSettings()
        settings.cacheBytesMax = 0
        var cluster = try TestCluster(voters: 3, leader: 1, settings: settings)
        let away = [ReplicaID(3)]
        for number in 0..<10 { try cluster.propose(1, "\(number)") }
        try cluster.settle(without: away)
        // It answers again, and lacks what is not in memory any more.
        while cluster.nodes[0].loads.isEmpty, cluster.nodes[0].raft?.role == .leader {
            cluster.now = cluster.now.adding(milliseconds: 100)
            try cluster.event(0) { $0.tick(now: $1) }
            try cluster.deliverAll()
        }
        let request = cluster.nodes[0].loads.removeFirst()
        try cluster.event(0) { $0.loaded(request, entries: [], now: $1) }
        let transfer = try #require(cluster.transfers.first)
        cluster.transfers.removeAll()
        try cluster.finishTransfer(transfer, succeeds: true)
        try cluster.persistAll(2)
        #expect(cluster[3].raft?.snapshotPosition == transfer.mark.position)
        cluster.messages.removeAll()
        for _ in 0..<10 {
            cluster.now = cluster.now.adding(milliseconds: 100)
            try cluster.event(0) { $0.tick(now: $1) }
            try cluster.deliverAll()
        }
        #expect(cluster.transfers.isEmpty && cluster.nodes[0].loads.isEmpty)
        let follower = try #require(cluster[1].raft?.status.followers.first { $0.id == ReplicaID(3) })
        #expect(follower.match == cluster[1].raft?.lastLog.index)
    }
}

extension TestCluster {
    /// Persists and delivers until no message is left; reads nothing from disk, and moves no snapshot.
    fileprivate mutating func deliverAll() throws {
        while !messages.isEmpty {
            try deliver(messages.removeFirst())
            for offset in nodes.indices { try persistAll(offset) }
        }
    }
}

@Suite("Reads (dissertation section 6.4)")
struct ReadClaimTests {
    @Test("A deposed leader that does not know it serves no read")
    func deposed() throws {
        var cluster = try TestCluster(voters: 3, leader: 1)
        try cluster.run(milliseconds: 100)
        try cluster.elect(2, without: [ReplicaID(1)])
        try cluster.propose(2, "new")
        try cluster.settle(without: [ReplicaID(1)])
        #expect(cluster.leaders == [ReplicaID(1), ReplicaID(2)])
        try cluster.read(1, 1)
        try cluster.settle()
        #expect(cluster[1].reads.isEmpty)
        #expect(cluster[1].failedReads.map(\.id) == [1])
    }

    @Test("An answer to an earlier round confirms no read that came after it")
    func earlierRound() throws {
        var cluster = try TestCluster(voters: 3, leader: 1)
        try cluster.run(milliseconds: 100)
        var leader = try #require(cluster[1].raft)
        let asked = leader.read(1, now: cluster.now)
        guard case .heartbeatRequest(_, let round) = try #require(asked.sendNow.first).body else {
            Issue.record("no heartbeat")
            return
        }
        let term = leader.term
        func answer(_ round: UInt64) -> Message {
            Message(from: ReplicaID(2), to: ReplicaID(1), term: term, body: .heartbeatResponse(round: round))
        }
        #expect(leader.receive(answer(round - 1), now: cluster.now).reads.isEmpty)
        #expect(leader.receive(answer(round), now: cluster.now).reads.map(\.id) == [1])
    }

    @Test("Beyond the limit reads are refused")
    func bounded() throws {
        var settings = RaftSettings()
        settings.pendingReadsMax = 2
        var cluster = try TestCluster(voters: 3, leader: 1, settings: settings)
        for id: UInt64 in 1...3 { try cluster.read(1, id) }
        #expect(cluster[1].failedReads.map(\.reason) == [.overloaded])
        try cluster.settle()
        #expect(cluster[1].reads.map(\.id) == [1, 2])
    }
}
