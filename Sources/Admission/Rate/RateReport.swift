package import Wire

/// What a node tells a container's ledger: what it did and what it holds.
///
/// Counts are cumulative, so a lost report loses nothing. Numbers grow from report to report of one `boot`; a ledger
/// takes a report once and only forwards.
package struct RateReport: Hashable, Sendable, WireMessage {
    /// The rate that the counts are of.
    package var key: RateKey
    /// The id of the node that reports.
    package var node: UInt64
    /// Names one life of the node's counters: random for each start of the node, different for each limiter.
    package var boot: UInt64
    /// 1 for the first report of a boot. A node takes only the answer to its newest report.
    package var sequence: UInt64
    /// Requests accepted since the boot.
    package var accepted: UInt64 = 0
    /// Requests that came since the boot, accepted or not.
    package var arrivals: UInt64 = 0
    /// Of the arrivals, those that a share refused; waiting for a share is no refusal.
    package var refused: UInt64 = 0
    /// The share in force at the node, in micro-requests a second; 0: none. Never more than it was granted.
    package var heldMicroRate: UInt64 = 0
    /// Whether the node wants a share. A node that holds nothing and wants nothing has gone idle and gives its share
    /// back.
    package var wants: Bool = true
    /// Whether requests have stopped for now: the share may be lent to others.
    package var isSilent: Bool = false
    /// Refused requests that were told to come back and are still to come: clients that wait as told are demand, too.
    package var promised: UInt64 = 0
    /// Requests that wait for what the ledger has saved.
    package var waiting: UInt64 = 0
    /// What the node could accept at once, in micro-requests: paid for by its share and not spent.
    package var leftMicroTokens: UInt64 = 0
    /// The newest report whose answer the node took (0: none), and how long ago: it bounds how long this report can
    /// have been on its way.
    package var answered: UInt64 = 0
    /// Microseconds since that answer was taken, cut to a share's lifetime by decoding; ignored while `answered` is 0.
    package var sinceAnswerMicroseconds: UInt64 = 0
    /// The container's limit as the node's directory says, in requests a second.
    package var limit: UInt64

    package static var blank: Self {
        var report = RateReport(key: .blank, node: 0, boot: 0, sequence: 0, limit: 0)
        report.wants = false
        return report
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &key)
        try wire.field(2, &node)
        try wire.field(3, &boot)
        try wire.field(4, &sequence)
        try wire.field(5, &accepted)
        try wire.field(6, &arrivals)
        try wire.field(7, &heldMicroRate)
        try wire.field(8, &wants)
        try wire.field(9, &limit)
        try wire.field(10, &isSilent)
        try wire.field(11, &promised)
        try wire.field(12, &refused)
        try wire.field(13, &waiting)
        try wire.field(14, &leftMicroTokens)
        try wire.field(15, &answered)
        try wire.field(16, &boundedAge)
    }

    package func check() throws(WireError) {
        guard sequence > 0 else { throw .missingField(4) }
        guard limit <= RateRules.limitMax else { throw .invalidValue(field: 9) }
    }

    /// `sinceAnswerMicroseconds`, which counts for no more than a share's life.
    private var boundedAge: UInt64 {
        get { sinceAnswerMicroseconds }
        set { sinceAnswerMicroseconds = min(newValue, RateRules.lifetimeMilliseconds * 1_000) }
    }
}

/// A ledger's answer to a report: the share that the node holds from now on, in place of the one it held.
package struct RateGrant: Hashable, Sendable, WireMessage {
    /// The rate that the report was about.
    package var key: RateKey
    /// The report that this answers.
    package var sequence: UInt64
    /// The share, in micro-requests a second; 0: none.
    package var microRate: UInt64
    /// The share that the node will have when others have made room for it, in micro-requests a second: what refusals
    /// promise by.
    package var fairMicroRate: UInt64 = 0
    /// Requests, in millionths, that the node may accept at once: from what the container saved.
    package var microTokens: UInt64 = 0
    /// What the container has saved besides, in millionths of a request: the node gets of it by asking again. 0 while
    /// the saved requests are too few to be worth a question.
    package var savedMicroTokens: UInt64 = 0
    /// How long the share is good, counted from the sending of the report; with no share, after how long to ask again.
    package var lifetimeMilliseconds: UInt64

    package static var blank: Self { RateGrant(key: .blank, sequence: 0, microRate: 0, lifetimeMilliseconds: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &key)
        try wire.field(2, &sequence)
        try wire.field(3, &microRate)
        try wire.field(4, &microTokens)
        try wire.field(5, &lifetimeMilliseconds)
        try wire.field(6, &fairMicroRate)
        try wire.field(7, &savedMicroTokens)
    }

    package func check() throws(WireError) {
        guard microRate <= RateRules.microRateMax else { throw .invalidValue(field: 3) }
        guard microTokens <= RateRules.microRateMax else { throw .invalidValue(field: 4) }
        guard fairMicroRate <= RateRules.microRateMax else { throw .invalidValue(field: 6) }
        guard savedMicroTokens <= RateRules.microRateMax else { throw .invalidValue(field: 7) }
        guard lifetimeMilliseconds <= RateRules.lifetimeMilliseconds else { throw .invalidValue(field: 5) }
    }
}

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

    /// Requests have stopped after four times their usual distance without one.
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
