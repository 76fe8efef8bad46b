package import RecordModel

/// How much of a database one shard holds.
package struct DatabaseUsage: Hashable, Sendable {
    package var key: DatabaseKey
    /// As counted in the transactions of the changes.
    package var used: QuotaAmounts
    /// What the shard may hold without asking the ledger.
    package var allotted: QuotaAmounts
    /// The live zones, by name in byte order; a page may tell of some of them.
    package var zones: [ZoneUsage]
    /// What deleted zones hold and what requests are remembered by, where a recount was asked for: it counts in `used`
    /// and in no zone.
    package var others = QuotaAmounts.zero
    /// What `used` has beyond the sum of all live zones' counters and `others`, where a recount was asked for; zero
    /// where they are right.
    package var unattributed = QuotaAmounts.zero

    package init(key: DatabaseKey, used: QuotaAmounts, allotted: QuotaAmounts, zones: [ZoneUsage]) {
        self.key = key
        self.used = used
        self.allotted = allotted
        self.zones = zones
    }

    /// The sum of all recounts; nil where none was asked for.
    package var recount: QuotaAmounts? {
        var sum = others
        for zone in zones {
            guard let recount = zone.recount else { return nil }
            sum = sum + recount
        }
        return sum
    }
}

/// How much one zone holds.
package struct ZoneUsage: Hashable, Sendable {
    package var name: String
    package var used: QuotaAmounts
    /// Counted anew from the stored records, where that was asked for; it equals `used`.
    package var recount: QuotaAmounts?

    package init(name: String, used: QuotaAmounts, recount: QuotaAmounts?) {
        self.name = name
        self.used = used
        self.recount = recount
    }
}

/// The databases of a container environment that one shard knows, by scope (public, private, shared) and owner.
package struct UsagePage: Hashable, Sendable {
    package var databases: [DatabaseUsage]
    /// Whether another page follows.
    package var hasMore: Bool
    /// Whether that page goes on with the last database, whose zones were too many for this one.
    package var isLastCut: Bool

    package init(databases: [DatabaseUsage], hasMore: Bool, isLastCut: Bool = false) {
        self.databases = databases
        self.hasMore = hasMore
        self.isLastCut = isLastCut
    }

    /// Where the next page begins; nil where there is none.
    package var next: UsagePosition? {
        guard hasMore, let last = databases.last else { return nil }
        return UsagePosition(database: last.key, zone: isLastCut ? last.zones.last?.name : nil)
    }
}

/// What a database's ledger knows.
package struct LedgerState: Hashable, Sendable {
    /// One shard's part.
    package struct Share: Hashable, Sendable {
        package var shard: UInt64
        /// Over all times: what the ledger gave, and what it heard that the shard gave back; never more than given.
        package var granted: QuotaAmounts
        package var returned: QuotaAmounts

        package init(shard: UInt64, granted: QuotaAmounts, returned: QuotaAmounts) {
            self.shard = shard
            self.granted = granted
            self.returned = returned
        }

        /// What holds of every share that is stored.
        func check() throws(InvariantViolation) {
            try Invariant.check(
                QuotaAmounts.zero.fits(in: returned) && returned.fits(in: granted),
                "shard \(shard) was given \(granted) and gave back \(returned)")
        }
    }

    /// By shard.
    package var shares: [Share]
    /// As of the last grant; 0 where there was none.
    package var cap: QuotaAmounts
    package var epoch: UInt64
    /// Year times 100 plus month, and the bytes counted for it.
    package var transferMonth: UInt64
    package var transferBytes: UInt64

    package init(
        shares: [Share] = [], cap: QuotaAmounts = .zero, epoch: UInt64 = 0, transferMonth: UInt64 = 0,
        transferBytes: UInt64 = 0
    ) {
        self.shares = shares
        self.cap = cap
        self.epoch = epoch
        self.transferMonth = transferMonth
        self.transferBytes = transferBytes
    }

    /// What shards have, or will have once they hear of it.
    package var outstanding: QuotaAmounts { shares.reduce(.zero) { $0 + ($1.granted - $1.returned) } }

    /// What may be given; below 0 where the cap was lowered.
    package var free: QuotaAmounts { cap - outstanding }
}
