/// One container's rate at its ledger: what each node holds and wants, and what the container was promised but not
/// given yet.
///
/// The balance is limit x time - accepted, at most a second of the limit (or three requests): what an idle container
/// has saved. Nodes that have spent their share get of it by asking, as long as it is much. Under lasting demand the
/// shares are corrected by up to `correctionMax`, so that the balance comes to lie a little above nothing, errors never
/// add up, and over any T seconds at most limit x (T + 1 s) is accepted.
struct RateAccount: Sendable {
    /// How far the sum of the shares may be from the limit to repay the balance.
    static let correctionMax = 0.1
    /// What a new leader may lend, as a part of the limit, beyond what nodes reported to hold, before all shares of the
    /// last leader have expired: those who hold none must not wait for that. A tenth for two seconds is a fifth of a
    /// second of the limit.
    private static let unseen = 0.1
    /// A balance is repaid over about so many seconds: slowly enough that one request more or less does not shake the
    /// shares.
    private static let repaySeconds = 2.5
    /// Seconds of the limit that may be owed; beyond, they are forgotten.
    private static let debtSeconds = 0.5
    /// Seconds of the limit that the balance comes to lie at under lasting demand: room for errors.
    private static let restSeconds = 0.05
    /// Seconds of the limit, above the rest, from which on what is saved is given to nodes that ask.
    private static let givingSeconds = 0.2
    /// What a new node finds even if others use everything, as a part of the limit.
    private static let reserve = 0.01
    /// What the least node holds, as a part of the limit.
    private static let floor = 0.005
    /// More than was asked for, so that demand can be seen growing.
    private static let headroom = 1.25

    private let key: RateKey
    /// When the shares of the last leader have expired for sure.
    private let settledAt: UInt64
    /// Sorted by node.
    private var holders: [RateHolder] = []
    private var limit: Double
    /// Requests; see above. Includes what nodes have accepted and not reported yet.
    private var balance = 0.0
    private var updatedAt: UInt64
    /// Whether what is saved is given to nodes that ask: from when there is much of it until all is spent.
    private var isGiving = false
    /// What nodes said to hold when this leader first heard of them: what it lends until `settledAt`, if it is more
    /// than `unseen`; the least shares of those who hold nothing come on top.
    private var inherited = 0.0

    init(key: RateKey, limit: UInt64, settledAt: UInt64, now: UInt64) {
        self.key = key
        self.settledAt = settledAt
        self.limit = Double(max(limit, 1))
        updatedAt = now
        guard now >= settledAt else { return }
        // What the last leader gave may have been spent until then.
        balance = min(savedMax, self.limit * seconds(now - settledAt))
    }

    /// What the container may save, in requests.
    private var savedMax: Double { max(RateRules.savedMin, limit * RateRules.savedSeconds) }
    /// Where the balance comes to lie under lasting demand.
    private var rest: Double { max(1, limit * Self.restSeconds) }

    func inForce(at now: UInt64) -> Double { holders.reduce(0) { $0 + $1.inForce(at: now) } }

    func demand(at now: UInt64) -> Double { holders.reduce(0) { $0 + (now < $1.until ? $1.demand : 0) } }

    func isIdle(at now: UInt64) -> Bool {
        now > updatedAt && now - updatedAt > RateRules.forgetAfter
    }

    mutating func take(_ report: RateReport, now: UInt64) -> RateGrant {
        let index = index(of: report, now: now)
        let holder = holders[index]
        if holder.boot != report.boot {
            if holder.retiredBoots.contains(report.boot) { return none(report, milliseconds: 0) }
            // It may have spent what it was given before it died.
            holders[index].prepaid = 0
            holders[index].restart(boot: report.boot)
        } else if report.sequence <= holder.sequence {
            let isRepeated = report.sequence == holder.sequence
            return (isRepeated ? holder.answer : nil) ?? none(report, milliseconds: 0)
        }
        note(report, at: index, now: now)
        let answer = report.wants ? lend(to: index, report, now: now) : none(report, milliseconds: 0)
        holders[index].granted = requests(answer.microRate)
        holders[index].until = now + RateRules.ledgerLifetime
        holders[index].answer = answer
        return answer
    }

    private func none(_ report: RateReport, milliseconds: UInt64) -> RateGrant {
        RateGrant(key: key, sequence: report.sequence, microRate: 0, lifetimeMilliseconds: milliseconds)
    }

    /// The node's place. A node heard of for the first time counts from what it reports: what it accepted before is
    /// another leader's account.
    private mutating func index(of report: RateReport, now: UInt64) -> Int {
        let place = holders.firstIndex { $0.node >= report.node } ?? holders.count
        if place < holders.count, holders[place].node == report.node { return place }
        var holder = RateHolder(node: report.node, boot: report.boot, limit: report.limit, reportedAt: now)
        (holder.accepted, holder.arrivals) = (report.accepted, report.arrivals)
        holder.granted = requests(report.heldMicroRate)
        // Not known yet; it took the share for some reason.
        holder.demand = max(holder.granted, report.wants ? 1 / seconds(RateRules.quickInterval) : 0)
        if now < settledAt { inherited += holder.granted }
        holders.insert(holder, at: place)
        return place
    }
}

// MARK: - Counting

