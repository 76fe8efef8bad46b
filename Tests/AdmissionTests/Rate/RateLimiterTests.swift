import Testing
import Wire

@testable import Admission

@Suite("A node's limiter")
struct RateLimiterTests {
    private let key = RateKey(container: "iCloud.example", kind: .requests)
    private let start: UInt64 = 1_000_000_000_000
    private let millisecond: UInt64 = 1_000_000

    private func limiter(microRate: UInt64, tokens: UInt64 = 2_000_000) -> RateLimiter {
        let limiter = RateLimiter(key: key, now: start)
        #expect(limiter.decide(now: start) == .needsShare)
        give(limiter, microRate: microRate, tokens: tokens, at: start)
        return limiter
    }

    private func give(_ limiter: RateLimiter, microRate: UInt64, tokens: UInt64 = 0, at now: UInt64) {
        guard let report = limiter.report(node: 1, boot: 1, limit: 100, now: now) else {
            Issue.record("no report is due")
            return
        }
        limiter.take(
            RateGrant(
                key: key, sequence: report.sequence, microRate: microRate, microTokens: tokens,
                lifetimeMilliseconds: 2_000), sentAt: now, now: now)
    }

    private func isAccepted(_ decision: RateDecision) -> Bool {
        if case .accepted = decision { true } else { false }
    }

    @Test("no share, no decision; the report is due at once, and only once")
    func firstRequest() {
        let limiter = RateLimiter(key: key, now: start)
        #expect(limiter.report(node: 1, boot: 1, limit: 40, now: start) == nil)
        #expect(limiter.decide(now: start) == .needsShare)
        let report = limiter.report(node: 1, boot: 1, limit: 40, now: start)
        #expect(report?.arrivals == 1 && report?.heldMicroRate == 0 && report?.wants == true)
        #expect(limiter.report(node: 1, boot: 1, limit: 40, now: start) == nil)
        #expect(limiter.state(now: start).microRate == 0 && limiter.state(now: start).nextMilliseconds == nil)
    }

    @Test("the share's rate is kept to the request, with a burst of a tenth of a second")
    func rate() {
        let limiter = limiter(microRate: 100_000_000)
        var accepted = 0
        for step in 0..<19_990 where isAccepted(limiter.decide(now: start + UInt64(step) * millisecond / 10)) {
            accepted += 1
        }
        // Two seconds less a millisecond at 100 a second, and two at the start.
        #expect(accepted == 201)
    }

