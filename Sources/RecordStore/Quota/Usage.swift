package import RecordModel
package import Wire

/// How much of a database one shard holds.
package struct DatabaseUsage: Hashable, Sendable, WireMessage {
    /// The owner is empty where the amounts are the sums of a scope (`UsageRequest.Detail.sums`).
    package var key: DatabaseKey
    /// As counted in the transactions of the changes.
    package var used: QuotaAmounts
    /// What the shard may hold without asking the ledger.
    package var allotted: QuotaAmounts
    /// The live zones, by name in byte order; a page may have some of them.
    package var zones: [ZoneUsage]
    /// What deleted zones hold and what requests are remembered by, where a recount was asked for: it counts in `used`
    /// and in no zone.
    package var others = QuotaAmounts.zero
    /// What `used` has beyond the sum of all live zones' counters and `others`, where a recount was asked for; zero
    /// where they are right.
    package var unattributed = QuotaAmounts.zero

    /// The sum of all recounts; nil without a recount.
    package var recount: QuotaAmounts? {
        var sum = others
        for zone in zones {
            guard let recount = zone.recount else { return nil }
            sum = sum + recount
        }
        return sum
    }

    package static var blank: Self {
        DatabaseUsage(key: .blank, used: QuotaAmounts(), allotted: QuotaAmounts(), zones: [])
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &key)
        try wire.field(2, &used)
        try wire.field(3, &allotted)
        try wire.field(4, &zones)
        try wire.field(5, &unattributed, unless: .zero)
        try wire.field(6, &others, unless: .zero)
    }
}

/// How much one zone holds.
package struct ZoneUsage: Hashable, Sendable, WireMessage {
    /// `ZoneKey.defaultZoneName` for the default zone.
    package var name: String
    /// As counted in the transactions of the changes.
    package var used: QuotaAmounts
    /// Recounted from the stored records, if asked for; equals `used`.
    package var recount: QuotaAmounts?
    /// Its records by type, if asked for; by name.
    package var types: [TypeUsage] = []

    /// Records that were read for it.
    var countedRecords: Int64 { recount?.records ?? types.reduce(0) { $0 + $1.records } }

    package static var blank: Self { ZoneUsage(name: "", used: .zero, recount: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.field(2, &used)
        try wire.field(3, &recount)
        try wire.field(4, &types)
    }
}

/// The databases of a container environment that one shard knows, by scope (public, private, shared) and owner.
package struct UsagePage: Hashable, Sendable, WireMessage {
    /// At most `UsageLimits.databases`; for `sums` one for each scope that has any.
    package var databases: [DatabaseUsage]
    /// Whether another page follows.
    package var hasMore: Bool
    /// Whether that page goes on with the last database, whose zones were too many for this one.
    package var isLastCut: Bool = false

    /// Where the next page begins; nil at the end.
    package var next: UsagePosition? {
        guard hasMore, let last = databases.last else { return nil }
        return UsagePosition(database: last.key, zone: isLastCut ? last.zones.last?.name : nil)
    }

    package static var blank: Self { UsagePage(databases: [], hasMore: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &databases)
        try wire.field(2, &hasMore, unless: false)
        try wire.field(3, &isLastCut, unless: false)
    }
}

/// What a database's ledger knows.
package struct LedgerState: Hashable, Sendable, WireMessage {
    /// One shard's part.
    package struct Share: Hashable, Sendable, WireMessage {
        /// The number of the shard's group.
        package var shard: UInt64
        /// Over all times: what the ledger gave, and what it heard that the shard gave back; never more than given.
        package var granted: QuotaAmounts
        /// May be less than the shard gave back: a deposit or the next grant tells the ledger.
        package var returned: QuotaAmounts

        /// What holds of every share that is stored.
        func check() throws(InvariantViolation) {
            try Invariant.check(
                QuotaAmounts.zero.fits(in: returned) && returned.fits(in: granted),
                "shard \(shard) was given \(granted) and gave back \(returned)")
        }

        package static var blank: Self { LedgerState.Share(shard: 0, granted: .zero, returned: .zero) }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &shard)
            try wire.field(2, &granted)
            try wire.field(3, &returned)
        }
    }

    /// By shard.
    package var shares: [Share] = []
    /// As of the last grant; 0 before the first.
    package var cap: QuotaAmounts = .zero
    /// The version of the container's limits that `cap` is from; 0 before the first grant.
    package var epoch: UInt64 = 0
    /// Year times 100 plus month, and the bytes counted for it.
    package var transferMonth: UInt64 = 0
    /// Begins at 0 when `transferMonth` changes, and stops at `UInt64.max`.
    package var transferBytes: UInt64 = 0

    /// What shards have, or will have once they receive it.
    package var outstanding: QuotaAmounts { shares.reduce(.zero) { $0 + ($1.granted - $1.returned) } }

    /// What may be given; below 0 where the cap was lowered.
    package var free: QuotaAmounts { cap - outstanding }

    package static var blank: Self { LedgerState() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &shares)
        try wire.field(2, &cap)
        try wire.field(3, &epoch)
        try wire.field(4, &transferMonth)
        try wire.field(5, &transferBytes)
    }
}

