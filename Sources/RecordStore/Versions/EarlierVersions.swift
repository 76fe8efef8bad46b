package import Authorization
package import GRDB
package import RecordModel
package import Wire

/// A record as it was before a change.
package struct RecordVersion: Hashable, Sendable {
    /// As it was.
    package var record: RecordModel.Record
    /// Who ended it, and when.
    package var replaced: Stamp
    /// Whether the record was deleted then.
    package var isDeletion: Bool
}

/// Asks for earlier versions of a record, the newest first.
package struct VersionsRequest: Hashable, Sendable, WireMessage {
    /// Where the record is or was.
    package var zone: ZoneKey
    /// The schema version that the node which asks holds.
    package var schemaVersion: UInt64
    /// Who asks.
    package var caller: Caller
    /// The record's.
    package var recordName: String
    /// Goes on behind the version with this tag.
    package var before: ChangeTag?
    /// 1 to `Limits.recordsPerPageMax`.
    package var limit: Int64

    /// The newest versions, or those before one.
    package init(
        _ recordName: String, zone: ZoneKey, schemaVersion: UInt64, caller: Caller, before: ChangeTag? = nil,
        limit: Int = Limits.recordsPerPageMax
    ) {
        self.zone = zone
        self.schemaVersion = schemaVersion
        self.caller = caller
        self.recordName = recordName
        self.before = before
        self.limit = Int64(limit)
    }

    package static var blank: Self { VersionsRequest("", zone: .blank, schemaVersion: 0, caller: Caller(user: nil)) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &zone)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.field(4, &recordName)
        try wire.field(5, &before)
        try wire.field(6, &limit)
    }
}

/// What of earlier versions is read outside of transactions.
package enum EarlierVersions {
    /// Whether there are versions that are older than some containers keep them.
    static func hasOld(_ ages: [VersionAge], now: Int64, in db: Database) throws -> Bool {
        try ages.contains { age in
            try db.first(
                """
                SELECT EXISTS (SELECT 1 FROM schema s JOIN record_version v ON v.schema = s.id
                    WHERE s.container = ? AND v.since <= ? AND v.epoch <= ?)
                """, age.container, age.cutoff(now), age.epoch
            ) { $0.integer(0) != 0 } ?? false
        }
    }

    /// The containers with versions on this shard that are older than they are to be.
    /// - Parameter age: for how long a container keeps versions; nil where that is not known.
    /// - Throws: `DatabaseError` on an I/O error.
    package static func old(
        now: Int64, age: (_ container: String) -> VersionAge?, in db: Database
    ) throws -> [VersionAge] {
        // A step of the index for each schema, however many versions it has.
        try db.all(
            """
            WITH RECURSIVE found(id) AS (SELECT min(schema) FROM record_version UNION ALL
                SELECT (SELECT min(v.schema) FROM record_version v WHERE v.schema > found.id) FROM found
                WHERE found.id IS NOT NULL)
            SELECT DISTINCT s.container FROM found JOIN schema s ON s.id = found.id ORDER BY s.container
            """
        ) { $0.text(0) }.compactMap(age).filter { try hasOld([$0], now: now, in: db) }
    }

    /// Earlier versions of a record, by the grants of now: who may not read the record, or records of a version's
    /// maker, does not see it. A deleted record has its versions, too, until they are too old.
    /// - Parameter take: is given the versions in order. False is that it has no room for this one: then the page ends
    ///   before it.
    /// - Returns: whether there are more.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package static func read(
        _ request: VersionsRequest, from tables: RecordTables, in db: Database, take: (RecordVersion) -> Bool
    ) throws -> ReadOutcome<Bool> {
        let reads = RecordReads(tables, in: db)
        let opened: RecordReads.Opened
        switch try reads.open(request.zone, caller: request.caller, schemaVersion: request.schemaVersion) {
        case .needsSchema(let installed): return .needsSchema(installed: installed)
        case .refused(let error): return .refused(error)
        case .found(let found): opened = found
        }
        let schema = try reads.schema(opened.schema)
        guard let zone = opened.zone else { return .refused(Self.none) }
        let reader = try VersionReader(request: request, schema: schema, zone: zone, in: db)
        let live = try Rows(db: db).record(zoneID: zone.id, name: request.recordName)
        let isLive = live.map { !$0.isDeleted && schema.byID[$0.typeID] != nil } ?? false
        if isLive, let live, !reader.mayRead(live) {
            return .refused(ServiceError(.accessDenied, "no permission to read the record"))
        }
        let (count, hasMore) = try reader.read(take)
        if count == 0 && !isLive && request.before == nil { return .refused(Self.none) }
        return .found(hasMore)
    }

    private static let none = ServiceError(.notFound, "Record not found, and no earlier versions of it")
}

/// Reads the versions of one record for one caller.
private struct VersionReader {
    let request: VersionsRequest
    let schema: InstalledSchema
    let zone: ZoneRow
    let db: Database
    private let callerID: Int64?

    init(request: VersionsRequest, schema: InstalledSchema, zone: ZoneRow, in db: Database) throws {
        self.request = request
        self.schema = schema
        self.zone = zone
        self.db = db
        callerID = try request.caller.user.flatMap { try Rows(db: db).userID($0) }
    }

    func mayRead(_ row: RecordRow) -> Bool {
        guard let type = schema.byID[row.typeID] else { return false }
        let isCreator = callerID == row.createdBy
        return Permissions(of: request.caller, in: type.definition, of: request.zone.database, isCreator: isCreator)
            .contains(.read)
    }

    func read(_ take: (RecordVersion) -> Bool) throws -> (count: Int, hasMore: Bool) {
        if let before = request.before, before.incarnation != UInt64(bitPattern: zone.incarnation) {
            return (0, false)
        }
        let before = request.before.map { Int64(clamping: $0.sequence) } ?? .max
        let limit = min(max(Int(request.limit), 1), Limits.recordsPerPageMax)
        var (count, hasMore, names) = (0, false, UserNameCache(db))
        try db.forEach(
            """
            SELECT v.id, v.name, v.type, v.sequence, v.created_at, v.created_by, v.modified_at, v.modified_by, 0,
                v.body, v.replaced_at, v.replaced_by, v.deleted
            FROM record_version v WHERE v.zone = ? AND v.name = ? AND v.sequence < ? ORDER BY v.sequence DESC
            """, zone.id, request.recordName, before
        ) { columns in
            let row = RecordRow(columns)
            guard let type = schema.byID[row.typeID], mayRead(row) else { return true }
            let version = RecordVersion(
                record: try row.record(type: type, zone: zone, names: &names),
                replaced: Stamp(timestamp: columns.integer(10), user: try names.name(columns.integer(11))),
                isDeletion: columns.integer(12) != 0)
            hasMore = count == limit || !take(version)
            if !hasMore { count += 1 }
            return !hasMore
        }
        return (count, hasMore)
    }
}
