package import Authorization
package import GRDB
package import RecordModel
package import Wire

/// One page of a custom zone's changes.
package struct ZoneChangesRequest: Hashable, Sendable, WireMessage {
    /// A custom zone; the default zone keeps no changes and is refused with `BAD_REQUEST`.
    package var zone: ZoneKey
    /// The schema version that the node which asks holds; a shard with a lower one answers `needsSchema`.
    package var schemaVersion: UInt64
    /// Must be the user who owns the zone's database; any other is refused.
    package var caller: Caller
    /// What a page before ended with; nil, or empty, from the beginning.
    package var token: [UInt8]?
    /// Entries wanted, 1 to `Limits.recordsPerPageMax`; more are taken for the maximum.
    package var limit: Int
    /// Newest first. Counts where a walk begins only: the token of a walk that goes on carries its direction.
    package var isReverse: Bool
    /// Only records of these types, and tombstones of them; nil is all. A record that was recreated under another type
    /// shows under the new one only.
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

    package static var blank: Self {
        ZoneChangesRequest(zone: .blank, schemaVersion: 0, caller: Caller(user: nil), limit: Limits.recordsPerPageMax)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &zone)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.field(4, &token)
        try wire.field(5, &limit)
        try wire.field(6, &isReverse, unless: false)
        try wire.field(7, &recordTypes, members: 8)
    }
}

/// A changed record, in its latest state.
package enum RecordEntry: Hashable, Sendable {
    case record(RecordModel.Record)
    /// `type` is nil where the schema has lost it.
    case deleted(name: String, type: String?, changeTag: ChangeTag)
}

/// Some of a zone's changes, each record once.
package struct ZoneChangesPage: Hashable, Sendable {
    /// By latest change: the oldest first, or the newest first in a reverse walk.
    package var records: [RecordEntry]
    /// Where to go on, now or later.
    package var token: [UInt8]
    /// Whether there is more now. A page may be empty and there still be more: scans and pages are bounded.
    package var moreComing: Bool
}

/// One page of the custom zones of a private database that changed, as far as they live in this shard.
package struct DatabaseChangesRequest: Hashable, Sendable, WireMessage {
    /// A private database; any other is refused with `BAD_REQUEST`.
    package var database: DatabaseKey
    /// The schema version that the node which asks holds; a shard with a lower one answers `needsSchema`.
    package var schemaVersion: UInt64
    /// Must be the user who owns the database; any other is refused.
    package var caller: Caller
    /// What the page before ended with; 0 and 0 from the beginning.
    package var incarnation: UInt64
    /// Only zones that changed after this number of the database's feed; above 0 it needs an incarnation.
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

    package static var blank: Self {
        DatabaseChangesRequest(
            database: .blank, schemaVersion: 0, caller: Caller(user: nil), incarnation: 0, after: 0,
            limit: Limits.recordsPerPageMax)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.field(4, &incarnation)
        try wire.field(5, &after)
        try wire.field(6, &limit)
    }
}

/// A zone that changed.
package struct ChangedZone: Hashable, Sendable, WireMessage {
    /// The zone as it is now; for a deleted zone, the last incarnation and sequence that it had.
    package var state: ZoneState
    /// Whether the zone was deleted.
    package var isDeleted: Bool

    package static var blank: Self { ChangedZone(state: .blank, isDeleted: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &state)
        try wire.field(2, &isDeleted, unless: false)
    }
}

/// Some of the zones that changed, each once, in the order of their latest changes.
package struct DatabaseChangesPage: Hashable, Sendable, WireMessage {
    /// The first page of a walk from the beginning, which has no incarnation, leaves deleted zones out.
    package var zones: [ChangedZone]
    /// Where to go on, now or later; the incarnation is at least 1.
    package var incarnation: UInt64
    /// The next request's `after`: the number in the database's feed up to which the page tells of zones.
    package var position: UInt64
    /// Whether there is more now. A page may be empty and there still be more: scans are bounded.
    package var hasMore: Bool

    package static var blank: Self { DatabaseChangesPage(zones: [], incarnation: 0, position: 0, hasMore: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &zones)
        try wire.field(2, &incarnation)
        try wire.field(3, &position)
        try wire.field(4, &hasMore, unless: false)
    }
}

