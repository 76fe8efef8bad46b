import Synchronization
import Testing

@testable import Admission

@Suite("What callers owe for costly requests")
struct RateDebtsTests {
    private let start: UInt64 = 1_000_000_000_000
    private let millisecond: UInt64 = 1_000_000

    /// A limiter with a share, its debts, and who asks beside the debtors.
    private final class Share {
        let limiter = RateLimiter(key: RateKey(container: "app", kind: .requests), now: 1_000_000_000_000)
        var debts: RateDebts { limiter.debts.withLock { $0 } }
        var accepted = 0

        func renew(at now: UInt64) {
            guard let report = limiter.report(node: 1, boot: 1, limit: 100, now: now) else { return }
            limiter.take(
                RateGrant(
                    key: limiter.key, sequence: report.sequence, microRate: 100_000_000, lifetimeMilliseconds: 2_000),
                sentAt: now, now: now)
        }

        func spend(_ tokens: UInt64, by debtor: String, at now: UInt64) {
            limiter.charge(tokens, to: debtor, limit: 100, now: now)
        }

        /// Goes on in steps of 10 ms. Others ask for all that they can get, or for nothing.
        func goOn(from start: UInt64, steps: Range<UInt64>, besideOthers: Bool) {
            for step in steps {
                let now = start + step * 10_000_000
                renew(at: now)
                limiter.payDebts(now: now)
                while besideOthers, case .accepted = limiter.decide(now: now) { accepted += 1 }
            }
        }
    }

    private func share() -> Share {
        let share = Share()
        _ = share.limiter.decide(now: start)
        share.renew(at: start)
        return share
    }

    private func wait(_ share: Share, _ debtor: String, at now: UInt64) -> Int? {
        share.limiter.wait(of: debtor, now: now)
    }

    @Test("who owes waits until it is paid at half the rate, and the others have the other half")
    func halves() {
        let share = share()
        share.spend(300, by: "ann", at: start)
        #expect(share.debts.debt(of: "ann") == 300 && share.debts.debt(of: "bob") == 0)
        let told = wait(share, "ann", at: start)
        #expect(told == 6_001 && wait(share, "bob", at: start) == nil)
        share.goOn(from: start, steps: 0..<400, besideOthers: true)
        #expect((190...205).contains(share.accepted), "\(share.accepted) in four seconds of 100 a second")
        #expect((95...105).contains(share.debts.debt(of: "ann")))
        share.goOn(from: start, steps: 400..<601, besideOthers: true)
        #expect(share.debts.isEmpty && share.debts.debt(of: "ann") == 0, "the time that was told is over")
    }

    @Test("where nobody else asks, debts are paid at the whole rate, but for a token that is kept")
    func alone() {
        let share = share()
        share.spend(300, by: "ann", at: start)
        share.goOn(from: start, steps: 0..<200, besideOthers: false)
        #expect((95...105).contains(share.debts.debt(of: "ann")), "200 are paid in two seconds of 100 a second")
        share.goOn(from: start, steps: 200..<304, besideOthers: false)
        #expect(share.debts.isEmpty)
        guard case .accepted = share.limiter.decide(now: start + 3_040 * millisecond) else {
            Issue.record("the next one finds no token")
            return
        }
    }

    @Test("what is there is spent at once, unless others owe already")
    func spare() {
        let share = share()
        share.goOn(from: start, steps: 0..<50, besideOthers: false)
        let now = start + 500 * millisecond
        let left = share.limiter.state(now: now).left / RateRules.micro
        #expect(left >= 10)
        share.spend(left, by: "ann", at: now)
        #expect(share.debts.isEmpty)
        share.spend(20, by: "ann", at: now)
        #expect(share.debts.debt(of: "ann") == 20)
        share.spend(5, by: "bob", at: now)
        #expect(share.debts.debt(of: "bob") == 25, "the oldest is paid first")
        share.goOn(from: now, steps: 0..<45, besideOthers: true)
        #expect(share.debts.debt(of: "ann") == 0 && share.debts.debt(of: "bob") > 0)
    }

    @Test("beyond half a minute of the limit nothing more is owed: then everybody waits")
    func bound() {
        let share = share()
        share.spend(2_500, by: "ann", at: start)
        share.spend(2_500, by: "bob", at: start)
        #expect(share.debts.debt(of: "ann") == 2_500 && share.debts.debt(of: "bob") == 3_000)
        guard case .refused = share.limiter.decide(now: start + 10 * millisecond) else {
            Issue.record("2,000 are owed by all")
            return
        }
        #expect(wait(share, "bob", at: start) == 30_000)
        var debts = share.debts
        let state = share.limiter.state(now: start)
        _ = debts.pay(state, limit: 10, now: start + 10 * millisecond)
        #expect(debts.debt(of: "bob") <= 300 && debts.debt(of: "ann") == 0, "under a lower limit less is owed")
    }

    @Test("refused requests are told twice the time while something is owed")
    func others() {
        let share = share()
        share.spend(300, by: "ann", at: start)
        while case .accepted = share.limiter.decide(now: start) {}
        guard case .refused(let wait) = share.limiter.decide(now: start) else {
            Issue.record("there is no token left")
            return
        }
        #expect((38...60).contains(wait), "\(wait): a token takes 10 ms, and two were promised before")
    }

    @Test("without a share debts wait, and are forgotten after a minute")
    func withoutShare() {
        var debts = RateDebts()
        let share = RateState(microRate: 10_000_000, remaining: 0, validUntil: .max)
        let none = RateState(microRate: 0, remaining: 0, validUntil: 0)
        #expect(debts.add(5, by: "ann", share, limit: 10, now: start) == 5)
        #expect(debts.add(5, by: "bob", none, limit: 10, now: start) == 5, "the share has just ended")
        #expect(debts.pay(none, limit: 10, now: start + RateRules.forgetAfter) == 0)
        #expect(debts.debt(of: "ann") == 5 && debts.retryAfterMilliseconds("ann", none) == 1_000)
        #expect(debts.pay(none, limit: 10, now: start + RateRules.forgetAfter + 1) == 0)
        #expect(debts.isEmpty)
    }
}
