import Cluster
import PeerTransport
import RaftCore
import Testing

@Suite("The way of a group's members to those of the map")
struct ReconciliationTests {
    private static func id(_ node: UInt64, _ generation: UInt16 = 0) -> ReplicaID {
        ReplicaID(node: NodeID(rawValue: node), generation: generation)
    }

    private static func ids(_ nodes: UInt64...) -> [ReplicaID] { nodes.map { id($0) } }

    private static func next(
        _ present: Configuration, _ desired: Configuration, caughtUp: [ReplicaID] = [], isCommitted: Bool = true
    ) -> Reconciliation {
        Reconciliation.next(from: present, isCommitted: isCommitted, caughtUp: caughtUp, to: desired)
    }

    private static func isWaiting(_ step: Reconciliation) -> Bool {
        if case .waiting = step { true } else { false }
    }

    @Test("nothing is done where all is as it should be, or while a change is under way")
    func idle() {
        let members = Configuration(voters: Self.ids(1, 2, 3))
        #expect(Self.next(members, members) == .settled)
        let other = Configuration(voters: Self.ids(1, 2, 4))
        let joint = Configuration(voters: Self.ids(1, 2, 3), outgoing: Self.ids(1, 2, 4))
        #expect(Self.isWaiting(Self.next(joint, other)))
        #expect(Self.isWaiting(Self.next(members, other, isCommitted: false)))
    }

    @Test("a new replica learns first, and takes its place when it has caught up")
    func replacement() {
        let present = Configuration(voters: Self.ids(1, 2, 3))
        let desired = Configuration(voters: Self.ids(1, 2, 4))
        let learning = Configuration(voters: Self.ids(1, 2, 3), learners: Self.ids(4))
        #expect(Self.next(present, desired) == .change(to: learning))
        #expect(Self.isWaiting(Self.next(learning, desired)))
        #expect(Self.next(learning, desired, caughtUp: Self.ids(4)) == .change(to: desired))
    }

    @Test("a lost replica goes at once, because it counts for nothing but the majority; the one after it learns")
    func lostReplica() {
        let present = Configuration(voters: Self.ids(1, 2, 3))
        let desired = Configuration(voters: Self.ids(1, 2) + [Self.id(3, 1)])
        let learning = Configuration(voters: Self.ids(1, 2), learners: [Self.id(3, 1)])
        #expect(Self.next(present, desired) == .change(to: learning))
        #expect(Self.next(learning, desired, caughtUp: [Self.id(3, 1)]) == .change(to: desired))
    }

    @Test("where two of three are to be exchanged, the second goes when the first has a successor")
    func twoLostReplicas() {
        let present = Configuration(voters: Self.ids(1, 2, 3))
        let desired = Configuration(voters: Self.ids(1) + [Self.id(2, 1), Self.id(3, 1)])
        let learning = Configuration(voters: Self.ids(1, 3), learners: [Self.id(2, 1), Self.id(3, 1)])
        #expect(Self.next(present, desired) == .change(to: learning))
        #expect(Self.isWaiting(Self.next(learning, desired)))
        let next = Configuration(voters: Self.ids(1) + [Self.id(2, 1)], learners: [Self.id(3, 1)])
        #expect(Self.next(learning, desired, caughtUp: [Self.id(2, 1)]) == .change(to: next))
        #expect(Self.next(next, desired, caughtUp: [Self.id(3, 1)]) == .change(to: desired))
    }

    @Test("a replica that is not wanted, but sound, stays until there are as many voters as there shall be")
    func fewVoters() {
        let present = Configuration(voters: Self.ids(3, 4), learners: [Self.id(1, 1)] + Self.ids(5))
        let desired = Configuration(voters: [Self.id(1, 1)] + Self.ids(4, 5))
        let next = Configuration(voters: Self.ids(3, 4) + [Self.id(1, 1)], learners: Self.ids(5))
        #expect(Self.next(present, desired, caughtUp: [Self.id(1, 1)]) == .change(to: next))
        #expect(Self.isWaiting(Self.next(next, desired)))
        #expect(Self.next(next, desired, caughtUp: Self.ids(5)) == .change(to: desired))
    }

