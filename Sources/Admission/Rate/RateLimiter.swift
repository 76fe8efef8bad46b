import Synchronization

/// The rate of one container at one node: decides in memory, without a lock, within the share that the ledger lent.
///
/// GCRA, counted in tokens instead of time, so that a change of the share changes nothing that was saved or promised:
/// the share pays tokens (`RateTerms.tokens`), each accepted request spends one, and what is paid but not spent is at
/// most the burst. Refusals stand in a row, a little more than a token's time apart, so clients that come back when
/// they were told find room. The row is kept in time, as clients keep it: what was promised before the share changed is
/// past when its time is past. A request is accepted where one token is there; what it costs beyond that
/// (`spend(more:now:)`) may be owed. Invariant: accepted <= paid + what the last requests owe + one token for each
/// request that was between reading the terms and spending when a share ended.
///
/// Time is the node's monotonic clock in nanoseconds, from the caller; it may stand still, and differ a little between
/// threads.
package final class RateLimiter: Sendable {
    /// The container and the kind of requests that it limits.
    package let key: RateKey
    /// Tells this limiter from an earlier one for the same key in the same process.
    let instance: UInt64
    private static let instances = Atomic<UInt64>(0)

    let terms = RateTermsCell()
    /// Tokens spent, on the scale of `RateTerms.tokens`: never behind it by more than the burst when it counts.
    let spent = Atomic<UInt64>(0)
    /// The time promised to the last refused request.
    let promised = Atomic<UInt64>(0)
    let accepted = Atomic<UInt64>(0)
    /// Of these, requests that had to wait for a share.
    let acceptedLate = Atomic<UInt64>(0)
    /// Requests that were refused on arrival, or found no share.
    let turnedAway = Atomic<UInt64>(0)
    /// Requests refused by a share, at once or after they waited for one.
    let refused = Atomic<UInt64>(0)
    /// Requests that wait for a share now.
    let waiters = Atomic<Int>(0)
    /// When a request came last, to the millisecond.
    let lastArrival: Atomic<UInt64>
    let reporting = Mutex(RateReporting())
    let debts = Mutex(RateDebts())
    /// Whether something is owed.
    let owes = Atomic<Bool>(false)

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
    func spend(more tokens: UInt64, now: UInt64) {
        if tokens == 0 { return }
        let terms = terms.load()
        let paid = terms.tokens(at: now)
        forfeit(upTo: paid - min(paid, terms.burst))
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
                // While debts take half of the share, it brings a token after twice the time.
                let told = owes.load(ordering: .relaxed) ? min(2 * wait, RateRules.promiseMax) : wait
                return .refused(retryAfterMilliseconds: Self.milliseconds((told + 999) / 1_000) + 1)
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
            microRate: terms.microRate, left: left, remaining: Int((left + terms.saved) / RateRules.micro),
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
    /// The request is accepted. `remaining` more would be accepted at once; the burst is full again after
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
    /// What the share has paid for and is not spent, in micro-requests.
    package var left: UInt64 = 0
    /// Whole requests that would be accepted now.
    package var remaining: Int
    /// Until one (more) request would be accepted; nil without a share.
    package var nextMilliseconds: Int?
    /// Until the burst is whole; nil without a share.
    package var resetMilliseconds: Int?
    /// When the share expires, in nanoseconds of the node's monotonic clock; 0: no share.
    package var validUntil: UInt64
}

/// The limiter's talk with the ledger: the shell asks for a report every few milliseconds, sends it, and hands the
/// answer in.
extension RateLimiter {
    /// The report that is due; nil if there is nothing to report. Call it about every 10 ms, and at once after a
    /// `.needsShare`.
    ///
    /// Due: at once when demand begins, when requests wait for what the ledger saved, and when a share was lowered much
    /// or requests stopped, so that others can have it; else every 100 ms while requests come. While an answer is
    /// awaited, not for 250 ms.
    /// - Parameters:
    ///   - boot: Random for each start of the node.
    ///   - limit: The container's limit as the directory says, in requests a second; asked for only where a report is
    ///     due.
    package func report(
        node: UInt64, boot: UInt64, limit: @autoclosure () -> UInt64, now: UInt64
    ) -> RateReport? {
        reporting.withLock { state in
            let accepted = accepted.load(ordering: .relaxed)
            let late = acceptedLate.load(ordering: .relaxed)
            // Never less than it was: the two move one after the other.
            let arrivals = max(
                accepted - min(accepted, late) + turnedAway.load(ordering: .relaxed), state.reportedArrivals)
            let held = terms.load()
            guard isDue(&state, held: held, arrivals: arrivals, now: now) else { return nil }
            state.limit = limit()
            state.note(arrivals: arrivals, now: now)
            let silence = silence(at: now)
            state.isSilent = silence >= state.silentAfter
            // Only while the ledger answers: otherwise the returned share would be unused until it expires.
            let isLeaving = held.isValid(at: now) && silence >= RateRules.releaseAfter && !state.isWaiting
            if isLeaving { terms.store(RateTerms(base: held.tokens(at: now), since: now)) }
            state.noteSent(now: now, isWaiting: !isLeaving)
            var report = RateReport(
                key: key, node: node, boot: boot &+ instance &* 0x9E37_79B9_7F4A_7C15, sequence: state.sequence,
                accepted: accepted, arrivals: arrivals, refused: refused.load(ordering: .relaxed),
                heldMicroRate: held.isValid(at: now) && !isLeaving ? held.microRate : 0, wants: !isLeaving,
                isSilent: state.isSilent, promised: waiting(held, now: now), limit: state.limit)
            report.waiting = UInt64(max(0, waiters.load(ordering: .relaxed)))
            report.leftMicroTokens = report.heldMicroRate > 0 ? left(held, now: now) : 0
            report.answered = state.answered
            report.sinceAnswerMicroseconds = (now - min(now, state.answeredAt)) / 1_000
            return report
        }
    }

    /// Takes the answer to the report that was sent at `sentAt`. An answer to any report but the newest is ignored: the
    /// newest said what the node holds, and the ledger counts on that.
    /// - Returns: Whether to report again at once, because the share was lowered and others wait for it.
    @discardableResult
    package func take(_ grant: RateGrant, sentAt: UInt64, now: UInt64) -> Bool {
        reporting.withLock { state in
            guard grant.sequence == state.sequence, state.isWaiting, sentAt == state.sentAt else { return false }
            state.noteAnswered(now: now)
            let held = terms.load()
            var new = RateTerms(base: held.tokens(at: now), since: now)
            guard grant.microRate > 0 else {
                state.askAgainAt = now + min(grant.lifetimeMilliseconds, 50) * RateRules.millisecond
                terms.store(new)
                state.owesAcknowledgement = held.isValid(at: now)
                return state.owesAcknowledgement
            }
            state.askAgainAt = 0
            let hadShare = held.isValid(at: now)
            if !hadShare {
                // What was saved went back to the ledger with the share.
                forfeit(upTo: new.base)
            }
            new.base += grant.microTokens
            new.burstLeast = max(grant.microTokens, RateRules.burstLeast(limit: state.limit))
            new.saved = grant.savedMicroTokens
            new.microRate = grant.microRate
            new.fairMicroRate = grant.fairMicroRate
            new.until = sentAt + min(grant.lifetimeMilliseconds, RateRules.lifetimeMilliseconds) * RateRules.millisecond
            terms.store(new)
            state.owesAcknowledgement = hadShare && grant.microRate + held.microRate / 16 < held.microRate
            return state.owesAcknowledgement
        }
    }

    /// Says that the report sent at `sentAt` will get no answer (the connection failed), so that the next need not
    /// wait. Requests that find no token are refused until the ledger says again that it has some saved.
    package func noteLost(sentAt: UInt64) {
        reporting.withLock { state in
            guard state.sentAt == sentAt else { return }
            state.resendAfter = min(state.resendAfter, RateRules.reportInterval / 2)
            var held = terms.load()
            held.saved = 0
            terms.store(held)
        }
    }

    /// How many refused requests are still expected back under the current share.
    private func waiting(_ held: RateTerms, now: UInt64) -> UInt64 {
        let last = promised.load(ordering: .relaxed)
        guard held.isValid(at: now), last > now else { return 0 }
        return (last - now) / 1_000 / max(1, held.distanceMicroseconds)
    }

    /// How long no request came.
    func silence(at now: UInt64) -> UInt64 {
        let last = lastArrival.load(ordering: .relaxed)
        return now > last ? now - last : 0
    }

    /// Whether the limiter may have something to report: it had requests lately, or holds a share.
    func isActive(at now: UInt64) -> Bool {
        silence(at: now) < 2 * RateRules.releaseAfter || terms.load().isValid(at: now)
    }

    /// Whether the limiter can be forgotten: neither requests nor a share kept it busy for long, or it has counted so
    /// many tokens that they would not fit into 64 bits some day. Then another begins as after a restart of the node.
    func isForgettable(at now: UInt64) -> Bool {
        let terms = terms.load()
        return terms.base > RateRules.microTokensMax
            || silence(at: now) >= RateRules.forgetAfter && !terms.isValid(at: now)
    }

    private func isDue(_ state: inout RateReporting, held: RateTerms, arrivals: UInt64, now: UInt64) -> Bool {
        let sinceSent = now - min(now, state.sentAt)
        if state.isWaiting, sinceSent < state.resendAfter { return false }
        let hasNew = arrivals > state.reportedArrivals
        guard held.isValid(at: now) else {
            // Nothing held: ask while there is somebody to ask for.
            let wants =
                hasNew || waiters.load(ordering: .relaxed) > 0
                || (state.isWaiting && silence(at: now) < RateRules.releaseAfter)
            return state.owesAcknowledgement || wants && now >= state.askAgainAt
        }
        if state.owesAcknowledgement || held.saved > 0 && waiters.load(ordering: .relaxed) > 0 { return true }
        let silence = silence(at: now)
        if silence >= RateRules.releaseAfter, !state.isWaiting { return true }
        if !state.isSilent, silence >= state.silentAfter { return true }
        if state.isSilent, hasNew { return true }
        let isQuick = hasNew && now - min(now, state.demandBegan) < RateRules.quickPeriod
        return sinceSent >= (isQuick ? RateRules.quickInterval : RateRules.reportInterval)
    }

    private func forfeit(upTo paid: UInt64) {
        var before = spent.load(ordering: .relaxed)
        while before < paid {
            let (isMine, current) = spent.weakCompareExchange(expected: before, desired: paid, ordering: .relaxed)
            if isMine { return }
            before = current
        }
    }
}

/// The limiters of one node by key, in stripes, so that a lock is shared by few containers.
package final class RateLimiters: Sendable {
    private final class Stripe: Sendable {
        let limiters = Mutex<[RateKey: RateLimiter]>([:])
    }

    private let stripes: [Stripe]
    private let stripeMax: Int

    /// - Parameter limitersMax: Containers remembered at once (about); beyond, the one idle for longest is forgotten.
    package init(limitersMax: Int = 100_000) {
        stripes = (0..<16).map { _ in Stripe() }
        stripeMax = max(1, limitersMax / stripes.count)
    }

    /// The limiter of a key, created on demand. Use it for one request only: an idle one is replaced.
    package func limiter(_ key: RateKey, now: UInt64) -> RateLimiter {
        stripe(of: key).limiters.withLock { limiters in
            if let limiter = limiters[key] { return limiter }
            if limiters.count >= stripeMax { Self.makeRoom(&limiters, now: now) }
            let limiter = RateLimiter(key: key, now: now)
            limiters[key] = limiter
            return limiter
        }
    }

    /// The limiters that may have something to report, sorted by key. Pays debts, and forgets limiters idle for a
    /// minute and worn ones.
    package func active(now: UInt64) -> [RateLimiter] {
        var active: [RateLimiter] = []
        for stripe in stripes {
            stripe.limiters.withLock { limiters in
                var forgettable: [RateKey] = []
                for (key, limiter) in limiters {
                    limiter.payDebts(now: now)
                    if limiter.isForgettable(at: now) {
                        forgettable.append(key)
                    } else if limiter.isActive(at: now) {
                        active.append(limiter)
                    }
                }
                for key in forgettable { limiters[key] = nil }
            }
        }
        return active.sorted { $0.key < $1.key }
    }

    /// The share in force of a key, in micro-requests a second; 0: none.
    package func microRate(of key: RateKey, now: UInt64) -> UInt64 {
        stripe(of: key).limiters.withLock { $0[key] }?.state(now: now).microRate ?? 0
    }

    /// Containers remembered.
    package var count: Int { stripes.reduce(0) { $0 + $1.limiters.withLock(\.count) } }

    private func stripe(of key: RateKey) -> Stripe {
        stripes[Int(UInt(bitPattern: key.hashValue) % UInt(stripes.count))]
    }

    private static func makeRoom(_ limiters: inout [RateKey: RateLimiter], now: UInt64) {
        let idlest = limiters.max { left, right in
            (left.value.silence(at: now), right.key) < (right.value.silence(at: now), left.key)
        }
        if let idlest { limiters[idlest.key] = nil }
    }
}