/// What a shard is asked of its databases' usage.
package struct UsageRequest: Hashable, Sendable, WireMessage {
    /// The level of detail.
    package enum Detail: UInt64, Sendable, WireValue {
        /// Its counters.
        case totals = 0
        /// Its zones' counters too.
        case zones = 1
        /// Each zone's records recounted as well, which reads all of them.
        case recount = 2
        /// Its zones' counters, and each zone's records counted by type, which reads all of them.
        case types = 3
        /// What all databases come to by scope, as one without owner each: one page.
        case sums = 4
        /// As `types`, and how many of a type's records have each of its fields.
        case fields = 5
    }

    /// A container that the shard does not know gives an empty page.
    package var container: String
    /// Only databases of this environment are in the answer.
    package var environment: Environment
    /// The one database that is asked for; nil: all of the environment.
    package var database: DatabaseKey?
    /// Goes on behind the page that ended there; its container does not matter.
    package var after: UsagePosition?
    /// What is told beyond the counters of each database.
    package var detail: Detail

    package init(
        container: String, environment: Environment, after: UsagePosition? = nil, detail: Detail = .totals
    ) {
        self.container = container
        self.environment = environment
        self.after = after
        self.detail = detail
    }

    /// Asks for one database.
    package init(of database: DatabaseKey, after: UsagePosition? = nil, detail: Detail = .totals) {
        self.init(container: database.container, environment: database.environment, after: after, detail: detail)
        self.database = database
    }

    package static var blank: Self {
        UsageRequest(container: "", environment: .development, after: nil, detail: Detail.totals)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.required(2, &environment)
        try wire.field(3, &database)
        try wire.field(4, &after)
        try wire.field(5, &detail)
    }
}

/// A place in the order in which usage is told: by scope (public, private, shared), owner and zone.
package struct UsagePosition: Hashable, Sendable, Comparable, WireMessage {
    /// The last database of the page; its container and environment do not count in the order.
    package var database: DatabaseKey
    /// The last zone of the page; nil after all of the database.
    package var zone: String?

    package init(database: DatabaseKey, zone: String? = nil) {
        self.database = database
        self.zone = zone
    }

    /// By scope, then by owner and zone in byte order; nil comes after every zone of its database.
    package static func < (left: Self, right: Self) -> Bool {
        if left.database.scope != right.database.scope {
            return left.database.scope.column < right.database.scope.column
        }
        if left.database.owner != right.database.owner {
            return left.database.owner.utf8.lexicographicallyPrecedes(right.database.owner.utf8)
        }
        // The end of a database comes after all of its zones.
        guard let zone = left.zone else { return false }
        return right.zone.map { zone.utf8.lexicographicallyPrecedes($0.utf8) } ?? true
    }

    package static var blank: Self { UsagePosition(database: .blank, zone: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
        try wire.field(2, &zone)
    }
}

/// How much one page of usage tells at most: so that it fits a frame between nodes, and that a recount ends in time.
package struct UsageLimits: Hashable, Sendable {
    /// Databases in one page.
    package var databases: Int
    /// Zones in one page, over all of its databases.
    package var zones: Int
    /// Records that a page recounts; one zone is always recounted as a whole.
    package var records: Int64

    /// A zone takes about 1 KB of the page at most.
    package init(databases: Int = 200, zones: Int = 2_000, records: Int64 = 50_000) {
        precondition(databases > 0 && zones > 0 && records > 0, "a page of nothing has no next one")
        self.databases = databases
        self.zones = zones
        self.records = records
    }
}
