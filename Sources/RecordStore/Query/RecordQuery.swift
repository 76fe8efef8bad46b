package import Authorization
package import RecordModel
package import Wire

/// One page of a query over one zone.
package struct RecordQuery: Hashable, Sendable, WireMessage {
    /// A custom zone that does not exist is refused with `ZONE_NOT_FOUND`.
    package var zone: ZoneKey
    /// The schema version that the node which asks holds; a shard with a lower one answers `needsSchema`.
    package var schemaVersion: UInt64
    /// Records that the caller may not read are left out; a type that is closed to the caller is refused.
    package var caller: Caller
    /// The same for all pages: a cursor of another query is refused with `BAD_REQUEST`.
    package var query: Query
    /// Records wanted, 1 to `Limits.recordsPerPageMax`; more are taken for the maximum.
    package var limit: Int
    /// The `next` of the page before; nil for the first page.
    package var cursor: [UInt8]?
    /// Whether the page says how it was read.
    package var explains = false

    package init(
        zone: ZoneKey, schemaVersion: UInt64, caller: Caller, query: Query, limit: Int, cursor: [UInt8]? = nil,
        explains: Bool = false
    ) {
        self.explains = explains
        self.zone = zone
        self.schemaVersion = schemaVersion
        self.caller = caller
        self.query = query
        self.limit = limit
        self.cursor = cursor
    }

    package static var blank: Self {
        RecordQuery(
            zone: .blank, schemaVersion: 0, caller: Caller(user: nil), query: .blank, limit: Limits.recordsPerPageMax,
            cursor: nil)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &zone)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.required(4, &query)
        try wire.field(5, &limit)
        try wire.field(6, &cursor)
        try wire.field(7, &explains, unless: false)
    }
}

/// Some of a query's records, in its order.
package struct QueryPage: Hashable, Sendable {
    /// At most as many as the request's `limit`.
    package var records: [Record]
    /// Where to continue; nil at the end. A page may have fewer records than asked for, even zero, and still continue:
    /// scans and pages are bounded.
    package var next: [UInt8]?
    /// Where the request asked for it.
    package var explanation: QueryExplanation?
}

/// A part of a query over all zones of a private database: one shard's answer for its zones.
package struct DatabaseQuery: Hashable, Sendable, WireMessage {
    /// The caller's own private database; any other is refused with `BAD_REQUEST`.
    package var database: DatabaseKey
    /// As in `RecordQuery`.
    package var schemaVersion: UInt64
    /// The user who owns the database; the administrator is refused too.
    package var caller: Caller
    /// The same for all shards and pages, so that their positions compare.
    package var query: Query
    /// Records wanted, 1 to `Limits.recordsPerPageMax`; more are taken for the maximum.
    package var limit: Int
    /// A position of any shard's answer to the same query: only what comes after it is wanted.
    package var cursor: [UInt8]?

    package init(
        database: DatabaseKey, schemaVersion: UInt64, caller: Caller, query: Query, limit: Int, cursor: [UInt8]? = nil
    ) {
        self.database = database
        self.schemaVersion = schemaVersion
        self.caller = caller
        self.query = query
        self.limit = limit
        self.cursor = cursor
    }

    package static var blank: Self {
        DatabaseQuery(
            database: .blank, schemaVersion: 0, caller: Caller(user: nil), query: .blank,
            limit: Limits.recordsPerPageMax, cursor: nil)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.required(4, &query)
        try wire.field(5, &limit)
        try wire.field(6, &cursor)
    }
}

/// One shard's answer to a query over all zones.
package struct DatabaseQueryPage: Hashable, Sendable {
    /// A record with its zone and its place in the order.
    package struct Item: Hashable, Sendable {
        /// The name of the record's zone.
        package var zone: String
        /// With every field that the schema has; encrypted values are still sealed.
        package var record: Record
        /// The record's place in the order over all zones and shards: positions compare as unsigned bytes.
        package var position: [UInt8]
    }

    /// Ascending by position.
    package var items: [Item]
    /// Nil: nothing comes after the items. Else the answer is complete up to this position, itself included.
    package var next: [UInt8]?
}

/// The answer to a read of records.
package enum ReadOutcome<Answer: Hashable & Sendable>: Hashable, Sendable {
    case found(Answer)
    /// The shard's schema version is lower than the request's: install it and ask again.
    case needsSchema(installed: UInt64)
    case refused(ServiceError)
}

/// What a lookup found under one name.
package enum LookupItem: Hashable, Sendable {
    case record(Record)
    case failed(ServiceError)
}

/// The bounds of a query's work.
package enum QueryLimits {
    /// Steps of work that one page takes, give or take one record: entries read, rows counted, keys made and compared.
    /// About a tenth of a second of one core.
    package static let workMax = 1_000_000
    /// Index entries that one page looks at.
    package static let examinedMax = 10_000
    /// Records that may share the first of several sort keys, while the second one's index is being built.
    package static let tieGroupMax = 100_000
    /// Bytes of record bodies in a page, give or take one record.
    package static let pageBytesMax = 4 * 1_048_576
    /// Bytes of an answer's records: it has to fit a frame between nodes.
    package static let answerBytesMax = 6 * 1_048_576
}
