package import Authorization
package import RecordModel

/// One page of a query over one zone.
package struct RecordQuery: Hashable, Sendable {
    package var zone: ZoneKey
    /// The schema version that the node which asks holds; a shard with a lower one answers `needsSchema`.
    package var schemaVersion: UInt64
    package var caller: Caller
    package var query: Query
    /// Records wanted, 1 to `Limits.recordsPerPageMax`; more are taken for the maximum.
    package var limit: Int
    /// The `next` of the page before; nil for the first page.
    package var cursor: [UInt8]?

    package init(
        zone: ZoneKey, schemaVersion: UInt64, caller: Caller, query: Query, limit: Int, cursor: [UInt8]? = nil
    ) {
        self.zone = zone
        self.schemaVersion = schemaVersion
        self.caller = caller
        self.query = query
        self.limit = limit
        self.cursor = cursor
    }
}

/// Some of a query's records, in its order.
package struct QueryPage: Hashable, Sendable {
    package var records: [Record]
    /// Where to go on; nil at the end. A page may hold fewer records than asked for, even none, and still go on: scans
    /// and pages are bounded.
    package var next: [UInt8]?

    package init(records: [Record], next: [UInt8]?) {
        self.records = records
        self.next = next
    }
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
    /// Index entries that one page looks at.
    package static let examinedMax = 10_000
    /// Rows that an equality filter may have for its matches to be sorted instead of scanning the sort key's index.
    package static let gatheredMax = 2_000
    /// Records that may share the first of several sort keys.
    package static let tieGroupMax = 100_000
    /// Bytes of record bodies in a page, give or take one record.
    package static let pageBytesMax = 4 * 1_048_576
}
