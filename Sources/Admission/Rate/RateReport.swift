package import Wire

/// What a node tells a container's ledger: what it did and what it holds.
///
/// Counts are cumulative, so a lost report loses nothing. Numbers grow from report to report of one `boot`; a ledger
/// takes a report once and only forwards.
package struct RateReport: Hashable, Sendable {
    package var key: RateKey
    package var node: UInt64
    /// Names one life of the node's counters: random for each start of the node, different for each limiter.
    package var boot: UInt64
    /// 1 for the first report of a boot. A node takes only the answer to its newest report.
    package var sequence: UInt64
    /// Requests accepted since the boot.
    package var accepted: UInt64
    /// Requests that came since the boot, accepted or not.
    package var arrivals: UInt64
    /// Of the arrivals, those that a share refused; waiting for a share is no refusal.
    package var refused: UInt64
    /// The share in force at the node, in micro-requests a second; 0: none. Never more than it was granted.
    package var heldMicroRate: UInt64
    /// Whether the node wants a share. A node that holds nothing and wants nothing has gone idle and gives its share
    /// back.
    package var wants: Bool
    /// Whether requests have stopped for now: the share may be lent to others.
    package var isSilent: Bool
    /// Refused requests that were told to come back and are still to come: clients that wait as told are demand, too.
    package var promised: UInt64
    /// Requests that wait for what the ledger has saved.
    package var waiting: UInt64 = 0
    /// What the node could accept at once, in micro-requests: paid for by its share and not spent.
    package var leftMicroTokens: UInt64 = 0
    /// The newest report whose answer the node took (0: none), and how long ago that was: so the ledger knows how long
    /// this one can have been on its way.
    package var answered: UInt64 = 0
    package var sinceAnswerMicroseconds: UInt64 = 0
    /// The container's limit as the node's directory says, in requests a second.
    package var limit: UInt64

    package init(
        key: RateKey, node: UInt64, boot: UInt64, sequence: UInt64, accepted: UInt64 = 0, arrivals: UInt64 = 0,
        refused: UInt64 = 0, heldMicroRate: UInt64 = 0, wants: Bool = true, isSilent: Bool = false,
        promised: UInt64 = 0,
        limit: UInt64
    ) {
        self.key = key
        self.node = node
        self.boot = boot
        self.sequence = sequence
        self.accepted = accepted
        self.arrivals = arrivals
        self.refused = refused
        self.heldMicroRate = heldMicroRate
        self.wants = wants
        self.isSilent = isSilent
        self.promised = promised
        self.limit = limit
    }
}

extension RateReport: WireMessage {
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
package struct RateGrant: Hashable, Sendable {
    package var key: RateKey
    /// The report that this answers.
    package var sequence: UInt64
    /// The share, in micro-requests a second; 0: none.
    package var microRate: UInt64
    /// The share that the node will have when others have made room for it, in micro-requests a second: what refusals
    /// promise by.
    package var fairMicroRate: UInt64
    /// Requests, in millionths, that the node may accept at once: from what the container saved.
    package var microTokens: UInt64
    /// What the container has saved besides, in millionths of a request: the node gets of it by asking again. 0 while
    /// the saved requests are too few to be worth a question.
    package var savedMicroTokens: UInt64 = 0
    /// How long the share is good, counted from the sending of the report; with no share, after how long to ask again.
    package var lifetimeMilliseconds: UInt64

    package init(
        key: RateKey, sequence: UInt64, microRate: UInt64, fairMicroRate: UInt64 = 0, microTokens: UInt64 = 0,
        lifetimeMilliseconds: UInt64
    ) {
        self.key = key
        self.sequence = sequence
        self.microRate = microRate
        self.fairMicroRate = fairMicroRate
        self.microTokens = microTokens
        self.lifetimeMilliseconds = lifetimeMilliseconds
    }
}

extension RateGrant: WireMessage {
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
