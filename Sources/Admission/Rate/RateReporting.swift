/// What a limiter remembers about its talk with the ledger. Guarded by a lock that no request takes.
struct RateReporting: Sendable {
    /// Of the newest report; 0: none yet.
    var sequence: UInt64 = 0
    var sentAt: UInt64 = 0
    /// The newest report whose answer was taken, and when that was.
    var answered: UInt64 = 0
    var answeredAt: UInt64 = 0
    /// Whether the newest report has no answer yet.
    var isWaiting = false
    /// How long an answer takes: the longest lately, shrinking slowly.
    var roundTrip = 10 * RateRules.millisecond
    /// How long to wait for this one.
    var resendAfter: UInt64 = 0
    /// Whether a grant lowered the share, so that others wait to hear that it was taken.
    var owesAcknowledgement = false
    /// Whether the last share was refused, and when to ask again.
    var askAgainAt: UInt64 = 0

    /// The container's limit, as of the newest report.
    var limit: UInt64 = 0
    /// Arrivals as of the newest report, and of the newest that had any.
    var reportedArrivals: UInt64 = 0
    var arrivalsReportedAt: UInt64 = 0
    /// Mean time between requests, smoothed.
    var arrivalInterval = RateRules.reportInterval
    /// When demand began after a silence: reports come quickly for a while.
    var demandBegan: UInt64 = 0
    /// Whether the newest report said that requests have stopped.
    var isSilent = true

    /// Requests have stopped when none came for four times their usual distance.
    var silentAfter: UInt64 {
        min(max(4 * arrivalInterval, RateRules.silentAfterMin), RateRules.silentAfterMax)
    }

    /// Begins the wait for an answer. One that never came makes the next wait longer.
    mutating func noteSent(now: UInt64, isWaiting: Bool) {
        let usual = 4 * roundTrip + RateRules.resendInterval
        resendAfter = min(self.isWaiting ? max(2 * resendAfter, usual) : usual, RateRules.resendIntervalMax)
        sequence += 1
        sentAt = now
        self.isWaiting = isWaiting
        owesAcknowledgement = false
    }

    /// Takes note of the answer to the newest report.
    mutating func noteAnswered(now: UInt64) {
        let passed = now - min(now, sentAt)
        (answered, answeredAt) = (sequence, now)
        roundTrip = passed > roundTrip ? passed : (7 * roundTrip + passed) / 8
        isWaiting = false
    }

    /// Takes note of what came since the last report.
    mutating func note(arrivals: UInt64, now: UInt64) {
        let new = arrivals - reportedArrivals
        guard new > 0 else { return }
        if isSilent {
            isSilent = false
            demandBegan = now
        } else if now > arrivalsReportedAt {
            arrivalInterval = (3 * arrivalInterval + (now - arrivalsReportedAt) / new) / 4
        }
        reportedArrivals = arrivals
        arrivalsReportedAt = now
    }
}
