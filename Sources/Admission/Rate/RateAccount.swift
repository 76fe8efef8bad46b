/// One container's rate at its ledger: what each node holds and wants, and what the container was promised but not given yet.
///
/// The balance is limit x time - accepted. What the cluster fell behind (load moved, a node died, shares lay unused) is repaid by
/// lending up to `correctionMax` more than the limit, what it was ahead by lending less, so that errors never add up.
struct RateAccount: Sendable {
    /// How far the sum of the shares may be from the limit to repay the balance.
    static let correctionMax = 0.1
    /// What a new leader may lend, as a part of the limit, beyond what nodes reported to hold, before all shares of the last leader have
    /// expired: those who hold none must not wait for that. A tenth for two seconds is a fifth of a second of the limit.
    private static let unseen = 0.1
    /// A balance is repaid over about so many seconds: slowly enough that one request more or less does not shake the shares.
    private static let repaySeconds = 2.5
    /// Seconds of the limit that are remembered while demand is not met.
    private static let balanceSeconds = 0.5
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
    private var balance: Double
    private var updatedAt: UInt64
    private var refusedAt: UInt64?
    /// What nodes said to hold when this leader first heard of them: what it lends until `settledAt`, if it is more than `unseen`; the
    /// least shares of those who hold nothing come on top.
    private var inherited = 0.0

    init(key: RateKey, limit: UInt64, settledAt: UInt64, now: UInt64) {
        self.key = key
        self.settledAt = settledAt
        self.limit = Double(max(limit, 1))
        balance = now < settledAt ? 0 : max(2, self.limit / 10)
        updatedAt = now
    }

    /// What an idle container may use at once: the burst of the whole cluster.
    private var burst: Double { max(2, limit / Double(RateRules.burstDivisor)) }

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
            balance += holder.prepaid
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

    /// The node's place. A node heard of for the first time counts from what it reports: what it accepted before is another
    /// leader's account.
    private mutating func index(of report: RateReport, now: UInt64) -> Int {
        let place = holders.firstIndex { $0.node >= report.node } ?? holders.count
        if place < holders.count, holders[place].node == report.node { return place }
        var holder = RateHolder(node: report.node, boot: report.boot, limit: report.limit, reportedAt: now)
        (holder.accepted, holder.arrivals, holder.refused) = (report.accepted, report.arrivals, report.refused)
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
        if report.refused > holder.refused { refusedAt = now }
        let free = min(accepted, holder.prepaid)
        holder.prepaid -= free
        let isFirst = holder.sequence == 0 && holder.retiredBoots.isEmpty
        if !isFirst || report.isSilent { holder.noteDemand(report, now: now) }
        holder.held = requests(report.heldMicroRate)
        // A node that holds nothing has forgotten what it had saved.
        let returned = report.heldMicroRate == 0 ? holder.prepaid : 0
        holder.prepaid -= returned
        holder.sequence = report.sequence
        holder.accepted = max(holder.accepted, report.accepted)
        holder.arrivals = max(holder.arrivals, report.arrivals)
        holder.refused = max(holder.refused, report.refused)
        holder.limit = max(report.limit, 1)
        holder.reportedAt = now
        holders[index] = holder
        settle(accepted: accepted - free - returned, now: now)
    }

    /// Moves the balance to now. Unused time counts for the burst only, unless somebody was refused in the meantime.
    private mutating func settle(accepted: Double, now: UInt64) {
        balance += limit * seconds(now - min(now, updatedAt)) - accepted
        updatedAt = max(updatedAt, now)
        let live = holders.filter { now < $0.until || $0.reportedAt == now }
        limit = Double(live.map(\.limit).min() ?? 1)
        let isShort = refusedAt.map { now - min(now, $0) < RateRules.second / 2 } ?? false
        let unreported = unreported(at: now)
        let most = isShort ? max(burst, limit * Self.balanceSeconds) : burst
        let least = -max(8, limit * Self.balanceSeconds)
        balance = min(max(balance, unreported + least), unreported + most)
    }

    private func unreported(at now: UInt64) -> Double { holders.reduce(0) { $0 + $1.unreported(at: now) } }
}

// MARK: - Lending

extension RateAccount {
    /// The share for a node that just reported, and the tokens it starts with.
    private mutating func lend(to index: Int, _ report: RateReport, now: UInt64) -> RateGrant {
        let current = balance - unreported(at: now)
        let correction = min(max(current / (limit * Self.repaySeconds), -Self.correctionMax), Self.correctionMax)
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
        if report.heldMicroRate == 0 {
            // A request more than there is: who comes new to a busy container gets one through.
            let tokens = min(max(current + 1, 0), max(2, share / Double(RateRules.burstDivisor)))
            grant.microTokens = UInt64(tokens * 1e6)
            balance -= tokens
            holders[index].prepaid = tokens
        }
        return grant
    }

    /// The node's part of the capacity: what it wants if all can have that, and an equal part of the rest; else the most
    /// equal division in which nobody gets more than it wants.
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