/// The bounds of a feed's page.
package enum FeedLimits {
    /// Rows that one page looks at.
    package static let examinedMax = 10_000
    /// Bytes of record bodies that one page reads, of unwanted types too, give or take one record.
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

/// The feeds of a shard's databases and zones, as one connection's snapshot has them.
package struct ChangeReads {
    private let reads: RecordReads
    private let db: Database

    /// - Parameter tables: those of the connection's database.
    package init(_ tables: RecordTables, in db: Database) {
        reads = RecordReads(tables, in: db)
        self.db = db
    }

    /// One page of a private database's zones that changed.
    ///
    /// A zone that was recreated shows once, as it is now, with a greater incarnation.
    /// - Returns: `.refused` with `BAD_REQUEST` if the position is from an earlier life of the database.
    /// - Throws: `DatabaseError` on an I/O error.
    package func databaseChanges(_ request: DatabaseChangesRequest) throws -> ReadOutcome<DatabaseChangesPage> {
        let rows = Rows(db: db)
        let found = try rows.schema(request.database)
        let installed = found?.version ?? 0
        guard installed >= request.schemaVersion else { return .needsSchema(installed: installed) }
        if let refusal = ZoneRules.refusal(of: request.caller, inZonesOf: request.database) {
            return .refused(refusal)
        }
        let database = try found.flatMap { try rows.database(request.database, schemaID: $0.id) }
        let incarnation = UInt64(bitPattern: try database?.incarnation ?? incarnationFloor(of: found))
        let sequence = UInt64(bitPattern: database?.sequence ?? 0)
        if let refusal = Self.refusal(of: request, incarnation: incarnation, sequence: sequence) {
            return .refused(refusal)
        }
        var page = DatabaseChangesPage(zones: [], incarnation: incarnation, position: sequence, hasMore: false)
        if let database { try collect(&page, request, databaseID: database.id) }
        return .found(page)
    }

    /// The incarnation that a database gets which has nothing yet.
    private func incarnationFloor(of schema: SchemaRow?) throws -> Int64 {
        let floor = try db.first("SELECT incarnation_floor FROM record_state") { $0.integer(0) } ?? 1
        return max(floor, try schema.flatMap { try Rows(db: db).incarnationFloor(schemaID: $0.id) } ?? 0)
    }

    private static func refusal(
        of request: DatabaseChangesRequest, incarnation: UInt64, sequence: UInt64
    ) -> ServiceError? {
        if request.incarnation == 0 {
            return request.after == 0 ? nil : FeedErrors.unknownToken("a position without an incarnation")
        }
        guard request.incarnation == incarnation else {
            return FeedErrors.expired("the database was reset or restored since the token was given")
        }
        guard request.after <= sequence else { return FeedErrors.expired("the token is of a future that was lost") }
        return nil
    }

    private func collect(
        _ page: inout DatabaseChangesPage, _ request: DatabaseChangesRequest, databaseID: Int64
    ) throws {
        let limit = min(max(request.limit, 1), Limits.recordsPerPageMax)
        let rowsMax = QueryTuning.current.feedRowsMax
        var examined = 0
        var last = request.after
        var zones: [ChangedZone] = []
        var hasMore = false
        // A later zone of the name speaks for it.
        try db.forEach(
            """
            SELECT \(ZoneRow.columns), z.name, EXISTS (
                SELECT 1 FROM zone l WHERE l.database = z.database AND l.name = z.name
                    AND l.incarnation > z.incarnation)
            FROM zone z WHERE z.database = ? AND z.changed_at > 0 AND z.changed_at > ? ORDER BY z.changed_at
            """, databaseID, Int64(clamping: request.after)
        ) { row in
            guard zones.count < limit, examined < rowsMax else {
                hasMore = true
                return false
            }
            examined += 1
            let zone = ZoneRow(row)
            last = UInt64(bitPattern: zone.changedAt)
            let isDeleted = zone.state != ZoneLife.live
            if row.integer(ZoneRow.columnCount + 1) != 0 || (isDeleted && request.incarnation == 0) { return true }
            let state = zone.described(as: row.text(ZoneRow.columnCount))
            zones.append(ChangedZone(state: state, isDeleted: isDeleted))
            return true
        }
        page.zones = zones
        page.hasMore = hasMore
        if hasMore { page.position = last }
    }

    /// One page of a zone's changes.
    ///
    /// A client that follows the tokens, in whichever directions, and takes over what the pages say has the zone's
    /// records each time that `moreComing` is false.
    /// - Parameter take: is given the entries in order. False is that it has no room for this one: then the page ends
    ///   before it, unless it is the first.
    /// - Returns: `.refused` with `BAD_REQUEST` for a token that is unreadable, expired or of another life of the zone.
    /// - Throws: what `take` throws, `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package func zoneChanges(
        _ request: ZoneChangesRequest, take: (RecordEntry) throws -> Bool = { _ in true }
    ) throws -> ReadOutcome<ZoneChangesPage> {
        let opened: RecordReads.Opened
        switch try reads.open(request.zone, caller: request.caller, schemaVersion: request.schemaVersion) {
        case .needsSchema(let installed): return .needsSchema(installed: installed)
        case .refused(let error): return .refused(error)
        case .found(let found): opened = found
        }
        guard !request.zone.isDefault else {
            return .refused(
                ServiceError(
                    .badRequest, "AppDefaultZone does not support getChanges call: only custom zones keep changes"))
        }
        guard let schema = opened.schema, let zone = opened.zone else {
            return .refused(ZoneRules.notFound(request.zone))
        }
        let walk: ZoneWalk
        do {
            walk = try ZoneWalk(request, zone: zone)
        } catch {
            return .refused(error)
        }
        var page = ZonePage(db: db, zone: zone, schema: try reads.schema(schema), request: request)
        return .found(try page.collect(walk, take))
    }
}

