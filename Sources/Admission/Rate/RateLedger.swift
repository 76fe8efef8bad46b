/// Who may use how much of each container's rate: at the leader of the container's ledger group, in memory only.
///
/// A value without clock or randomness; `now` is nanoseconds of the leader's monotonic clock. Invariant, for each
/// container: the shares in force at all nodes never sum above the limit and its highest correction
/// (`RateAccount.correctionMax`), and a little more in the first two seconds of a leader, who does not know what the
/// one before lent to nodes that are gone; a share counts until its holder said that it holds less, or until it has
/// surely expired. The caller must be the group's confirmed leader: a deposed one that goes on answering would lend
/// what another lends too.
package struct RateLedger: Sendable {
    private var term: UInt64 = 0
    private var accounts: [RateKey: RateAccount] = [:]
    /// The keys of `accounts`, for the search for idle ones, a few at each report.
    private var keys: [RateKey] = []
    private var cursor = 0

    package init() {}

    /// Containers that the ledger remembers.
    package var count: Int { accounts.count }

    /// Takes a report and returns the share that its node holds from now on.
    ///
    /// Reports may be repeated, late and reordered: a repeated one gets the same answer, an older one an empty share.
    /// - Parameter reign: A new one resets everything: another leader lent in between.
    package mutating func take(_ report: RateReport, in reign: RateReign, now: UInt64) -> RateGrant {
        guard reign.term >= term else {
            return RateGrant(key: report.key, sequence: report.sequence, microRate: 0, lifetimeMilliseconds: 0)
        }
        if reign.term > term {
            self = RateLedger()
            term = reign.term
        }
        forgetIdle(now: now)
        if accounts[report.key] == nil {
            accounts[report.key] = RateAccount(key: report.key, limit: report.limit, reign: reign)
            keys.append(report.key)
        }
        return accounts[report.key]?.take(report, now: now)
            ?? RateGrant(key: report.key, sequence: report.sequence, microRate: 0, lifetimeMilliseconds: 0)
    }

    /// What the ledger knows of one container, for `limits explain`: the sum of shares in force and of demand, in
    /// requests a second.
    package func usage(of key: RateKey, now: UInt64) -> (inForce: Double, demand: Double)? {
        accounts[key].map { ($0.inForce(at: now), $0.demand(at: now)) }
    }

    private mutating func forgetIdle(now: UInt64) {
        for _ in 0..<min(2, keys.count) {
            if cursor >= keys.count { cursor = 0 }
            let key = keys[cursor]
            if accounts[key]?.isIdle(at: now) ?? true {
                accounts[key] = nil
                keys.swapAt(cursor, keys.count - 1)
                keys.removeLast()
            } else {
                cursor += 1
            }
            if keys.isEmpty { return }
        }
    }
}

/// A leader's time at a ledger, and what is left of the one before.
package struct RateReign: Hashable, Sendable {
    /// The Raft term of the ledger's group, from 1; nothing was lent before term 1.
    package let term: UInt64
    /// When shares that another leader lent have expired for sure.
    let settledAt: UInt64
    /// Whether this is the group's first leader, so that nothing was lent or accepted.
    var isFirst: Bool { term == 1 }

    /// - Parameters:
    ///   - term: The group's term.
    ///   - since: When it began, in nanoseconds of the leader's monotonic clock.
    ///   - isAlone: Whether the cluster has no other node: what it lent ended with its last process.
    package init(term: UInt64, since: UInt64, isAlone: Bool = false) {
        self.term = term
        settledAt = term == 1 || isAlone ? since : since + RateRules.ledgerLifetime
    }
}

/// One node, as a container's account knows it. Rates in requests a second.
struct RateHolder: Sendable {
    let node: UInt64
    var boot: UInt64
    /// Earlier boots, newest last: late reports of theirs are ignored.
    var retiredBoots: [UInt64] = []
    var sequence: UInt64 = 0
    var accepted: UInt64 = 0
    var arrivals: UInt64 = 0
    var limit: UInt64
    var reportedAt: UInt64
    /// What the newest report said, and what its answer granted: the node holds one of the two until it reports again.
    var held = 0.0
    var granted = 0.0
    /// Until when either can be in force.
    var until: UInt64 = 0
    /// The newest answer, for a report that comes twice.
    var answer: RateGrant?
    /// What the node wants, smoothed; 0: silent.
    var demand = 0.0
    /// What the node could accept at once: what it had left when it reported, and what it was given in answer.
    var atOnce = 0.0
    /// Since when its share has paid more: when the newest report was sent, then when it was answered.
    var paidSince: UInt64 = 0
    /// When the newest report was sent, or earlier.
    var sentSince: UInt64 = 0
    /// What counts as spent since the share ended without a word from the node.
    var assumed = 0.0

