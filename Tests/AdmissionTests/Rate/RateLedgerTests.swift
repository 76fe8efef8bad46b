import Testing

@testable import Admission

@Suite("The ledger of shares")
struct RateLedgerTests {
    private let key = RateKey(container: "iCloud.example", kind: .requests)
    private static let start: UInt64 = 1_000_000_000_000
    private static let millisecond: UInt64 = 1_000_000
    private static let first = RateReign(term: 1, since: 0)

    /// One node's reports, as it would number them.
    private struct Reporter {
        var report: RateReport
        var ledgerTerm: UInt64 = 1

        init(_ node: UInt64, _ key: RateKey, limit: UInt64 = 100, boot: UInt64 = 5) {
            report = RateReport(key: key, node: node, boot: boot, sequence: 0, limit: limit)
        }

        mutating func next(
            _ ledger: inout RateLedger, at milliseconds: UInt64, accepted: UInt64 = 0, refused: UInt64 = 0,
            leadingSince: UInt64 = 0, _ change: (inout RateReport) -> Void = { _ in }
        ) -> RateGrant {
            report.sequence += 1
            report.accepted += accepted
            report.arrivals += accepted + refused
            change(&report)
            // A leader of whom it is said when it began is not the first.
            let reign = RateReign(term: leadingSince > 0 ? max(ledgerTerm, 2) : ledgerTerm, since: leadingSince)
            let grant = ledger.take(report, in: reign, now: start + milliseconds * millisecond)
            report.heldMicroRate = grant.microRate
            return grant
        }
    }

    @Test("the first node gets nearly all at once, with the burst of an idle container")
    func firstRequest() {
        var ledger = RateLedger()
        var one = Reporter(1, key)
        let grant = one.next(&ledger, at: 0, refused: 1)
        #expect(grant.microRate > 95_000_000 && grant.microRate <= 110_000_000)
        #expect(grant.microTokens >= 2_000_000 && grant.microTokens <= 11_000_000)
        #expect(grant.lifetimeMilliseconds == 2_000)
        #expect(grant.sequence == 1)
    }

    @Test("a second node gets something at once and an equal part when the first has made room")
    func secondNode() {
        var ledger = RateLedger()
        var (one, two) = (Reporter(1, key), Reporter(2, key))
        for turn in 0..<10 { _ = one.next(&ledger, at: UInt64(turn) * 100, accepted: 10, refused: 90) }
        let first = two.next(&ledger, at: 1_000, refused: 1)
        #expect(first.microRate > 0 && first.microRate < 15_000_000)
        _ = two.next(&ledger, at: 1_010, refused: 10)
        // Told to hold less, but it may not have heard yet.
        let lowered = one.next(&ledger, at: 1_020, accepted: 2, refused: 18)
        #expect(lowered.microRate < 60_000_000)
        #expect(two.next(&ledger, at: 1_030, refused: 10).microRate < 15_000_000)
        _ = one.next(&ledger, at: 1_040, accepted: 1, refused: 18)
        let second = two.next(&ledger, at: 1_050, accepted: 0, refused: 10)
        #expect(second.microRate > 40_000_000 && second.microRate < 60_000_000)
    }

    @Test("a lowered share counts until its holder reports it or it has expired")
    func loweredShare() {
        var ledger = RateLedger()
        var (one, two) = (Reporter(1, key), Reporter(2, key))
        for turn in 0..<10 { _ = one.next(&ledger, at: UInt64(turn) * 100, accepted: 10, refused: 90) }
        for at in stride(from: UInt64(1_000), to: 2_990, by: 10) {
            #expect(two.next(&ledger, at: at, refused: 5).microRate < 15_000_000, "after \(at) ms")
        }
        let grant = two.next(&ledger, at: 3_010, refused: 5)
        #expect(grant.microRate > 60_000_000, "the first node's share has expired")
    }

