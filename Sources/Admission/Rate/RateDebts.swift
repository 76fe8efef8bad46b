/// What requests under one limiter cost beyond their first token, where its share did not have that: owed by those who
/// sent them, and paid off oldest first.
///
/// Half of what the share brings goes to debts, and all that nobody else asks for. So who owes waits until that is
/// paid, and the others go on at half of the rate.
package struct RateDebts: Sendable {
    /// How many seconds of the whole share may be owed. Beyond that everybody waits: what a container's requests cost
    /// in all is bounded by its rate.
    private static let secondsMax: UInt64 = 60

    /// Tokens that were owed and paid in all.
    private var owed: UInt64 = 0
    private var paid: UInt64 = 0
    /// The sum of payments that clears each debtor.
    private var clearAt: [String: UInt64] = [:]
    private var paidAt: UInt64
    /// Micro-tokens of the half for debts that are not used yet.
    private var saved: UInt64 = 0

    /// - Parameter now: nanoseconds of the limiter's clock.
    package init(now: UInt64) { paidAt = now }

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
    /// - Returns: how many the debtor owes. The others are to be spent at once: they are there, or too much is owed
    ///   already.
    package mutating func add(_ tokens: UInt64, by debtor: String, _ state: RateState) -> UInt64 {
        let free = isEmpty ? state.left / RateRules.micro : 0
        let owedMax = state.microRate * Self.secondsMax / RateRules.micro
        let left = owed - paid
        let new = min(tokens - min(tokens, free), owedMax - min(owedMax, left))
        guard new > 0 else { return 0 }
        owed += new
        clearAt[debtor] = owed
        return new
    }

    /// Pays from what the share has brought since the last time.
    /// - Returns: how many tokens to spend.
    package mutating func pay(_ state: RateState, now: UInt64) -> UInt64 {
        let elapsed = now - min(now, paidAt)
        guard state.microRate > 0 else {
            // Nobody asks any more; a limiter is forgotten after the same time.
            if elapsed > RateRules.forgetAfter { self = RateDebts(now: now) }
            return 0
        }
        paidAt = now
        saved += state.microRate * (min(elapsed, RateRules.second) / 2_000) / 1_000_000
        // One token stays for who comes next.
        let spare = max(state.left / RateRules.micro, 1) - 1
        let tokens = min(max(saved / RateRules.micro, spare), owed - paid)
        saved -= min(saved, tokens * RateRules.micro)
        paid += tokens
        if isEmpty {
            self = RateDebts(now: now)
        } else if tokens > 0 {
            clearAt = clearAt.filter { $0.value > paid }
        }
        return tokens
    }
}
