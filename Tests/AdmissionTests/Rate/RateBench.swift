import Admission

/// Limiters and a ledger that talk without delay, every 10 ms; decisions are the test's.
struct RateBench {
    let limiters: [RateLimiter]
    var ledger = RateLedger()
    var limit: UInt64

    init(limit: UInt64, nodes: Int) {
        self.limit = limit
        limiters = (0..<nodes).map { _ in
            RateLimiter(key: RateKey(container: "iCloud.example", kind: .requests), now: Self.clock(0))
        }
    }

    static func clock(_ millisecond: Int) -> UInt64 { 1_000_000_000_000 + UInt64(millisecond) * 1_000_000 }

    mutating func step(_ millisecond: Int) {
        if millisecond % 10 == 0 { for node in limiters.indices { exchange(node, millisecond) } }
    }

    /// A decision; without a share, the ledger is asked first.
    mutating func decide(_ node: Int, _ millisecond: Int) -> RateDecision {
        let now = Self.clock(millisecond)
        let decision = limiters[node].decide(now: now)
        guard decision == .needsShare else { return decision }
        _ = limiters[node].beginWait()
        exchange(node, millisecond)
        limiters[node].endWait()
        return limiters[node].decide(now: now, isAgain: true)
    }

    private mutating func exchange(_ node: Int, _ millisecond: Int) {
        let now = Self.clock(millisecond)
        for _ in 0..<2 {
            guard let report = limiters[node].report(node: UInt64(node), boot: 7, limit: limit, now: now) else {
                return
            }
            let grant = ledger.take(report, in: RateReign(term: 1, since: 0), now: now)
            guard limiters[node].take(grant, sentAt: now, now: now) else { return }
        }
    }
}