    @Test("a group of two goes on with one where the other is lost")
    func oneOfTwo() {
        let present = Configuration(voters: Self.ids(1, 2))
        let desired = Configuration(voters: Self.ids(1) + [Self.id(2, 1)])
        #expect(
            Self.next(present, desired)
                == .change(to: Configuration(voters: Self.ids(1), learners: [Self.id(2, 1)])))
    }

    @Test("a lost learner is exchanged for its successor")
    func lostLearner() {
        let present = Configuration(voters: Self.ids(1, 2, 3), learners: [Self.id(4, 1)])
        let desired = Configuration(voters: Self.ids(1, 2, 4).map { $0.node == NodeID(4) ? Self.id(4, 2) : $0 })
        #expect(
            Self.next(present, desired)
                == .change(to: Configuration(voters: Self.ids(1, 2, 3), learners: [Self.id(4, 2)])))
    }

    @Test("one that is slow holds up no other, and no voter goes without a successor")
    func partly() {
        let present = Configuration(voters: Self.ids(1, 2, 3), learners: Self.ids(4, 5))
        let desired = Configuration(voters: Self.ids(1, 4, 5))
        let step = Self.next(present, desired, caughtUp: Self.ids(5))
        #expect(step == .change(to: Configuration(voters: Self.ids(1, 3, 5), learners: Self.ids(4))))
    }

    @Test("a group grows and shrinks")
    func sizes() {
        let one = Configuration(voters: Self.ids(1))
        let three = Configuration(voters: Self.ids(1, 2, 3))
        let learning = Configuration(voters: Self.ids(1), learners: Self.ids(2, 3))
        #expect(Self.next(one, three) == .change(to: learning))
        #expect(
            Self.next(learning, three, caughtUp: Self.ids(2))
                == .change(to: Configuration(voters: Self.ids(1, 2), learners: Self.ids(3))))
        #expect(Self.next(three, one) == .change(to: one))
    }

    @Test("voters become learners where the map says so, as in a directory of more than five nodes")
    func demotion() {
        let present = Configuration(voters: Self.ids(1, 2, 3, 4, 5), learners: Self.ids(6))
        let desired = Configuration(voters: Self.ids(1, 2, 3, 4, 6), learners: Self.ids(5))
        #expect(Self.isWaiting(Self.next(present, desired)))
        #expect(Self.next(present, desired, caughtUp: Self.ids(6)) == .change(to: desired))
    }

    @Test(
        "from any members to any others it arrives, never with fewer voters than it began or ends with",
        arguments: 1...200)
    func random(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var present = Self.configuration(&generator)
        let desired = Self.configuration(&generator)
        // A voter that is lost goes at once.
        let lost = present.voters.count { voter in
            !desired.contains(voter) && desired.all.contains { $0.node == voter.node }
        }
        let floor = max(1, min(present.voters.count - lost, desired.voters.count))
        var caughtUp: [ReplicaID] = []
        for _ in 0..<100 {
            switch Self.next(present, desired, caughtUp: caughtUp) {
            case .settled:
                #expect(present == desired)
                return
            case .waiting:
                let behind = present.learners.filter { !caughtUp.contains($0) }
                guard let one = behind.randomElement(using: &generator) else {
                    Issue.record("\(present) to \(desired) waits for nothing")
                    return
                }
                caughtUp.append(one)
            case .change(let target):
                let promoted = target.voters.filter { !present.voters.contains($0) }
                #expect(promoted.allSatisfy { present.learners.contains($0) && caughtUp.contains($0) })
                #expect(target.voters.count >= floor, "\(present) to \(target), desired \(desired)")
                present = target
            }
        }
        Issue.record("\(present) never became \(desired)")
    }

    /// One to five voters and up to two learners on nodes 1 to 7, in generations 0 to 1.
    private static func configuration(_ generator: inout SplitMix64) -> Configuration {
        let nodes = (1...7).map(UInt64.init).shuffled(using: &generator)
        let replicas = nodes.map { id($0, UInt16.random(in: 0...1, using: &generator)) }
        let voters = Int.random(in: 1...5, using: &generator)
        let learners = Int.random(in: 0...2, using: &generator)
        return Configuration(
            voters: Array(replicas.prefix(voters)), learners: Array(replicas.dropFirst(voters).prefix(learners)))
    }
}