extension RateAccount {
    /// Takes what the report says into the books.
    private mutating func note(_ report: RateReport, at index: Int, now: UInt64) {
        var holder = holders[index]
        let accepted = Double(report.accepted - min(holder.accepted, report.accepted))
        let free = min(accepted, holder.prepaid)
        holder.prepaid -= free
        let isFirst = holder.sequence == 0 && holder.retiredBoots.isEmpty
        if !isFirst || report.isSilent { holder.noteDemand(report, now: now) }
        holder.held = requests(report.heldMicroRate)
        // What the node cannot spend any more has come back: it has forfeited it, or given up its share. An answer that
        // is still on its way will be ignored, so what is left is all that can be spent.
        let returned = max(0, holder.prepaid - requests(report.leftMicroTokens))
        holder.prepaid -= returned
        holder.sequence = report.sequence
        holder.accepted = max(holder.accepted, report.accepted)
        holder.arrivals = max(holder.arrivals, report.arrivals)
        holder.left = requests(report.leftMicroTokens)
        holder.limit = max(report.limit, 1)
        holder.reportedAt = now
        holders[index] = holder
        settle(accepted: accepted - free - returned, now: now)
    }

    /// Moves the balance to now.
    private mutating func settle(accepted: Double, now: UInt64) {
        balance += limit * seconds(now - min(now, updatedAt)) - accepted
        updatedAt = max(updatedAt, now)
        let live = holders.filter { now < $0.until || $0.reportedAt == now }
        limit = Double(live.map(\.limit).min() ?? 1)
        let unreported = unreported(at: now)
        let debt = max(8, limit * Self.debtSeconds)
        balance = min(max(balance, unreported - debt), unreported + savedMax)
    }

    private func unreported(at now: UInt64) -> Double { holders.reduce(0) { $0 + $1.unreported(at: now) } }
}

// MARK: - Lending

extension RateAccount {
    /// The share for a node that just reported, and the tokens it starts with.
    private mutating func lend(to index: Int, _ report: RateReport, now: UInt64) -> RateGrant {
        let excess = balance - unreported(at: now) - rest
        let correction = min(max(excess / (limit * Self.repaySeconds), -Self.correctionMax), Self.correctionMax)
        var capacity = limit * (1 + correction)
        let isSettled = now >= settledAt
        if !isSettled { capacity = min(capacity, max(inherited, limit * (Self.unseen - Self.reserve))) }
        var others = 0.0
        for (place, holder) in holders.enumerated() where place != index { others += holder.inForce(at: now) }
        let fair = fairShare(of: index, capacity: capacity - (isSettled ? limit * Self.reserve : 0), now: now)
        var share = min(fair, capacity - others)
        // Never nothing, as long as the invariant allows it.
        let most = isSettled ? limit * (1 + Self.correctionMax) : inherited + limit * Self.unseen
        share = max(share, min(limit * Self.floor, most - others))
        let microRate = share > 0 ? UInt64(share * 1e6) : 0
        guard microRate > 0 else {
            let wait = isSettled ? RateRules.quickInterval : settledAt - now
            return none(report, milliseconds: min(wait / RateRules.millisecond + 1, RateRules.lifetimeMilliseconds))
        }
        var grant = RateGrant(
            key: key, sequence: report.sequence, microRate: microRate, fairMicroRate: UInt64(max(0, fair) * 1e6),
            lifetimeMilliseconds: RateRules.lifetimeMilliseconds)
        give(to: index, report, &grant, now: now)
        return grant
    }

    /// Adds what the node gets of what the container saved: a start where it held nothing, and what its requests wait
    /// for.
    private mutating func give(to index: Int, _ report: RateReport, _ grant: inout RateGrant, now: UInt64) {
        let free = holders.reduce(balance) { $0 - $1.exposure(at: now) }
        if free >= rest + limit * Self.givingSeconds { isGiving = true }
        if free < 1 { isGiving = false }
        let start = max(requests(RateRules.burstMin), requests(grant.microRate) / Double(RateRules.burstDivisor))
        let waiting = Double(min(max(report.waiting, 1), 1 << 32))
        // While there is much, more than wait, as more are likely to come before the next answer. At the end, what some
        // nodes do not spend would be missing at others.
        let wanted =
            isGiving && report.waiting > 0
            ? (free > savedMax / 2 ? 2 : 1) * waiting : report.heldMicroRate == 0 ? start : 0
        // A request that comes to a node without a share gets through where that is not too much: before shares of the
        // last leader have expired, nobody knows.
        let least = report.heldMicroRate > 0 ? 0 : now < settledAt ? 1 : min(max(balance - unreported(at: now), 0), 1)
        let tokens = min(max(free, least), wanted)
        grant.microTokens = UInt64(tokens * 1e6)
        balance -= tokens
        holders[index].prepaid += tokens
        if isGiving, free - tokens >= 1 { grant.savedMicroTokens = UInt64((free - tokens) * 1e6) }
    }

    /// The node's part of the capacity: what it wants if all can have that, and an equal part of the rest; else the
    /// most equal division in which nobody gets more than it wants.
    private func fairShare(of index: Int, capacity: Double, now: UInt64) -> Double {
        let least = limit * Self.floor
        var wants: [Double] = []
        var silent = 0
        var own = least
        for (place, holder) in holders.enumerated() where place == index || holder.isLive(at: now) {
            let want = max(least, holder.demand * Self.headroom)
            if place == index { own = want }
            if holder.demand == 0 { silent += 1 }
            wants.append(want)
        }
        let spare = capacity - wants.reduce(0, +)
        guard spare < 0 else {
            let forSilent = min(spare / Double(wants.count), limit / Double(RateRules.silentDivisor))
            if holders[index].demand == 0 { return own + forSilent }
            return own + (spare - forSilent * Double(silent)) / Double(wants.count - silent)
        }
        wants.sort()
        var rest = max(capacity, 0)
        for (place, want) in wants.enumerated() {
            let level = rest / Double(wants.count - place)
            if want >= level { return min(own, level) }
            rest -= want
        }
        return own
    }
}