    @Test("a report that comes twice gets the same answer; an older one changes nothing")
    func repeatedAndLate() {
        var ledger = RateLedger()
        var one = Reporter(1, key)
        _ = one.next(&ledger, at: 0, refused: 1)
        let old = one.report
        let grant = one.next(&ledger, at: 100, accepted: 10, refused: 90)
        var copy = one.report
        copy.heldMicroRate = old.heldMicroRate
        let before = ledger
        #expect(ledger.take(copy, in: Self.first, now: Self.start + 150 * Self.millisecond) == grant)
        let late = ledger.take(old, in: Self.first, now: Self.start + 160 * Self.millisecond)
        #expect(late.microRate == 0 && late.sequence == 1)
        let now = Self.start + 160 * Self.millisecond
        #expect(ledger.usage(of: key, now: now)?.inForce == before.usage(of: key, now: now)?.inForce)
    }

    @Test("a restarted node starts anew, and what its earlier life still has in the network is ignored")
    func restart() {
        var ledger = RateLedger()
        var one = Reporter(1, key)
        for turn in 0..<10 { _ = one.next(&ledger, at: UInt64(turn) * 100, accepted: 10, refused: 90) }
        var late = one.report
        late.sequence += 1
        var again = Reporter(1, key, boot: 6)
        #expect(again.next(&ledger, at: 1_000, refused: 1).microRate > 80_000_000)
        #expect(ledger.take(late, in: Self.first, now: Self.start + 1_010 * Self.millisecond).microRate == 0)
        #expect(again.next(&ledger, at: 1_100, accepted: 10, refused: 90).microRate > 80_000_000)
    }

    @Test("a new leader lends what nodes report to hold, and a little besides, until older shares have expired")
    func newLeader() {
        var ledger = RateLedger()
        var (one, two) = (Reporter(1, key), Reporter(2, key))
        let since = Self.start
        one.report.heldMicroRate = 60_000_000
        #expect(one.next(&ledger, at: 10, refused: 10, leadingSince: since).microRate == 60_000_000)
        // Who holds nothing gets a request through at once, and little more until the first has made room.
        let newcomer = two.next(&ledger, at: 20, refused: 10, leadingSince: since)
        #expect(newcomer.microTokens >= 1_000_000 && newcomer.microTokens < 2_000_000)
        #expect(newcomer.microRate > 0 && newcomer.microRate <= 10_000_000)
        // The first falls silent: its part may move, but nothing may be added.
        _ = one.next(&ledger, at: 110, leadingSince: since) { $0.isSilent = true }
        _ = one.next(&ledger, at: 120, leadingSince: since) { $0.isSilent = true }
        let moved = two.next(&ledger, at: 130, refused: 10, leadingSince: since)
        #expect(moved.microRate > 50_000_000 && moved.microRate + one.report.heldMicroRate <= 70_000_000)
        #expect(two.next(&ledger, at: 2_099, refused: 10, leadingSince: since).microRate <= 70_000_000)
        #expect(two.next(&ledger, at: 2_101, refused: 50, leadingSince: since).microRate > 80_000_000)
    }

    @Test("a new leader whom nobody reports a share lends a twentieth of the limit at once, to all together")
    func newLeaderOfNobody() {
        var ledger = RateLedger()
        var nodes = (1...4).map { Reporter($0, key) }
        let first = nodes[0].next(&ledger, at: 0, refused: 10, leadingSince: Self.start)
        #expect(first.microTokens == 1_000_000 && first.microRate == 5_000_000)
        let second = nodes[1].next(&ledger, at: 30, refused: 10, leadingSince: Self.start)
        #expect(second.microTokens > 0 && second.microRate > 0)
        for turn in 1..<15 as Range<UInt64> {
            for node in nodes.indices {
                _ = nodes[node].next(&ledger, at: turn * 100, refused: 10, leadingSince: Self.start)
                #expect(nodes.reduce(0) { $0 + $1.report.heldMicroRate } <= 6_000_000)
            }
        }
        #expect(nodes.allSatisfy { $0.report.heldMicroRate > 1_200_000 })
    }

