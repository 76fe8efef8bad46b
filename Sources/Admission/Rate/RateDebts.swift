import Synchronization

/// What requests cost beyond their first token, where the share of the rate did not have that. Each caller owes what
/// its own requests cost, and the oldest debts are paid first.
///
/// Half of what the share brings goes to debts, and all that nobody else asks for. So a caller that owes waits until
/// that is paid, and the others go on at half of the rate.
package struct RateDebts: Sendable {
    /// How many seconds of the container's limit may be owed. Beyond that everybody waits: what a container's requests
    /// cost in all is bounded by its rate.
    private static let secondsMax: UInt64 = 30

    /// Tokens that were owed and paid in all.
    private var owed: UInt64 = 0
    private var paid: UInt64 = 0
    /// The sum of payments that clears each debtor. Who is clear may be here until the next sweep.
    private var clearAt: [String: UInt64] = [:]
    private var sweepAt = 64
    private var paidAt: UInt64 = 0
    /// Micro-tokens of the half for debts that are not used yet.
    private var saved: UInt64 = 0

    package init() {}

    /// Whether nothing is owed.
    package var isEmpty: Bool { paid == owed }

    /// How many tokens are to be paid until a debtor may ask again.
    package func debt(of debtor: String) -> UInt64 {
        let end = clearAt[debtor] ?? 0
        return end > paid ? end - paid : 0
    }

    /// How long a debtor is to wait; nil where it owes nothing.
    package func retryAfterMilliseconds(_ debtor: String, _ state: RateState) -> Int? {
        let debt = debt(of: debtor)
        guard debt > 0 else { return nil }
        let longest = RateRules.promiseMax / RateRules.millisecond
        guard state.microRate > 0 else { return Int(RateRules.second / RateRules.millisecond) }
        return Int(min(debt * 2 * RateRules.micro * 1_000 / state.microRate + 1, longest))
    }

    /// Takes tokens for a request.
    /// - Parameter limit: the container's, in requests a second.
    /// - Returns: how many the debtor owes. The others are to be spent at once: they are there, or too much is owed
    ///   already.
    package mutating func add(
        _ tokens: UInt64, by debtor: String, _ state: RateState, limit: UInt64, now: UInt64
    ) -> UInt64 {
        if isEmpty { self = RateDebts(since: now) }
        let free = isEmpty ? state.left / RateRules.micro : 0
        let most = limit * Self.secondsMax
        let new = min(tokens - min(tokens, free), most - min(most, owed - paid))
        guard new > 0 else { return 0 }
        if clearAt.count >= sweepAt {
            clearAt = clearAt.filter { $0.value > paid }
            sweepAt = max(64, 2 * clearAt.count)
        }
        owed += new
        clearAt[debtor] = owed
        return new
    }

    private init(since now: UInt64) { paidAt = now }

    /// Pays from what the share has brought since the last time. Of what is owed beyond the bound, as under a limit
    /// that was lowered, the oldest is forgiven.
    /// - Returns: how many tokens to spend.
    package mutating func pay(_ state: RateState, limit: UInt64, now: UInt64) -> UInt64 {
        let elapsed = now - min(now, paidAt)
        guard state.microRate > 0 else {
            // Nobody asks any more; a limiter is forgotten after the same time.
            if elapsed > RateRules.forgetAfter { self = RateDebts() }
            return 0
        }
        paidAt = now
        paid = max(paid, owed - min(owed, limit * Self.secondsMax))
        saved += state.microRate * (min(elapsed, RateRules.second) / 2_000) / 1_000_000
        // One token stays for who comes next.
        let spare = max(state.left / RateRules.micro, 1) - 1
        let tokens = min(max(saved / RateRules.micro, spare), owed - paid)
        saved -= min(saved, tokens * RateRules.micro)
        paid += tokens
        if isEmpty { self = RateDebts() }
        return tokens
    }
}

// Debts are under a lock of their own, which requests take only where something is owed.
extension RateLimiter {
    /// Charges a caller for what an accepted request costs beyond its first token.
    /// - Parameter limit: the container's, in requests a second.
    package func charge(_ tokens: UInt64, to debtor: String, limit: UInt64, now: UInt64) {
        if tokens == 0 { return }
        debts.withLock { debts in
            let owed = debts.add(tokens, by: debtor, state(now: now), limit: limit, now: now)
            spend(more: tokens - owed, now: now)
            owes.store(!debts.isEmpty, ordering: .relaxed)
        }
    }

    /// Milliseconds until a caller that owes may ask again; nil where it owes nothing.
    package func wait(of debtor: String, now: UInt64) -> Int? {
        guard owes.load(ordering: .relaxed) else { return nil }
        return debts.withLock { $0.retryAfterMilliseconds(debtor, state(now: now)) }
    }

    /// Counts a request that was refused because its caller owes: it came, so the node needs a share.
    package func turnAway(now: UInt64) {
        keep(now: now)
        turnedAway.add(1, ordering: .relaxed)
    }

    /// Pays debts from the share; to be called about as often as `report`.
    func payDebts(now: UInt64) {
        guard owes.load(ordering: .relaxed) else { return }
        // Though nobody asks, the share is needed.
        keep(now: now)
        let limit = reporting.withLock(\.limit)
        debts.withLock { debts in
            spend(more: debts.pay(state(now: now), limit: limit, now: now), now: now)
            owes.store(!debts.isEmpty, ordering: .relaxed)
        }
    }

    private func keep(now: UInt64) { lastArrival.store(now, ordering: .relaxed) }
}
