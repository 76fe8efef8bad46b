/// One container's rate at its ledger: what each node holds and wants, and what the container has saved.
///
/// The balance is limit x time less what nodes reported as accepted, at most a second of the limit (or five requests).
/// What is free of it is the balance less all that nodes may have accepted without having reported it, or could accept
/// at once: no more is ever given, so over any T seconds at most limit x (T + 1 s) is accepted. Under lasting demand
/// the shares are corrected by a part of what is free, so that it comes to lie at `rest`. That is what remains when a
/// leader dies, until the last of its shares has expired, and what the next leader may lend without knowing of them.
struct RateAccount: Sendable {
    /// How far the sum of the shares may be above the limit to repay the balance, and below it.
    static let correctionMax = 0.1
    private static let correctionMin = -0.5
    /// What a new leader may lend, as a part of the limit, beyond what nodes reported to hold, before all shares of the
    /// last leader have expired: nodes without a share must not wait for that.
    private static let unseen = 0.06
    /// Seconds of the limit that a new leader may give in that time to nodes that hold no share; a request, where the
    /// limit is ten or more.
    private static let unseenSeconds = 0.05
    /// What is free is repaid over about this many seconds: slowly enough that one request more or less does not shake
    /// the shares, and longer than a share lasts, so that no share outlives what was free when it was lent.
    private static let repaySeconds = 2.5
    /// Seconds of the limit that may be owed; beyond, they are forgotten.
    private static let debtSeconds = 0.5
    /// Seconds of the limit, and about a request, that stay free under lasting demand: more than `unseen` for as long
    /// as a share lasts, and `unseenSeconds`.
    private static let restSeconds = 0.25
    /// Seconds of the limit, above the rest, from which on what is saved is given to nodes that ask.
    private static let givingSeconds = 0.2
    /// What a new node finds even if others use everything, as a part of the limit.
    private static let reserve = 0.01
    /// What the least node holds, as a part of the limit.
    private static let floor = 0.005
    /// More than was asked for, so that demand can be seen growing.
    private static let headroom = 1.25

    private let key: RateKey
    /// When the shares of the last leader have expired for sure. The books begin then, with nothing saved: until then
    /// the limit is taken as spent by what the last leader lent.
    private let settledAt: UInt64
    /// Sorted by node.
    private var holders: [RateHolder] = []
    private var limit: Double
    /// Requests; see above.
    private var balance = 0.0
    private var updatedAt: UInt64
    /// Whether what is saved is given to nodes that ask: from when there is much of it until all is spent.
    private var isGiving = false
    /// The shares that nodes reported in their first report to this leader: it lends that much until `settledAt`, if it
    /// is more than `unseen`, and the least shares of nodes without one on top.
    private var inherited = 0.0
    /// Requests that may still be given before `settledAt`.
    private var unseenLeft: Double

    init(key: RateKey, limit: UInt64, reign: RateReign) {
        self.key = key
        self.limit = Double(max(limit, 1))
        settledAt = reign.settledAt
        updatedAt = reign.settledAt
        unseenLeft = max(min(1, self.limit / 10), self.limit * Self.unseenSeconds)
        if reign.isFirst { balance = savedMax }
    }

    /// What the container may save, in requests.
    private var savedMax: Double { max(RateRules.savedMin, limit * RateRules.savedSeconds) }
    /// Where the balance comes to lie under lasting demand.
    private var rest: Double { limit * Self.restSeconds + min(1, limit / 25) }

    func inForce(at now: UInt64) -> Double { holders.reduce(0) { $0 + $1.inForce(at: now) } }

    func demand(at now: UInt64) -> Double { holders.reduce(0) { $0 + (now < $1.until ? $1.demand : 0) } }

    func isIdle(at now: UInt64) -> Bool {
        now > updatedAt && now - updatedAt > RateRules.forgetAfter
    }

