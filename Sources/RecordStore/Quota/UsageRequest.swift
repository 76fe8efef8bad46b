package import RecordModel
package import Wire

/// What a shard is asked of its databases' usage.
package struct UsageRequest: Hashable, Sendable {
    /// How much is told of each database.
    package enum Detail: UInt64, Sendable {
        /// Its counters.
        case totals = 0
        /// Its zones' counters too.
        case zones = 1
        /// Each zone's records counted anew as well, which reads all of them.
        case recount = 2
    }

    package var container: String
    package var environment: Environment
    /// The one database that is asked for; nil: all of the environment.
    package var database: DatabaseKey?
    /// Goes on behind the page that ended there; its container does not matter.
    package var after: UsagePosition?
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
}

/// A place in the order in which usage is told: by scope (public, private, shared), owner and zone.
package struct UsagePosition: Hashable, Sendable, Comparable {
    package var database: DatabaseKey
    /// The last zone that was told of; nil: all that there is of the database was.
    package var zone: String?

    package init(database: DatabaseKey, zone: String? = nil) {
        self.database = database
        self.zone = zone
    }

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
}

/// How much one page of usage tells at most: so that it fits a frame between nodes, and that a recount ends in time.
package struct UsageLimits: Hashable, Sendable {
    package var databases: Int
    package var zones: Int
    /// Records that a page counts anew; one zone is counted however many it has.
    package var records: Int64

    /// A zone takes about 1 KB of the page at most.
    package init(databases: Int = 200, zones: Int = 2_000, records: Int64 = 50_000) {
        precondition(databases > 0 && zones > 0 && records > 0, "a page of nothing has no next one")
        self.databases = databases
        self.zones = zones
        self.records = records
    }
}

extension UsageRequest: WireMessage {
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

extension UsagePosition: WireMessage {
    package static var blank: Self { UsagePosition(database: .blank, zone: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
        try wire.field(2, &zone)
    }
}

extension UsageRequest.Detail: WireValue {}
