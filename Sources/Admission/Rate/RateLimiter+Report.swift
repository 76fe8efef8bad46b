import Synchronization

/// The limiter's talk with the ledger: the shell asks for a report every few milliseconds, sends it, and hands the
/// answer in.
extension RateLimiter {
    /// The report that is due, or nil if there is nothing new to say. Ask about every 10 ms, and at once when a
    /// decision was `.needsShare`.
    ///
    /// Due: at once when demand begins, when requests wait for what the ledger saved, and when a share was lowered much
    /// or requests stopped, so that others can have it; else every
    /// 100 ms while requests come. While an answer is awaited, none for 250 ms.
    /// - Parameters:
    ///   - boot: Random for each start of the node.
    ///   - limit: The container's limit as the directory says, in requests a second.
    package func report(node: UInt64, boot: UInt64, limit: UInt64, now: UInt64) -> RateReport? {
        reporting.withLock { state in
            let accepted = accepted.load(ordering: .relaxed)
            let late = acceptedLate.load(ordering: .relaxed)
            // Never less than it was: the two move one after the other.
            let arrivals = max(
                accepted - min(accepted, late) + turnedAway.load(ordering: .relaxed), state.reportedArrivals)
            let held = terms.load()
            guard isDue(&state, held: held, arrivals: arrivals, now: now) else { return nil }
            state.limit = limit
            state.note(arrivals: arrivals, now: now)
            let silence = silence(at: now)
            state.isSilent = silence >= state.silentAfter
            // Only when the ledger answers: a share that was given back to nobody would help nobody until it expired.
            let isLeaving = held.isValid(at: now) && silence >= RateRules.releaseAfter && !state.isWaiting
            if isLeaving { terms.store(RateTerms(base: held.tokens(at: now), since: now)) }
            state.noteSent(now: now, isWaiting: !isLeaving)
            var report = RateReport(
                key: key, node: node, boot: boot &+ instance &* 0x9E37_79B9_7F4A_7C15, sequence: state.sequence,
                accepted: accepted, arrivals: arrivals, refused: refused.load(ordering: .relaxed),
                heldMicroRate: held.isValid(at: now) && !isLeaving ? held.microRate : 0, wants: !isLeaving,
                isSilent: state.isSilent, promised: waiting(held, now: now), limit: limit)
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

    /// How many of those who were refused are still to come back, if the share is as it is.
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

    /// Whether neither requests nor a share kept the limiter busy for so long that it can be forgotten.
    func isForgettable(at now: UInt64) -> Bool {
        silence(at: now) >= RateRules.forgetAfter && !terms.load().isValid(at: now)
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