/// Collects one page of a zone's changes.
private struct ZonePage {
    private let db: Database
    private let zone: ZoneRow
    private let schema: InstalledSchema
    private let recordTypes: Set<String>?
    private let limit: Int
    private let tuning = QueryTuning.current
    private var names: UserNameCache
    private var entries: [RecordEntry] = []
    private var examined = 0
    private var bytes = 0
    /// The sequence of the last row looked at.
    private var last: Int64?

    init(db: Database, zone: ZoneRow, schema: InstalledSchema, request: ZoneChangesRequest) {
        self.db = db
        self.zone = zone
        self.schema = schema
        recordTypes = request.recordTypes.map(Set.init)
        limit = min(max(request.limit, 1), Limits.recordsPerPageMax)
        names = UserNameCache(db)
    }

    mutating func collect(_ walk: ZoneWalk, _ take: (RecordEntry) throws -> Bool) throws -> ZoneChangesPage {
        let order = walk.isReverse ? "DESC" : "ASC"
        var leftOver = false
        try db.forEach(
            """
            SELECT \(RecordRow.columns) FROM record r WHERE r.zone = ? AND r.sequence > ? AND r.sequence < ?
            ORDER BY r.sequence \(order)
            """, zone.id, walk.lower, walk.upper
        ) { row in
            guard entries.count < limit, examined < tuning.feedRowsMax, bytes < tuning.feedBytesMax else {
                leftOver = true
                return false
            }
            let row = RecordRow(row)
            let entry = try entry(of: row)
            if let entry, try !take(entry), !entries.isEmpty {
                leftOver = true
                return false
            }
            examined += 1
            last = row.sequence
            bytes += row.body.count
            if let entry { entries.append(entry) }
            return true
        }
        let token = leftOver ? last.map(walk.token(after:)) ?? walk.tokenAtEnd() : walk.tokenAtEnd()
        return ZoneChangesPage(records: entries, token: token.encoded(), moreComing: leftOver)
    }

    /// A row as a client that asks for some types sees it; nil if it does not.
    private mutating func entry(of row: RecordRow) throws -> RecordEntry? {
        let type = schema.byID[row.typeID]
        if let recordTypes, let type, !recordTypes.contains(type.definition.name) { return nil }
        guard !row.isDeleted, let type else {
            // What the schema lost is gone for clients already: they may know the name from before, as another type's
            // record.
            return .deleted(name: row.name, type: type?.definition.name, changeTag: zone.changeTag(row.sequence))
        }
        return .record(try row.record(type: type, zone: zone, names: &names))
    }
}
