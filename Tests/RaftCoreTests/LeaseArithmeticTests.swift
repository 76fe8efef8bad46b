import Testing

@testable import RaftCore

@Suite("Lease and catch-up arithmetic (dissertation sections 4.2.1 and 6.4.1)")
struct LeaseArithmeticTests {
    @Test("A lease never outlives the promise, whatever clocks within the bound do, and is not shorter than it must be")
    func length() {
        var generator = SplitMix64(seed: 3)
        for round in 0..<2000 {
            let promise = UInt64.random(in: 1...100_000, using: &generator)
            let drift = UInt64.random(in: 0..<500_000, using: &generator)
            let lease = LeaseSettings(promiseMilliseconds: promise, clockDriftPartsPerMillionMax: drift).nanoseconds
            // In true time: the lease on the slowest leader's clock, the promise on the fastest follower's.
            let longest = Double(lease) / (1 - Double(drift) / 1e6)
            let shortest = Double(promise) * 1e6 / (1 + Double(drift) / 1e6)
            #expect(longest <= shortest * (1 + 1e-12), "round \(round)")
            #expect(longest >= shortest * (1 - 1e-3) - 2e6, "round \(round)")
        }
    }

    @Test("Its end agrees with a naive twin on random answers and configurations, joint ones too")
    func end() throws {
        var generator = SplitMix64(seed: 4)
        for round in 0..<300 {
            let voters = Int.random(in: 1...5, using: &generator)
            var settings = RaftSettings()
            settings.lease = LeaseSettings(promiseMilliseconds: 1000, clockDriftPartsPerMillionMax: 0)
            var cluster = TestCluster(voters: voters, settings: settings, seed: UInt64(round))
            if voters > 1 { try cluster.elect(1) } else { try cluster.settle() }
            var raft = try #require(cluster[1].raft)
            // When each voter's latest answer was sent, as the test sees it.
            var sent: [ReplicaID: MonotonicTime] = [:]
            for follower in raft.leadership?.followers ?? [] { sent[follower.id] = follower.confirmedAt }
            for _ in 0..<5 {
                cluster.now = cluster.now.adding(milliseconds: UInt64.random(in: 100...180, using: &generator))
                let sentAt = cluster.now
                guard raft.tick(now: sentAt).sendNow.contains(where: { $0.to != raft.id }) else { continue }
                let answered = raft.leadership?.round ?? 0
                for follower in raft.status.followers.map(\.id) where Bool.random(using: &generator) {
                    let answer = Message(
                        from: follower, to: raft.id, term: raft.term, body: .heartbeatResponse(round: answered))
                    _ = raft.receive(answer, now: sentAt.adding(milliseconds: 20))
                    sent[follower] = sentAt
                }
            }
            // The latest time at or after which a majority, the leader included, sent what it was answered.
            let times = sent.values.map(\.nanoseconds) + [raft.replica.now.nanoseconds]
            let naive = times.sorted(by: >).first { time in
                let holders = raft.configuration.voters.filter { voter in
                    voter == raft.id || sent[voter].map { $0.nanoseconds >= time } ?? false
                }
                return holders.count * 2 > voters
            }
            #expect(raft.status.leaseEnd?.nanoseconds == naive.map { $0 + 1_000_000_000 }, "round \(round)")
        }
    }

    @Test("Answers to rounds that are too old to give a lease are forgotten, and the list stays short")
    func rounds() {
        var rounds = HeartbeatRounds()
        let lease = LeaseSettings(promiseMilliseconds: 100, clockDriftPartsPerMillionMax: 0)
        for number: UInt64 in 1...200 { rounds.begin(number, now: MonotonicTime(milliseconds: number), lease: lease) }
        #expect(rounds.sentAt(200) == MonotonicTime(milliseconds: 200))
        #expect(rounds.sentAt(137) == MonotonicTime(milliseconds: 137))
        #expect(rounds.sentAt(136) == nil)
        rounds.begin(201, now: MonotonicTime(milliseconds: 290), lease: lease)
        #expect(rounds.sentAt(190) == nil && rounds.sentAt(191) != nil)
    }

    @Test("A follower has caught up when a round took less than an election timeout, while the log grew")
    func catchUp() {
        let limit: UInt64 = 1_000_000_000
        var catchUp = CatchUp(target: LogIndex(100), now: .zero)
        let slow = MonotonicTime(milliseconds: 5000)
        catchUp.acknowledged(LogIndex(99), last: LogIndex(150), now: slow)
        #expect(!catchUp.isShort(limit, now: slow))
        catchUp.acknowledged(LogIndex(100), last: LogIndex(150), now: slow)
        #expect(!catchUp.isShort(limit, now: slow), "the first round took five seconds")
        let quick = slow.adding(milliseconds: 900)
        catchUp.acknowledged(LogIndex(150), last: LogIndex(170), now: quick)
        #expect(catchUp.isShort(limit, now: quick))
        #expect(!catchUp.isShort(limit, now: quick.adding(milliseconds: 1000)), "the next round takes too long")
    }
}
