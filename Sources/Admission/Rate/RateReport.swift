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

extension RateReport: WireCodable {
    /// 1 key, 2 node, 3 boot, 4 sequence, 5 accepted, 6 arrivals, 7 held, 8 wants, 9 limit, 10 silent,
    /// 11 promised, 12 refused, 13 waiting, 14 left, 15 answered, 16 since then.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { key.encode(to: &$0) }
        writer.field(2, node)
        writer.field(3, boot)
        writer.field(4, sequence)
        writer.field(5, accepted)
        writer.field(6, arrivals)
        writer.field(7, heldMicroRate)
        writer.field(8, wants)
        writer.field(9, limit)
        writer.field(10, isSilent)
        writer.field(11, promised)
        writer.field(12, refused)
        writer.field(13, waiting)
        writer.field(14, leftMicroTokens)
        writer.field(15, answered)
        writer.field(16, sinceAnswerMicroseconds)
    }

    /// - Throws: `WireError` if the key or the sequence is missing, or a count is beyond belief; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var key: RateKey?
        var report = RateReport(key: RateKey(container: "", kind: .requests), node: 0, boot: 0, sequence: 0, limit: 0)
        report.wants = false
        while let field = try reader.nextField() {
            switch field {
            case 1: key = try reader.message()
            case 2: report.node = try reader.unsigned()
            case 3: report.boot = try reader.unsigned()
            case 4: report.sequence = try reader.unsigned()
            case 5: report.accepted = try reader.unsigned()
            case 6: report.arrivals = try reader.unsigned()
            case 7: report.heldMicroRate = try reader.unsigned()
            case 8: report.wants = try reader.bool()
            case 9: report.limit = try reader.unsigned()
            case 10: report.isSilent = try reader.bool()
            case 11: report.promised = try reader.unsigned()
            case 12: report.refused = try reader.unsigned()
            case 13: report.waiting = try reader.unsigned()
            case 14: report.leftMicroTokens = try reader.unsigned()
            case 15: report.answered = try reader.unsigned()
            case 16: report.sinceAnswerMicroseconds = min(try reader.unsigned(), RateRules.lifetimeMilliseconds * 1_000)
            default: try reader.skip()
            }
        }
        guard let key else { throw .missingField(1) }
        guard report.sequence > 0 else { throw .missingField(4) }
        guard report.limit <= RateRules.limitMax else { throw .invalidValue(field: 9) }
        report.key = key
        self = report
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

extension RateGrant: WireCodable {
    /// 1 key, 2 sequence, 3 rate, 4 tokens, 5 lifetime, 6 fair rate, 7 saved.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { key.encode(to: &$0) }
        writer.field(2, sequence)
        writer.field(3, microRate)
        writer.field(4, microTokens)
        writer.field(5, lifetimeMilliseconds)
        writer.field(6, fairMicroRate)
        writer.field(7, savedMicroTokens)
    }

    /// - Throws: `WireError` if the key is missing or a share is beyond any limit; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var key: RateKey?
        var grant = RateGrant(
            key: RateKey(container: "", kind: .requests), sequence: 0, microRate: 0, lifetimeMilliseconds: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: key = try reader.message()
            case 2: grant.sequence = try reader.unsigned()
            case 3: grant.microRate = try reader.unsigned()
            case 4: grant.microTokens = try reader.unsigned()
            case 5: grant.lifetimeMilliseconds = try reader.unsigned()
            case 6: grant.fairMicroRate = try reader.unsigned()
            case 7: grant.savedMicroTokens = try reader.unsigned()
            default: try reader.skip()
            }
        }
        guard let key else { throw .missingField(1) }
        guard grant.microRate <= RateRules.microRateMax else { throw .invalidValue(field: 3) }
        guard grant.microTokens <= RateRules.microRateMax else { throw .invalidValue(field: 4) }
        guard grant.fairMicroRate <= RateRules.microRateMax else { throw .invalidValue(field: 6) }
        guard grant.savedMicroTokens <= RateRules.microRateMax else { throw .invalidValue(field: 7) }
        guard grant.lifetimeMilliseconds <= RateRules.lifetimeMilliseconds else { throw .invalidValue(field: 5) }
        grant.key = key
        self = grant
    }
}
