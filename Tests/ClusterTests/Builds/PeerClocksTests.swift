import Foundation
import PeerTransport
import RaftCore
import Testing

@testable import Cluster

@Suite("A node's clock held against its peers'")
struct PeerClocksTests {
    private let day: Int64 = 86_400_000

    /// What the clocks of all come to at each of them, by how far they are from the true one.
    private func verdicts(_ errors: [Int64]) -> [PeerClocks.Verdict] {
        errors.indices.map { own in
            var clocks = PeerClocks()
            for other in errors.indices where other != own {
                clocks.heard(NodeID(UInt64(other)), exactly: errors[other] - errors[own], base: errors[own])
            }
            return clocks.verdict(base: errors[own])
        }
    }

    @Test("clocks within a minute agree; who is more than that from most is wrong, and only that node")
    func majority() {
        #expect(verdicts([0]) == [.agrees])
        #expect(verdicts([0, 60_000, -30_000]) == [.agrees, .agrees, .agrees])
        #expect(verdicts([0, 3 * day, 0]) == [.agrees, .wrong(ahead: 3 * day), .agrees])
        #expect(verdicts([5, 0, -3 * day]) == [.agrees, .agrees, .wrong(ahead: -3 * day)])
        #expect(verdicts([0, 0, 0, day, day]) == [.agrees, .agrees, .agrees, .wrong(ahead: day), .wrong(ahead: day)])
    }

    @Test("where nobody can tell, all go on; where all differ, one does")
    func undecided() {
        #expect(verdicts([0, day]) == [.undecided(ahead: -day), .undecided(ahead: day)])
        #expect(
            verdicts([0, 0, day, day]) == [
                .undecided(ahead: -day), .undecided(ahead: -day), .undecided(ahead: day), .undecided(ahead: day),
            ])
        #expect(verdicts([0, day, 2 * day]) == [.wrong(ahead: -day), .agrees, .wrong(ahead: day)])
    }

    @Test("a node that has not heard most clocks since its start does not know whether its own is right")
    func unheard() {
        var clocks = PeerClocks()
        #expect(clocks.verdict(base: 0) == .agrees, "it may be the only node")
        clocks.keep(only: (1...4).map { NodeID($0) })
        clocks.heard(NodeID(2), exactly: 0, base: 0)
        #expect(clocks.verdict(base: 0) == .unknown)
        clocks.heard(NodeID(3), exactly: 0, base: 0)
        #expect(clocks.verdict(base: 0) == .agrees)
    }

    @Test("at least half of all nodes may always make commands", arguments: 0..<200 as Range<UInt64>)
    func random(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let errors = (0..<Int.random(in: 1...7, using: &generator)).map { _ in
            Bool.random(using: &generator) ? 0 : Int64.random(in: -3 * day...3 * day, using: &generator)
        }
        let verdicts = verdicts(errors)
        #expect(verdicts.contains { if case .wrong = $0 { false } else { true } })
        // While most clocks are right nobody with a right one is wrong.
        guard errors.count(where: { $0 == 0 }) * 2 > errors.count else { return }
        for (error, verdict) in zip(errors, verdicts) {
            if case .wrong = verdict { #expect(error.magnitude > 60_000) } else { #expect(error.magnitude <= 60_000) }
        }
    }

    @Test("a clock that was set while a peer was asked does not take that peer's for as wrong as its own")
    func setMeanwhile() {
        var clocks = PeerClocks()
        clocks.keep(only: (1...3).map { NodeID($0) })
        clocks.heard(NodeID(2), exactly: 5, base: 0)
        clocks.heard(NodeID(3), exactly: 0, base: 0)
        // It asked before it was set ahead by a day, and the answer came after that.
        let possible = PeerClockComparison.ahead(peer: 1_000, asked: 900, heard: 1_100 + day)
        clocks.heard(NodeID(2), ahead: possible, base: day)
        #expect(clocks.verdict(base: day) == .wrong(ahead: day - 5))
        // A peer that is heard for the first time is not blamed for what cannot be told.
        clocks.keep(only: [NodeID(1), NodeID(4)])
        clocks.heard(NodeID(4), ahead: possible, base: day)
        #expect(clocks.verdict(base: day) == .agrees)
    }

    @Test("a clock that jumps is noticed without another word, and a peer that is away counts until it is none")
    func jumps() {
        var clocks = PeerClocks()
        clocks.heard(NodeID(2), exactly: 10, base: 1_000)
        clocks.heard(NodeID(3), exactly: -10, base: 1_000)
        #expect(clocks.verdict(base: 1_000) == .agrees)
        #expect(clocks.verdict(base: 1_000 + day) == .wrong(ahead: day - 10))
        clocks.heard(NodeID(2), exactly: .min, base: .min)
        clocks.heard(NodeID(3), exactly: .max, base: .max)
        #expect(clocks.verdict(base: 0) == .agrees)
        clocks.keep(only: [NodeID(1), NodeID(3)])
        guard case .undecided = clocks.verdict(base: 0) else { Issue.record("one peer decides"); return }
    }
}

extension PeerClocks {
    fileprivate mutating func heard(_ node: NodeID, exactly ahead: Int64, base: Int64) {
        heard(node, ahead: ahead...ahead, base: base)
    }
}