    @Test("what is saved in a quiet time is at most the burst", arguments: [(100, 10), (5, 2)] as [(UInt64, Int)])
    func burst(rate: UInt64, burst: Int) {
        let limiter = limiter(microRate: rate * 1_000_000)
        let now = start + 1_900 * millisecond
        #expect(limiter.state(now: now).remaining == burst)
        #expect(limiter.decide(now: now) == .accepted(remaining: burst - 1, resetMilliseconds: Int(1_000 / rate)))
        for _ in 1..<burst { #expect(isAccepted(limiter.decide(now: now))) }
        #expect(!isAccepted(limiter.decide(now: now)))
    }

    @Test("a request that turns out to be worth several is owed for before the next is accepted")
    func severalTokens() throws {
        let limiter = limiter(microRate: 10_000_000)
        #expect(isAccepted(limiter.decide(now: start)))
        limiter.spend(more: 0, now: start)
        limiter.spend(more: 10, now: start)
        #expect(limiter.decide(now: start) == .refused(retryAfterMilliseconds: 1_001))
        // Two were there at the start: 12 are paid for after a second.
        var accepted = 0
        for step in 1...1_900 where isAccepted(limiter.decide(now: start + UInt64(step) * millisecond)) {
            accepted += 1
        }
        #expect(accepted == 21 - 11)
        // The ledger hears of it as of so many requests.
        let report = try #require(limiter.report(node: 1, boot: 1, limit: 40, now: start + 1_901 * millisecond))
        #expect(report.accepted == 21)
    }

    @Test("refusals promise one token after another, and a full burst ends the promises")
    func promises() {
        let limiter = limiter(microRate: 10_000_000, tokens: 0)
        #expect(limiter.decide(now: start) == .refused(retryAfterMilliseconds: 101))
        #expect(limiter.decide(now: start) == .refused(retryAfterMilliseconds: 203))
        #expect(limiter.decide(now: start) == .refused(retryAfterMilliseconds: 305))
        #expect(isAccepted(limiter.decide(now: start + 101 * millisecond)))
        #expect(isAccepted(limiter.decide(now: start + 203 * millisecond)))
        #expect(isAccepted(limiter.decide(now: start + 305 * millisecond)))
        for _ in 0..<10 { _ = limiter.decide(now: start + 305 * millisecond) }
        // Nobody came back in a second: the promises are void.
        for _ in 0..<2 { #expect(isAccepted(limiter.decide(now: start + 800 * millisecond))) }
        guard case .refused(let wait) = limiter.decide(now: start + 800 * millisecond) else {
            Issue.record("the burst is two requests")
            return
        }
        #expect(wait <= 102)
    }

    @Test("a share that is about to grow promises by what it will be")
    func growingShare() throws {
        let limiter = RateLimiter(key: key, now: start)
        _ = limiter.decide(now: start)
        let report = try #require(limiter.report(node: 1, boot: 1, limit: 100, now: start))
        limiter.take(
            RateGrant(
                key: key, sequence: report.sequence, microRate: 100_000, fairMicroRate: 50_000_000,
                lifetimeMilliseconds: 2_000), sentAt: start, now: start)
        #expect(limiter.decide(now: start) == .refused(retryAfterMilliseconds: 71))
        #expect(limiter.decide(now: start) == .refused(retryAfterMilliseconds: 92))
    }

    @Test("no refusal promises more than 30 s ahead")
    func longestPromise() {
        let limiter = limiter(microRate: 10_000_000, tokens: 0)
        var longest = 0
        for _ in 0..<2_000 {
            if case .refused(let wait) = limiter.decide(now: start) { longest = max(longest, wait) }
        }
        #expect((29_800...30_001).contains(longest))
    }

    @Test("a share ends two seconds after its report was sent, whenever the answer came")
    func expiry() throws {
        let limiter = RateLimiter(key: key, now: start)
        _ = limiter.decide(now: start)
        let report = try #require(limiter.report(node: 1, boot: 1, limit: 100, now: start))
        let grant = RateGrant(
            key: key, sequence: report.sequence, microRate: 50_000_000, microTokens: 2_000_000,
            lifetimeMilliseconds: 2_000)
        limiter.take(grant, sentAt: start, now: start + 1_500 * millisecond)
        #expect(isAccepted(limiter.decide(now: start + 1_999 * millisecond)))
        #expect(limiter.decide(now: start + 2_000 * millisecond) == .needsShare)
    }

    @Test("an answer counts once, and only if it answers the newest report")
    func lateAnswer() throws {
        let limiter = RateLimiter(key: key, now: start)
        _ = limiter.decide(now: start)
        let first = try #require(limiter.report(node: 1, boot: 1, limit: 100, now: start))
        let later = start + 500 * millisecond
        _ = limiter.decide(now: later)
        let second = try #require(limiter.report(node: 1, boot: 1, limit: 100, now: later))
        #expect(second.sequence == first.sequence + 1 && second.arrivals == 2)
        func grant(_ report: RateReport, _ rate: UInt64) -> RateGrant {
            RateGrant(key: key, sequence: report.sequence, microRate: rate, lifetimeMilliseconds: 2_000)
        }
        limiter.take(grant(first, 90_000_000), sentAt: start, now: later)
        #expect(limiter.state(now: later).microRate == 0)
        limiter.take(grant(second, 20_000_000), sentAt: later, now: later)
        limiter.take(grant(second, 70_000_000), sentAt: later, now: later)
        #expect(limiter.state(now: later).microRate == 20_000_000)
    }

    @Test("a node that falls silent says so, then gives its share back, then says nothing")
    func silence() throws {
        let limiter = limiter(microRate: 50_000_000)
        #expect(isAccepted(limiter.decide(now: start)))
        var reports: [RateReport] = []
        for step in 1..<300 {
            let now = start + UInt64(step) * 10 * millisecond
            guard let report = limiter.report(node: 1, boot: 1, limit: 100, now: now) else { continue }
            reports.append(report)
            let grant = RateGrant(
                key: key, sequence: report.sequence, microRate: 50_000_000, lifetimeMilliseconds: 2_000)
            limiter.take(grant, sentAt: now, now: now)
        }
        let last = try #require(reports.last)
        #expect(reports.contains { $0.isSilent && $0.wants && $0.heldMicroRate == 50_000_000 })
        #expect(!last.wants && last.heldMicroRate == 0 && last.accepted == 1)
        #expect(reports.filter { !$0.wants }.count == 1 && reports.count <= 14, "\(reports.count)")
        #expect(limiter.decide(now: start + 3_000 * millisecond) == .needsShare)
    }

    @Test("threads share one budget to the request")
    func threads() async {
        let limiter = limiter(microRate: 50_000_000, tokens: 5_000_000)
        let start = start
        let millisecond = millisecond
        let accepted = Tally()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for step in 0..<1_000 {
                        let now = start + UInt64(step) * millisecond
                        if case .accepted = limiter.decide(now: now) { accepted.add(1) }
                    }
                }
            }
        }
        // A second less a millisecond at 50 a second, and five at the start; less what a thread that ran ahead left
        // unsaved.
        #expect(accepted.value == 54)
    }

    @Test("while the ledger has requests saved, a node that has spent its share asks instead of refusing")
    func saved() throws {
        let limiter = RateLimiter(key: key, now: start)
        #expect(limiter.decide(now: start) == .needsShare)
        func take(tokens: UInt64, saved: UInt64) throws -> RateReport {
            let report = try #require(limiter.report(node: 1, boot: 1, limit: 100, now: start))
            var grant = RateGrant(
                key: key, sequence: report.sequence, microRate: 10_000_000, microTokens: tokens,
                lifetimeMilliseconds: 2_000)
            grant.savedMicroTokens = saved
            limiter.take(grant, sentAt: start, now: start)
            return report
        }
        _ = try take(tokens: 2_000_000, saved: 30_000_000)
        #expect(limiter.decide(now: start) == .accepted(remaining: 31, resetMilliseconds: 100))
        #expect(isAccepted(limiter.decide(now: start)))
        #expect(limiter.decide(now: start) == .needsShare)
        #expect(limiter.report(node: 1, boot: 1, limit: 100, now: start) == nil, "nobody waits")
        for _ in 0..<5 { _ = limiter.beginWait() }
        #expect(try take(tokens: 10_000_000, saved: 0).waiting == 5)
        for _ in 0..<10 { #expect(isAccepted(limiter.decide(now: start, isAgain: true))) }
        #expect(!isAccepted(limiter.decide(now: start)))
    }

    @Test("where the ledger cannot be asked, requests beyond the share are refused and do not wait for it")
    func savedButUnreachable() throws {
        let limiter = RateLimiter(key: key, now: start)
        _ = limiter.decide(now: start)
        let report = try #require(limiter.report(node: 1, boot: 1, limit: 100, now: start))
        var grant = RateGrant(
            key: key, sequence: report.sequence, microRate: 10_000_000, lifetimeMilliseconds: 2_000)
        grant.savedMicroTokens = 30_000_000
        limiter.take(grant, sentAt: start, now: start)
        #expect(limiter.decide(now: start) == .needsShare)
        _ = limiter.beginWait()
        #expect(limiter.report(node: 1, boot: 1, limit: 100, now: start)?.waiting == 1)
        limiter.noteLost(sentAt: start)
        #expect(limiter.decide(now: start, isAgain: true) == .refused(retryAfterMilliseconds: 101))
    }

    @Test("limiters are found by key, listed while active, and forgotten when idle")
    func registry() {
        let limiters = RateLimiters(limitersMax: 128)
        let one = limiters.limiter(key, now: start)
        #expect(limiters.limiter(key, now: start) === one)
        let other = RateKey(container: "iCloud.example", kind: .keyValues)
        #expect(limiters.limiter(other, now: start) !== one)
        #expect(limiters.active(now: start).map(\.key) == [other, key])
        #expect(limiters.active(now: start + 10_000 * millisecond).isEmpty)
        #expect(limiters.count == 2)
        #expect(limiters.active(now: start + 61_000 * millisecond).isEmpty)
        #expect(limiters.count == 0)
        for number in 0..<5_000 { _ = limiters.limiter(RateKey(container: "c\(number)", kind: .requests), now: start) }
        #expect(limiters.count <= 128)
    }

    @Test("a limiter makes room for another before its tokens are too many to be counted, however busy it is")
    func worn() {
        let limiters = RateLimiters(limitersMax: 128)
        let one = limiters.limiter(key, now: start)
        let until = start + 2_000 * millisecond
        one.terms.store(
            RateTerms(base: 1 << 62, since: start, microRate: RateRules.microRateMax, until: until))
        #expect(limiters.active(now: start).map(\.key) == [key])
        one.terms.store(
            RateTerms(base: (1 << 62) + 1, since: start, microRate: RateRules.microRateMax, until: until))
        #expect(limiters.active(now: start).isEmpty)
        #expect(limiters.limiter(key, now: start) !== one)
        // Requests that have the old one at hand go on until its share ends.
        #expect(isAccepted(one.decide(now: until - 1)))
    }

    @Test("reports and grants survive the wire, and nonsense does not")
    func wire() throws {
        let report = RateReport(
            key: key, node: 3, boot: .max, sequence: 9, accepted: 10, arrivals: 100, heldMicroRate: 5, wants: true,
            isSilent: true, promised: 3, limit: 40)
        #expect(try RateReport(decoding: report.encoded()) == report)
        var waiting = report
        (waiting.waiting, waiting.leftMicroTokens) = (7, 1_500_000)
        #expect(try RateReport(decoding: waiting.encoded()) == waiting)
        var leaving = report
        (leaving.wants, leaving.isSilent) = (false, false)
        #expect(try RateReport(decoding: leaving.encoded()) == leaving)
        let grant = RateGrant(
            key: key, sequence: 9, microRate: 7, fairMicroRate: 6, microTokens: 8, lifetimeMilliseconds: 2_000)
        #expect(try RateGrant(decoding: grant.encoded()) == grant)
        var absurd = grant
        absurd.microRate = .max
        #expect(throws: WireError.invalidValue(field: 3)) { try RateGrant(decoding: absurd.encoded()) }
        absurd = grant
        absurd.savedMicroTokens = .max
        #expect(throws: WireError.invalidValue(field: 7)) { try RateGrant(decoding: absurd.encoded()) }
        absurd = grant
        absurd.lifetimeMilliseconds = 3_000
        #expect(throws: WireError.invalidValue(field: 5)) { try RateGrant(decoding: absurd.encoded()) }
        var unlimited = report
        unlimited.limit = .max
        #expect(throws: WireError.invalidValue(field: 9)) { try RateReport(decoding: unlimited.encoded()) }
        let bytes = report.encoded()
        for length in 0..<bytes.count { _ = try? RateReport(decoding: bytes[0..<length]) }
        #expect(throws: WireError.missingField(1)) { try RateReport(decoding: [UInt8]()) }
    }

    @Test("a request that waits for a share is one arrival however often it asks, and no refusal")
    func waiting() {
        let limiter = RateLimiter(key: key, now: start)
        #expect(limiter.decide(now: start) == .needsShare)
        #expect(limiter.beginWait() == 1)
        for _ in 0..<480 { #expect(limiter.decide(now: start, isAgain: true) == .needsShare) }
        give(limiter, microRate: 10_000_000, tokens: 2_000_000, at: start)
        #expect(isAccepted(limiter.decide(now: start, isAgain: true)))
        limiter.endWait()
        #expect(isAccepted(limiter.decide(now: start)))
        var report = limiter.report(node: 1, boot: 1, limit: 100, now: start + 100 * millisecond)
        #expect(report?.arrivals == 2 && report?.accepted == 2 && report?.refused == 0)
        #expect(!isAccepted(limiter.decide(now: start)))
        report = limiter.report(node: 1, boot: 1, limit: 100, now: start + 1_200 * millisecond)
        #expect(report?.arrivals == 3 && report?.accepted == 2 && report?.refused == 1)
    }

    @Test("as long as a request waits, a ledger that had no share is asked again")
    func askingAgain() {
        let limiter = RateLimiter(key: key, now: start)
        #expect(limiter.decide(now: start) == .needsShare)
        _ = limiter.beginWait()
        give(limiter, microRate: 0, at: start)
        #expect(limiter.report(node: 1, boot: 1, limit: 100, now: start + millisecond) == nil, "not at once")
        give(limiter, microRate: 0, at: start + 50 * millisecond)
        limiter.endWait()
        #expect(limiter.report(node: 1, boot: 1, limit: 100, now: start + 2_000 * millisecond) == nil, "nobody waits")
    }
}
