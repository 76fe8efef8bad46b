package import GRDB
import RecordModel
import Wire

extension RecordTables {
    /// One page of a zone's changes, on a reader's snapshot.
    ///
    /// A client that follows the tokens, in whichever directions, and takes over what the pages say has the zone's
    /// records each time that `moreComing` is false.
    /// - Parameter take: is given the entries in order. False is that it has no room for this one: then the page ends
    ///   before it, unless it is the first.
    /// - Returns: `.refused` with `BAD_REQUEST` for a token that is unreadable, expired or of another life of the zone.
    /// - Throws: what `take` throws, `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package func zoneChanges(
        _ request: ZoneChangesRequest, in db: Database, take: (RecordEntry) throws -> Bool = { _ in true }
    ) throws -> ReadOutcome<ZoneChangesPage> {
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
            let row = RecordRow(row)
            let entry = try entry(of: row)
            if let entry, try !take(entry), !entries.isEmpty {
                leftOver = true
                return false
            }
            examined += 1
            last = row.sequence
            bytes += entry == nil ? 0 : row.body.count
            if let entry { entries.append(entry) }
            return true
        }
        let token = leftOver ? last.map(walk.token(after:)) ?? walk.tokenAtEnd() : walk.tokenAtEnd()
        return ZoneChangesPage(records: entries, token: token.encoded(), moreComing: leftOver)
    }

    /// What a client that asks for some types only is told of a row; nil where that is nothing.
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
