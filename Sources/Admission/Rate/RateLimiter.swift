import Synchronization

/// The rate of one container at one node: decides in memory, without a lock, within the share that the ledger lent.
///
/// GCRA, counted in tokens instead of time, so that a change of the share changes nothing that was saved or promised:
/// the share pays tokens (`RateTerms.tokens`), each accepted request spends one, and what is paid but not spent is at
/// most the burst. Refusals stand in a row, a little more than a token's time apart, so clients that come back when
/// they were told find room. The row is kept in time, as clients keep it: what was promised before the share changed is
/// past when its time is past. A request is accepted where one token is there; what it costs beyond that
/// (`spend(more:)`) may be owed. Invariant: accepted <= paid + what the last requests owe + one token for each request
/// that was between reading the terms and spending when a share ended.
///
/// Time is the node's monotonic clock in nanoseconds, from the caller; it may stand still, and differ a little between
/// threads.
package final class RateLimiter: Sendable {
    package let key: RateKey
    /// Tells this limiter from an earlier one for the same key in the same process.
    let instance: UInt64
    private static let instances = Atomic<UInt64>(0)

    let terms = RateTermsCell()
    /// Tokens spent, on the scale of `RateTerms.tokens`: never behind it by more than the burst when it counts.
    let spent = Atomic<UInt64>(0)
    /// When the last of those who were refused was told to come back.
    let promised = Atomic<UInt64>(0)
    let accepted = Atomic<UInt64>(0)
    /// Of these, requests that had to wait for a share.
    let acceptedLate = Atomic<UInt64>(0)
    /// Requests that were refused when they came, and those that found no share.
    let turnedAway = Atomic<UInt64>(0)
    /// Requests refused by a share, at once or after they waited for one.
    let refused = Atomic<UInt64>(0)
    /// Requests that wait for a share now.
    let waiters = Atomic<Int>(0)
    /// When a request came last, to the millisecond.
    let lastArrival: Atomic<UInt64>
    let reporting = Mutex(RateReporting())

    package init(key: RateKey, now: UInt64 = 0) {
        self.key = key
        instance = Self.instances.add(1, ordering: .relaxed).newValue
        lastArrival = Atomic(now)
    }

    /// Decides about one request, and counts it.
    /// - Parameter isAgain: whether the request was answered `.needsShare` before: it came once.
    package func decide(now: UInt64, isAgain: Bool = false) -> RateDecision {
        let last = lastArrival.load(ordering: .relaxed)
        // Not each time: all cores of a busy container would pass one cache line around.
        if now > last, now - last > RateRules.millisecond { lastArrival.store(now, ordering: .relaxed) }
        let terms = terms.load()
        guard terms.isValid(at: now) else {
            if !isAgain { turnedAway.add(1, ordering: .relaxed) }
            return .needsShare
        }
        let paid = terms.tokens(at: now)
        let burst = terms.burst
        let floor = paid > burst ? paid - burst : 0
        var before = spent.load(ordering: .relaxed)
        while true {
            let start = max(before, floor)
            guard start + RateRules.micro <= paid else {
                if !isAgain { turnedAway.add(1, ordering: .relaxed) }
                guard terms.saved == 0 else { return .needsShare }
                return refuse(terms, missing: start + RateRules.micro - paid, now: now)
            }
            let (isMine, current) = spent.weakCompareExchange(
                expected: before, desired: start + RateRules.micro, ordering: .relaxed)
            if isMine {
                if isAgain { acceptedLate.add(1, ordering: .relaxed) }
                accepted.add(1, ordering: .relaxed)
                // A whole burst was left: a client that was promised a token did not come for it.
                if start == floor, promised.load(ordering: .relaxed) > now { promised.store(0, ordering: .relaxed) }
                return accept(terms, left: paid - start - RateRules.micro)
            }
            before = current
        }
    }

    /// Spends more for a request that was accepted, and turns out to be worth several. What is not there is owed: it is
    /// paid before another request is accepted.
    package func spend(more tokens: UInt64) {
        if tokens == 0 { return }
        accepted.add(tokens, ordering: .relaxed)
        spent.add(tokens * RateRules.micro, ordering: .relaxed)
    }

    private func accept(_ terms: RateTerms, left: UInt64) -> RateDecision {
        .accepted(
            remaining: Int((left + terms.saved) / RateRules.micro),
            resetMilliseconds: Self.milliseconds(terms.microseconds(toPay: terms.burst - min(terms.burst, left))))
    }

    /// What was paid for and is not spent, in micro-requests.
    func left(_ terms: RateTerms, now: UInt64) -> UInt64 {
        let paid = terms.tokens(at: now)
        return paid - min(paid, max(spent.load(ordering: .relaxed), paid - min(paid, terms.burst)))
    }

    /// Promises the next place in the row, at most 30 s ahead.
    private func refuse(_ terms: RateTerms, missing: UInt64, now: UInt64) -> RateDecision {
        refused.add(1, ordering: .relaxed)
        let longest = RateRules.promiseMax / 1_000
        let soonest = now + min(terms.promisedMicroseconds(toPay: missing), longest) * 1_000
        let distance = min(terms.distanceMicroseconds, longest) * 1_000
        var before = promised.load(ordering: .relaxed)
        while true {
            let slot = before > now ? max(before + distance, soonest) : soonest
            let wait = slot - now
            guard wait < RateRules.promiseMax else {
                return .refused(retryAfterMilliseconds: Int(RateRules.promiseMax / RateRules.millisecond))
            }
            let (isMine, current) = promised.weakCompareExchange(expected: before, desired: slot, ordering: .relaxed)
            if isMine {
                return .refused(retryAfterMilliseconds: Self.milliseconds((wait + 999) / 1_000) + 1)
            }
            before = current
        }
    }

    /// A request that was answered `.needsShare` waits: as long as any does, the limiter asks the ledger again.
    /// `endWait` must follow.
    /// - Returns: how many wait, with this one.
    package func beginWait() -> Int { waiters.add(1, ordering: .relaxed).newValue }

    /// A waiting request was decided on, or went away.
    package func endWait() { waiters.subtract(1, ordering: .relaxed) }

    /// What the limiter would say now, without counting a request.
    package func state(now: UInt64) -> RateState {
        let terms = terms.load()
        guard terms.isValid(at: now) else { return RateState(microRate: 0, remaining: 0, validUntil: 0) }
        let left = left(terms, now: now)
        let missing = RateRules.micro - min(RateRules.micro, left)
        return RateState(
            microRate: terms.microRate, remaining: Int((left + terms.saved) / RateRules.micro),
            nextMilliseconds: missing == 0 || terms.saved > 0
                ? 0 : Self.milliseconds(terms.microseconds(toPay: missing)),
            resetMilliseconds: Self.milliseconds(terms.microseconds(toPay: terms.burst - min(terms.burst, left))),
            validUntil: terms.until)
    }

    /// Rounded up.
    private static func milliseconds(_ microseconds: UInt64) -> Int {
        Int(min(microseconds, 86_400_000_000) / 1_000) + (microseconds % 1_000 > 0 ? 1 : 0)
    }
}

/// What a node does with a request, as far as its container's rate goes.
package enum RateDecision: Hashable, Sendable {
    /// The request may go on. So many more would be accepted at once; the burst is whole again after
    /// `resetMilliseconds`.
    case accepted(remaining: Int, resetMilliseconds: Int)
    /// The container's limit is met: 429 `THROTTLED`. A client that comes back after exactly so long finds room, unless
    /// others do not keep to what they were told. From 1 to 30,001.
    case refused(retryAfterMilliseconds: Int)
    /// The node holds no share, or has spent it while the ledger has requests saved: ask the ledger, wait a moment,
    /// decide again; else 503.
    case needsShare
}

/// A look at a limiter, for headers and for `limits explain`.
package struct RateState: Hashable, Sendable {
    /// The share in force, in micro-requests a second; 0: none.
    package var microRate: UInt64
    /// Whole requests that would be accepted now.
    package var remaining: Int
    /// Until one (more) request would be accepted; nil without a share.
    package var nextMilliseconds: Int?
    /// Until the burst is whole; nil without a share.
    package var resetMilliseconds: Int?
    /// When the share expires, in nanoseconds of the node's monotonic clock; 0: no share.
    package var validUntil: UInt64
}
