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

    /// Takes a report and answers with the share that its node holds from now on.
    ///
    /// Reports may come twice, late and out of order: a repeated one gets the same answer, an older one none that
    /// counts.
    /// - Parameter reign: With a new one everything is forgotten: another leader lent in between.
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