    @Test("a new term forgets everything; an older one gets nothing")
    func terms() {
        var ledger = RateLedger()
        var one = Reporter(1, key)
        _ = one.next(&ledger, at: 0, refused: 1)
        one.ledgerTerm = 2
        one.report.heldMicroRate = 0
        #expect(one.next(&ledger, at: 100, refused: 1, leadingSince: Self.start).microRate <= 6_000_000)
        one.ledgerTerm = 1
        #expect(one.next(&ledger, at: 200, refused: 1).lifetimeMilliseconds == 0)
    }

    @Test("a new leader gives requests that wait at a node a start, as far as what it may give goes, and keeps most")
    func startAtNewLeader() {
        var ledger = RateLedger()
        var (one, two) = (Reporter(1, key, limit: 100_000), Reporter(2, key, limit: 100_000))
        let grant = one.next(&ledger, at: 0, leadingSince: Self.start) { $0.waiting = 32 }
        #expect(grant.microTokens >= 32_000_000)
        #expect(grant.savedMicroTokens == 0, "nobody asks again before the shares of the last leader have expired")
        #expect(two.next(&ledger, at: 1, leadingSince: Self.start) { $0.waiting = 1_000 }.microTokens < 700_000_000)
        let held = one.next(&ledger, at: 2, accepted: 32, leadingSince: Self.start) { $0.waiting = 50 }
        #expect(held.microTokens == 0, "it holds a share, which pays")
        let low = (UInt64(1)...8).map { node in
            var other = Reporter(node, RateKey(container: "low", kind: .requests))
            return other.next(&ledger, at: 3, leadingSince: Self.start) { $0.waiting = 100 }.microTokens
        }
        #expect(low.reduce(0, +) <= 5_000_000, "a twentieth of a second of the limit, over all nodes: \(low)")
    }

    @Test("a node that goes idle gives its share back at once")
    func release() {
        var ledger = RateLedger()
        var (one, two) = (Reporter(1, key), Reporter(2, key))
        for turn in 0..<10 { _ = one.next(&ledger, at: UInt64(turn) * 100, accepted: 10, refused: 90) }
        let none = one.next(&ledger, at: 2_000) {
            $0.heldMicroRate = 0
            $0.wants = false
        }
        #expect(none.microRate == 0)
        #expect(two.next(&ledger, at: 2_001, refused: 1).microRate > 95_000_000)
    }

    @Test("the lowest limit that a node knows is the one that counts")
    func limitChange() {
        var ledger = RateLedger()
        var (one, two) = (Reporter(1, key), Reporter(2, key))
        _ = one.next(&ledger, at: 0, refused: 1)
        _ = two.next(&ledger, at: 1, refused: 1)
        _ = two.next(&ledger, at: 100, refused: 50) { $0.limit = 10 }
        #expect(one.next(&ledger, at: 110, refused: 50).microRate <= 11_000_000)
        #expect(two.next(&ledger, at: 120, refused: 50).microRate <= 11_000_000)
    }

    @Test("containers are apart, and idle ones are forgotten")
    func containers() {
        var ledger = RateLedger()
        for number in 0..<50 {
            var node = Reporter(1, RateKey(container: "c\(number)", kind: .keyValues))
            #expect(node.next(&ledger, at: 0, refused: 1).microRate > 95_000_000)
        }
        #expect(ledger.count == 50)
        var other = Reporter(1, key)
        for turn in 0..<60 { _ = other.next(&ledger, at: 61_000 + UInt64(turn) * 100, accepted: 1) }
        #expect(ledger.count == 1)
    }