    mutating func take(_ report: RateReport, now: UInt64) -> RateGrant {
        settle(at: now)
        let index = index(of: report, now: now)
        let holder = holders[index]
        if holder.boot != report.boot {
            if holder.retiredBoots.contains(report.boot) { return none(report, milliseconds: 0) }
            let lost = holders[index].restart(boot: report.boot, now: now)
            if now >= settledAt { charge(lost) }
        } else if report.sequence <= holder.sequence {
            let isRepeated = report.sequence == holder.sequence
            return (isRepeated ? holder.answer : nil) ?? none(report, milliseconds: 0)
        }
        note(report, at: index, now: now)
        let answer = report.wants ? lend(to: index, report, now: now) : none(report, milliseconds: 0)
        holders[index].lend(answer, now: now)
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
        holder.sentSince = now
        // Not known yet; it took the share for some reason.
        holder.demand = max(holder.granted, report.wants ? 1 / seconds(RateRules.quickInterval) : 0)
        if now < settledAt { inherited += holder.granted }
        holders.insert(holder, at: place)
        return place
    }

    // MARK: Counting

    /// Takes what the report says into the books.
    private mutating func note(_ report: RateReport, at index: Int, now: UInt64) {
        let isFirst = holders[index].sequence == 0 && holders[index].retiredBoots.isEmpty
        if !isFirst || report.isSilent { holders[index].noteDemand(report, now: now) }
        let accepted = holders[index].take(report, now: now)
        if now >= settledAt { charge(accepted) }
        let live = holders.filter { now < $0.until || $0.reportedAt == now }
        limit = Double(live.map(\.limit).min() ?? 1)
        balance = min(balance, savedMax)
    }

    /// Moves the balance to now.
    private mutating func settle(at now: UInt64) {
        for index in holders.indices.sorted(by: { holders[$0].until < holders[$1].until }) {
            guard now >= holders[index].until else { break }
            save(until: holders[index].until)
            let spent = holders[index].expire()
            if now >= settledAt { charge(spent) }
        }
        save(until: now)
    }

    private mutating func save(until end: UInt64) {
        guard end > updatedAt else { return }
        balance = min(balance + limit * seconds(end - updatedAt), savedMax)
        updatedAt = end
    }

    /// Takes what was accepted off the balance.
    private mutating func charge(_ accepted: Double) {
        balance = max(balance - accepted, -max(8, limit * Self.debtSeconds))
    }

    /// What is saved and no node can spend without asking.
    private func free(at now: UInt64) -> Double { holders.reduce(balance) { $0 - $1.unreported(at: now) } }
}

// MARK: - Lending

extension RateAccount {
    /// The share for a node that just reported, and the tokens it starts with.
    private mutating func lend(to index: Int, _ report: RateReport, now: UInt64) -> RateGrant {
        let isSettled = now >= settledAt
        let (tokens, saved) = give(report, isSettled: isSettled, now: now)
        let correction = (free(at: now) - tokens - rest) / (limit * Self.repaySeconds)
        var capacity = limit * (1 + min(max(correction, Self.correctionMin), Self.correctionMax))
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
        if !isSettled { unseenLeft -= tokens }
        var grant = RateGrant(
            key: key, sequence: report.sequence, microRate: microRate, fairMicroRate: UInt64(max(0, fair) * 1e6),
            microTokens: UInt64(tokens * 1e6), lifetimeMilliseconds: RateRules.lifetimeMilliseconds)
        grant.savedMicroTokens = UInt64(saved * 1e6)
        return grant
    }

    /// What the node gets of what the container saved: a start where it held nothing, and what its requests wait for.
    /// - Returns: that, and what is left for who asks again.
    private mutating func give(
        _ report: RateReport, isSettled: Bool, now: UInt64
    ) -> (tokens: Double, saved: Double) {
        // A new leader keeps most of what it may give for nodes that come later.
        let free = isSettled ? free(at: now) : min(unseenLeft, max(1, unseenLeft / 8))
        if free >= rest + limit * Self.givingSeconds { isGiving = true }
        if free < 1 { isGiving = false }
        let isStart = report.heldMicroRate == 0
        var wanted = isStart ? requests(RateRules.burstMin) : 0
        if isGiving || isStart && !isSettled, report.waiting > 0 {
            // While there is much, more than wait, as more are likely to come before the next answer. At the end, what
            // some nodes do not spend would be missing at others.
            wanted = max(wanted, Double(min(report.waiting, 1 << 32)) * (free > savedMax / 2 ? 2 : 1))
        }
        let tokens = min(max(free, 0), wanted)
        return (tokens, isGiving && free - tokens >= 1 ? free - tokens : 0)
    }

    /// The node's part of the capacity: its demand if all demand fits, and an equal part of the rest; else its part of
    /// the most equal division in which no node gets more than its demand.
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