    func inForce(at now: UInt64) -> Double { now < until ? max(held, granted) : 0 }

    /// Whether the node has a part in the division: it holds a share, or asked for one just now.
    func isLive(at now: UInt64) -> Bool {
        inForce(at: now) > 0 || demand > 0 && now - min(now, reportedAt) < RateRules.second / 2
    }

    /// The most that the node can have accepted since it reported, and could accept now.
    func unreported(at now: UInt64) -> Double {
        let end = min(now, until)
        return atOnce + (end > paidSince ? max(held, granted) * seconds(end - paidSince) : 0)
    }

    /// Counts as spent what a share paid for that has ended unreported.
    /// - Returns: how much that is.
    mutating func expire() -> Double {
        let spent = unreported(at: until)
        assumed += spent
        (atOnce, held, granted) = (0, 0, 0)
        return spent
    }

    /// Takes over what the report says that the node did and holds.
    /// - Returns: what it accepted since it last reported, but for what was counted as spent before.
    mutating func take(_ report: RateReport, now: UInt64) -> Double {
        let new = Double(report.accepted - min(accepted, report.accepted))
        let spent = max(0, new - assumed)
        assumed = 0
        // The node took the answer to the previous report after it was given. If that answer was lost, we only know
        // that a report is sent after the previous one; earlier builds do not tell.
        let isAnswered = sequence > 0 && report.answered == sequence
        let sent = isAnswered ? paidSince + report.sinceAnswerMicroseconds * 1_000 : report.answered == 0 ? now : 0
        sentSince = max(sentSince, min(now, sent))
        paidSince = sentSince
        sequence = report.sequence
        accepted = max(accepted, report.accepted)
        arrivals = max(arrivals, report.arrivals)
        held = requests(report.heldMicroRate)
        granted = held
        atOnce = requests(report.leftMicroTokens)
        limit = max(report.limit, 1)
        reportedAt = now
        return spent
    }

    /// Begins the counts of another boot.
    /// - Returns: what the process before may have accepted and did not report.
    mutating func restart(boot: UInt64, now: UInt64) -> Double {
        let spent = unreported(at: now)
        retiredBoots.append(self.boot)
        if retiredBoots.count > 4 { retiredBoots.removeFirst() }
        self.boot = boot
        (sequence, accepted, arrivals) = (0, 0, 0)
        // The process that held the share is gone.
        (held, granted, demand, until, atOnce, assumed) = (0, 0, 0, 0, 0, 0)
        answer = nil
        return spent
    }

    /// Lends a share and tokens in answer to the newest report. The node holds what it reported, or this.
    mutating func lend(_ answer: RateGrant, now: UInt64) {
        atOnce += held * seconds(now - min(now, paidSince)) + requests(answer.microTokens)
        paidSince = now
        granted = requests(answer.microRate)
        until = now + RateRules.ledgerLifetime
        self.answer = answer
    }

    /// Smooths the demand: up at once, down with a time constant of 0.3 s, to nothing when the node says that requests
    /// stopped.
    mutating func noteDemand(_ report: RateReport, now: UInt64) {
        let new = Double(report.arrivals - min(arrivals, report.arrivals))
        let passed = seconds(max(now - min(now, reportedAt), RateRules.quickInterval))
        if report.isSilent || !report.wants {
            demand = 0
        } else {
            demand = max(new / passed, demand * 0.3 / (0.3 + passed))
            // Clients that wait as told would come within a second if they could.
            demand = max(demand, report.promised > 0 ? granted + Double(min(report.promised, 1 << 32)) : 0)
            if demand < 0.02 { demand = 0 }
        }
    }
}

/// Nanoseconds as seconds.
func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds) / 1e9 }

/// Micro-requests as requests.
func requests(_ micro: UInt64) -> Double { Double(micro) / 1e6 }