    @Test("what a container saved in a second goes to the nodes whose requests wait, until all of it is given")
    func saved() {
        var ledger = RateLedger()
        var (one, two) = (Reporter(1, key), Reporter(2, key))
        let first = one.next(&ledger, at: 0) { $0.waiting = 1 }
        #expect(first.microTokens == 2_000_000, "twice as many as wait, for those that come meanwhile")
        #expect(first.savedMicroTokens == 98_000_000)
        let more = one.next(&ledger, at: 1, accepted: 2) { $0.waiting = 30 }
        #expect(more.microTokens == 60_000_000)
        // From half of it on, no more than wait.
        let next = two.next(&ledger, at: 2) { $0.waiting = 20 }
        #expect(next.microTokens == 20_000_000 && next.savedMicroTokens > 0)
        let last = two.next(&ledger, at: 3, accepted: 20) { $0.waiting = 50 }
        #expect(last.microTokens < 20_000_000 && last.savedMicroTokens == 0)
        let sum = [first, more, next, last].reduce(0) { $0 + $1.microTokens }
        #expect(sum > 98_000_000 && sum <= 100_500_000)
        let spent = two.next(&ledger, at: 4) {
            ($0.waiting, $0.leftMicroTokens) = (50, last.microTokens)
        }
        #expect(spent.microTokens <= 1_000_000)
    }

    @Test("a node that was given saved requests and died may have spent them: they are not given again")
    func savedAndDied() {
        var ledger = RateLedger()
        var one = Reporter(1, key)
        let first = one.next(&ledger, at: 0) { $0.waiting = 100 }
        #expect(first.microTokens == 100_000_000)
        var again = Reporter(1, key, boot: 6)
        #expect(again.next(&ledger, at: 10) { $0.waiting = 100 }.microTokens <= 1_000_000)
    }

    @Test("who leads first has a second saved; a lone node that starts again has saved since then, and lends at once")
    func loneNode() {
        func burst(_ reign: RateReign, at milliseconds: UInt64) -> RateGrant {
            var ledger = RateLedger()
            var report = RateReport(key: key, node: 1, boot: 5, sequence: 1, limit: 100)
            report.waiting = 1_000
            return ledger.take(report, in: reign, now: Self.start + milliseconds * Self.millisecond)
        }
        #expect(burst(RateReign(term: 1, since: Self.start), at: 1).microTokens == 100_000_000)
        let again = RateReign(term: 2, since: Self.start, isAlone: true)
        #expect(burst(again, at: 50).microTokens == 2_000_000, "a start, of the five that are saved")
        #expect(burst(again, at: 50).microRate > 80_000_000)
        #expect(burst(again, at: 700).microTokens == 70_000_000)
        #expect(burst(RateReign(term: 2, since: Self.start), at: 50).microRate == 5_000_000)
    }

    @Test("what a node may have accepted when it is heard of no more counts as spent, once")
    func silentNode() {
        var ledger = RateLedger()
        var (one, two) = (Reporter(1, key), Reporter(2, key))
        let given = one.next(&ledger, at: 0) { $0.waiting = 20 }
        #expect(given.microTokens == 40_000_000)
        // Its share has ended, with 40 requests and two seconds' pay; a second later as much is saved as ever.
        let first = two.next(&ledger, at: 2_150) { $0.waiting = 1_000 }
        #expect(first.microTokens <= 5_000_000)
        _ = two.next(&ledger, at: 2_160) { ($0.heldMicroRate, $0.wants) = (0, false) }
        let full = two.next(&ledger, at: 5_200) { ($0.wants, $0.waiting) = (true, 1_000) }
        #expect(full.microTokens > 95_000_000)
        // What it did is known now, and was counted.
        _ = one.next(&ledger, at: 5_210, accepted: 150) { ($0.heldMicroRate, $0.wants) = (0, false) }
        _ = two.next(&ledger, at: 5_220, accepted: full.microTokens / 1_000_000) {
            ($0.heldMicroRate, $0.wants) = (0, false)
        }
        let after = two.next(&ledger, at: 6_000) { ($0.wants, $0.waiting) = (true, 1_000) }
        #expect(after.microTokens > 40_000_000)
    }
}
