package import Authorization
package import RecordModel

/// One page of a custom zone's changes.
package struct ZoneChangesRequest: Hashable, Sendable {
    package var zone: ZoneKey
    /// The schema version that the node which asks holds; a shard with a lower one answers `needsSchema`.
    package var schemaVersion: UInt64
    package var caller: Caller
    /// What a page before ended with; nil, or empty, from the beginning.
    package var token: [UInt8]?
    /// Entries wanted, 1 to `Limits.recordsPerPageMax`; more are taken for the maximum.
    package var limit: Int
    /// Newest first. Counts where a walk begins only: the token of a walk that goes on carries its direction.
    package var isReverse: Bool
    /// Only records of these types, and tombstones of them; nil is all. A record that was deleted and made anew under
    /// another type shows under the new one only.
    package var recordTypes: [String]?

    package init(
        zone: ZoneKey, schemaVersion: UInt64, caller: Caller, token: [UInt8]? = nil,
        limit: Int = Limits.recordsPerPageMax, isReverse: Bool = false, recordTypes: [String]? = nil
    ) {
        self.zone = zone
        self.schemaVersion = schemaVersion
        self.caller = caller
        self.token = token
        self.limit = limit
        self.isReverse = isReverse
        self.recordTypes = recordTypes
    }
}

/// A changed record, in its latest state.
package enum RecordEntry: Hashable, Sendable {
    case record(Record)
    /// `type` is nil where the schema has lost it.
    case deleted(name: String, type: String?, changeTag: ChangeTag)
}

/// Some of a zone's changes, each record once.
package struct ZoneChangesPage: Hashable, Sendable {
    package var records: [RecordEntry]
    /// Where to go on, now or later.
    package var token: [UInt8]
    /// Whether there is more now. A page may be empty and there still be more: scans and pages are bounded.
    package var moreComing: Bool

    package init(records: [RecordEntry], token: [UInt8], moreComing: Bool) {
        self.records = records
        self.token = token
        self.moreComing = moreComing
    }
}

/// One page of the custom zones of a private database that changed, as far as they live in this shard.
package struct DatabaseChangesRequest: Hashable, Sendable {
    package var database: DatabaseKey
    /// The schema version that the node which asks holds; a shard with a lower one answers `needsSchema`.
    package var schemaVersion: UInt64
    package var caller: Caller
    /// What the page before ended with; 0 and 0 from the beginning.
    package var incarnation: UInt64
    package var after: UInt64
    /// Zones wanted, 1 to `Limits.recordsPerPageMax`; more are taken for the maximum.
    package var limit: Int

    package init(
        database: DatabaseKey, schemaVersion: UInt64, caller: Caller, incarnation: UInt64 = 0, after: UInt64 = 0,
        limit: Int = Limits.recordsPerPageMax
    ) {
        self.database = database
        self.schemaVersion = schemaVersion
        self.caller = caller
        self.incarnation = incarnation
        self.after = after
        self.limit = limit
    }
}

/// A zone that changed.
package struct ChangedZone: Hashable, Sendable {
    package var state: ZoneState
    /// Whether no zone of the name lives any more.
    package var isDeleted: Bool

    package init(state: ZoneState, isDeleted: Bool) {
        self.state = state
        self.isDeleted = isDeleted
    }
}

/// Some of the zones that changed, each once, in the order of their latest changes.
package struct DatabaseChangesPage: Hashable, Sendable {
    package var zones: [ChangedZone]
    /// Where to go on, now or later; the incarnation is at least 1.
    package var incarnation: UInt64
    package var position: UInt64
    package var hasMore: Bool

    package init(zones: [ChangedZone], incarnation: UInt64, position: UInt64, hasMore: Bool) {
        self.zones = zones
        self.incarnation = incarnation
        self.position = position
        self.hasMore = hasMore
    }
}

/// The bounds of a feed's page.
package enum FeedLimits {
    /// Rows that one page looks at.
    package static let examinedMax = 10_000
    /// Bytes of record bodies in a page, give or take one record.
    package static let pageBytesMax = 4 * 1_048_576
}

/// Why a feed cannot go on from where a client stands.
enum FeedErrors {
    static func unknownToken(_ detail: String) -> ServiceError {
        ServiceError(
            .badRequest, "Unknown sync continuation type: \(detail); start again without a token",
            detail: .expiredSyncToken)
    }

    static func expired(_ detail: String) -> ServiceError {
        ServiceError(
            .badRequest,
            "client knowledge differs from server knowledge: \(detail); start again without a token",
            detail: .expiredSyncToken)
    }
}
