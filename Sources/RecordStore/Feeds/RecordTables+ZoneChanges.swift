package import GRDB
import RecordModel
import Wire

extension RecordTables {
    /// One page of a zone's changes, on a reader's snapshot.
    ///
    /// A client that follows the tokens, in whichever directions, and takes over what the pages say has the zone's
    /// records each time that `moreComing` is false.
    /// - Returns: `.refused` with `BAD_REQUEST` for a token that is unreadable, expired or of another life of the zone.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package func zoneChanges(_ request: ZoneChangesRequest, in db: Database) throws -> ReadOutcome<ZoneChangesPage> {
        let opened: Opened
        switch try open(request.zone, caller: request.caller, schemaVersion: request.schemaVersion, in: db) {
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
        var page = ZonePage(db: db, zone: zone, schema: try installedSchema(schema, in: db), request: request)
        return .found(try page.collect(walk))
    }
}

/// Collects one page of a zone's changes.
private struct ZonePage {
    private let db: Database
    private let zone: ZoneRow
    private let schema: InstalledSchema
    private let recordTypes: Set<String>?
    private let limit: Int
    private var names: StampNames
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
        names = StampNames(db)
    }

    mutating func collect(_ walk: ZoneWalk) throws -> ZoneChangesPage {
        let order = walk.isReverse ? "DESC" : "ASC"
        var leftOver = false
        try SQLStatement(
            cached: """
                SELECT \(RecordRow.columns) FROM record r WHERE r.zone = ? AND r.sequence > ? AND r.sequence < ?
                ORDER BY r.sequence \(order)
                """, in: db
        ).forEach([.integer(zone.id), .integer(walk.lower), .integer(walk.upper)]) { row in
            guard entries.count < limit, examined < FeedLimits.examinedMax, bytes < FeedLimits.pageBytesMax else {
                leftOver = true
                return false
            }
            try take(RecordRow(row))
            return true
        }
        let token = leftOver ? last.map(walk.token(after:)) ?? walk.tokenAtEnd() : walk.tokenAtEnd()
        return ZoneChangesPage(records: entries, token: token.encoded(), moreComing: leftOver)
    }

    private mutating func take(_ row: RecordRow) throws {
        examined += 1
        last = row.sequence
        let type = schema.byID[row.typeID]
        if let recordTypes, let type, !recordTypes.contains(type.definition.name) { return }
        guard !row.isDeleted, let type else {
            // What the schema lost is gone for clients already: they may know the name from before, as another type's record.
            entries.append(
                .deleted(name: row.name, type: type?.definition.name, changeTag: zone.changeTag(row.sequence)))
            return
        }
        bytes += row.body.count
        entries.append(.record(try row.record(type: type, zone: zone, names: &names)))
    }
}
