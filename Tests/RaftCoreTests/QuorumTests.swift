import Testing

@testable import RaftCore

/// The same arithmetic by trying every subset: slow, and plainly the definition.
private enum NaiveQuorum {
    static func isMajority(of voters: [ReplicaID], _ holders: Set<ReplicaID>) -> Bool {
        voters.filter(holders.contains).count * 2 > voters.count
    }

    static func isMajority(_ configuration: Configuration, _ holders: Set<ReplicaID>) -> Bool {
        isMajority(of: configuration.voters, holders)
            && (configuration.outgoing.isEmpty || isMajority(of: configuration.outgoing, holders))
    }

    static func reached(_ configuration: Configuration, _ values: [ReplicaID: UInt64]) -> UInt64? {
        let candidates = Set(values.values).union([0]).sorted(by: >)
        return candidates.first { candidate in
            isMajority(configuration, Set(configuration.all.filter { values[$0] ?? 0 >= candidate }))
        }
    }

    /// Won if the yes votes suffice; lost if they would not even with every missing vote.
    static func election(_ configuration: Configuration, _ votes: [ReplicaID: Bool]) -> Quorum.Result {
        if isMajority(configuration, Set(votes.filter(\.value).keys)) { return .won }
        let possible = Set(configuration.all.filter { votes[$0] != false })
        return isMajority(configuration, possible) ? .pending : .lost
    }
}

@Suite("Quorum arithmetic (dissertation sections 3.4, 3.5 and 4.3)")
struct QuorumTests {
    @Test("It agrees with a naive twin on random configurations, joint ones too")
    func model() {
        var generator = SplitMix64(seed: 42)
        for round in 0..<5000 {
            func some(_ count: ClosedRange<Int>) -> [ReplicaID] {
                (0..<Int.random(in: count, using: &generator)).map { _ in
                    ReplicaID(UInt64.random(in: 1...9, using: &generator))
                }
            }
            let outgoing = Bool.random(using: &generator) ? some(1...7) : []
            let configuration = Configuration(voters: some(1...7), outgoing: outgoing, learners: some(0...2))
            var values: [ReplicaID: UInt64] = [:]
            var votes: [ReplicaID: Bool] = [:]
            for id in configuration.all {
                values[id] = UInt64.random(in: 0...6, using: &generator)
                if Int.random(in: 0..<3, using: &generator) > 0 { votes[id] = Bool.random(using: &generator) }
            }
            let holders = Set(votes.filter(\.value).keys)
            #expect(
                Quorum.reached(configuration) { values[$0] ?? 0 } == NaiveQuorum.reached(configuration, values),
                "round \(round)")
            #expect(
                Quorum.isMajority(configuration, where: holders.contains)
                    == NaiveQuorum.isMajority(configuration, holders),
                "round \(round)")
            #expect(
                Quorum.election(configuration) { votes[$0] } == NaiveQuorum.election(configuration, votes),
                "round \(round)")
        }
    }

    /// The heart of section 4.3: no two decisions are taken by majorities that do not meet, from before a change to
    /// after it.
    @Test("Majorities of a configuration, of the joint one and of its successor meet, pair by pair, over every subset")
    func majoritiesMeet() {
        var generator = SplitMix64(seed: 43)
        for round in 0..<300 {
            func some() -> [ReplicaID] {
                (0..<Int.random(in: 1...4, using: &generator)).map { _ in
                    ReplicaID(UInt64.random(in: 1...6, using: &generator))
                }
            }
            let old = Configuration(voters: some(), learners: some())
            let new = Configuration(voters: some(), learners: some())
            let joint = old.joint(with: new)
            #expect(joint.withoutOutgoing == new)
            #expect(Set(joint.all) == Set(old.voters + new.all))
            for (left, right) in [(old, joint), (joint, joint), (joint, new)] {
                #expect(!canBothDecide(left, right), "round \(round): \(left) and \(right)")
            }
        }
        // Without the joint step they need not meet, which the same check sees.
        let three = Configuration(voters: [ReplicaID(1), ReplicaID(2), ReplicaID(3)])
        let others = Configuration(voters: [ReplicaID(3), ReplicaID(4), ReplicaID(5)])
        #expect(canBothDecide(three, others))
    }

    /// Whether some replicas are a majority of one and all others one of the other.
    private func canBothDecide(_ left: Configuration, _ right: Configuration) -> Bool {
        (0..<(1 << 6)).contains { subset in
            func isIn(_ id: ReplicaID) -> Bool { subset & (1 << (id.rawValue - 1)) != 0 }
            return Quorum.isMajority(left, where: isIn) && Quorum.isMajority(right) { !isIn($0) }
        }
    }

    @Test("A demoted voter is an outgoing voter and a learner at once, and survives the wire so")
    func demoted() throws {
        let old = Configuration(voters: [ReplicaID(1), ReplicaID(2)])
        let joint = old.joint(with: Configuration(voters: [ReplicaID(1)], learners: [ReplicaID(2)]))
        #expect(joint.isVoter(ReplicaID(2)) && joint.learners == [ReplicaID(2)] && joint.all.count == 2)
        let mark = SnapshotMark(position: .zero, configuration: joint)
        #expect(try SnapshotMark(serialized: mark.serialized()) == mark)
    }

    @Test("Without voters nothing is ever decided")
    func noVoters() {
        let empty = Configuration(voters: [])
        #expect(!Quorum.isMajority(empty) { _ in true })
        #expect(Quorum.reached(empty) { _ in 1 } == nil)
        #expect(Quorum.election(empty) { _ in true } == .lost)
    }

    @Test("A learner counts for nothing")
    func learners() {
        let configuration = Configuration(
            voters: [ReplicaID(1), ReplicaID(2), ReplicaID(3)], learners: [ReplicaID(4), ReplicaID(5)])
        #expect(!Quorum.isMajority(configuration) { $0.rawValue == 1 || $0.rawValue > 3 })
    }
}
