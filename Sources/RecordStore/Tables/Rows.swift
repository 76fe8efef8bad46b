import Authorization
import GRDB
import RecordModel

/// A row of the record table.
struct RecordRow {
    var id: Int64
    var name: String
    var typeID: Int64
    var sequence: Int64
    var createdAt: Int64
    var createdBy: Int64
    var modifiedAt: Int64
    var modifiedBy: Int64
    var isDeleted: Bool
    /// Empty where deleted.
    var body: [UInt8]

    /// What the record counts for; the row must have been read with its body.
    /// - Parameter assets: those in the body.
    func size(_ assets: [AssetReference]) -> QuotaAmounts {
        isDeleted
            ? .zero
            : QuotaAmounts(bytes: Int64(name.utf8.count + body.count), records: 1, assets: assets.countedBytes)
    }

    /// The columns in the order that `init` reads them.
    static let columns = headColumns + ", r.body"
    /// The same without the body, for rows of which there may be thousands.
    static let lightColumns = headColumns + ", NULL"
    private static let headColumns =
        "r.id, r.name, r.type, r.sequence, r.created_at, r.created_by, r.modified_at, r.modified_by, r.deleted"

    init(_ row: SQLRow, at start: Int32 = 0) {
        id = row.integer(start)
        name = row.text(start + 1)
        typeID = row.integer(start + 2)
        sequence = row.integer(start + 3)
        createdAt = row.integer(start + 4)
        createdBy = row.integer(start + 5)
        modifiedAt = row.integer(start + 6)
        modifiedBy = row.integer(start + 7)
        isDeleted = row.integer(start + 8) != 0
        body = row.bytes(start + 9)
    }

    /// The record as callers see it: without what the installed schema has no place for.
    /// - Throws: `WireError` if the body is damaged, which is corruption.
    func record(type: InstalledType, zone: ZoneRow, names: inout UserNameCache) throws -> RecordModel.Record {
        RecordModel.Record(
            name: name, type: type.definition.name, changeTag: zone.changeTag(sequence),
            created: Stamp(timestamp: createdAt, user: try names.name(createdBy)),
            modified: Stamp(timestamp: modifiedAt, user: try names.name(modifiedBy)), fields: try type.fields(of: self))
    }
}

/// A row of the zone table.
struct ZoneRow: Hashable {
    var id: Int64
    var incarnation: Int64
    var sequence: Int64
    var state: Int64
    /// The greatest sequence of a tombstone that was purged.
    var floor: Int64 = 0
    /// How many tombstones the zone has.
    var tombstones: Int64 = 0
    /// The database's sequence at the zone's last change; 0 in default zones.
    var changedAt: Int64 = 0
    /// What the zone's records count for; zero once the zone is deleted.
    var used = QuotaAmounts()

    /// The columns in the order that `init` reads them.
    static let columns = """
        z.id, z.incarnation, z.sequence, z.state, z.floor, z.tombstones, z.changed_at, z.bytes, z.records, \
        coalesce((SELECT a.bytes FROM asset_zone a WHERE a.zone = z.id), 0)
        """
    /// How many they are.
    static let columnCount: Int32 = 10

    /// What holds of every row, whatever the zone's life.
    func check() throws(InvariantViolation) {
        try Invariant.check(incarnation > 0, "zone \(id) has incarnation \(incarnation)")
        try Invariant.check((0...2).contains(state), "zone \(id) is in state \(state)")
        try Invariant.check(
            floor >= 0 && floor <= sequence, "zone \(id) forgot changes up to \(floor), and is at \(sequence)")
        try Invariant.check(
            tombstones >= 0 && tombstones <= sequence, "zone \(id) has \(tombstones) tombstones at \(sequence)")
        try Invariant.check(QuotaAmounts.zero.fits(in: used), "zone \(id) holds \(used)")
        // Each row of the zone has a sequence of its own.
        try Invariant.check(
            used.records + tombstones <= sequence,
            "zone \(id) has \(used.records) records and \(tombstones) tombstones at \(sequence)")
        try Invariant.check(changedAt >= 0, "zone \(id) changed at \(changedAt)")
    }

    func changeTag(_ sequence: Int64) -> ChangeTag {
        ChangeTag(incarnation: UInt64(bitPattern: incarnation), sequence: UInt64(bitPattern: sequence))
    }

    func described(as name: String) -> ZoneState {
        ZoneState(
            name: name, incarnation: UInt64(bitPattern: incarnation), sequence: UInt64(bitPattern: sequence))
    }
}

extension ZoneRow {
    init(_ row: SQLRow, at start: Int32 = 0) {
        self.init(
            id: row.integer(start), incarnation: row.integer(start + 1), sequence: row.integer(start + 2),
            state: row.integer(start + 3), floor: row.integer(start + 4), tombstones: row.integer(start + 5),
            changedAt: row.integer(start + 6),
            used: QuotaAmounts(
                bytes: row.integer(start + 7), records: row.integer(start + 8), assets: row.integer(start + 9)))
    }
}

/// A row of the schema table, but for its body.
struct SchemaRow: Hashable {
    var id: Int64
    /// 0 where no schema was installed yet.
    var version: UInt64
    var generation: UInt64
    /// Grows with each change of the indexes' states and of stray fields.
    var revision: Int64

    static let columns = "id, version, generation, revision"
}

extension SchemaRow {
    init(_ row: SQLRow) {
        self.init(
            id: row.integer(0), version: UInt64(bitPattern: row.integer(1)),
            generation: UInt64(bitPattern: row.integer(2)), revision: row.integer(3))
    }
}

/// A row of the database table.
struct DatabaseRow: Hashable {
    var id: Int64
    var incarnation: Int64
    /// Counts the changes of custom zones.
    var sequence: Int64
    /// How many custom zones live.
    var zones: Int64
    /// The sum over the live zones.
    var used = QuotaAmounts()
    /// The greatest version of the container's limits that something was credited under.
    var epoch: UInt64 = 0
    /// What the ledger gave and what was given back over all times; never below 0, nor the second above the first.
    var received = QuotaAmounts()
    var returned = QuotaAmounts()
    /// Of what shards had more than the cap of the version when the ledger was asked last.
    var overdrawn = QuotaParts()

    /// What holds of every row.
    func check() throws(InvariantViolation) {
        try Invariant.check(sequence >= 0 && zones >= 0, "database \(id) is at \(sequence), with \(zones) zones")
        try Invariant.check(QuotaAmounts.zero.fits(in: used), "database \(id) holds \(used)")
        try Invariant.check(
            QuotaAmounts.zero.fits(in: returned) && returned.fits(in: received),
            "database \(id) received \(received) and gave back \(returned)")
    }

    static let columns = """
        d.id, d.incarnation, d.sequence, d.zones, d.bytes, d.records, d.epoch, d.received_bytes, d.received_records, \
        d.returned_bytes, d.returned_records, d.overdrawn, \
        coalesce((SELECT a.bytes FROM asset_database a WHERE a.database = d.id), 0), \
        coalesce((SELECT a.received FROM asset_database a WHERE a.database = d.id), 0), \
        coalesce((SELECT a.returned FROM asset_database a WHERE a.database = d.id), 0)
        """
    /// How many they are.
    static let columnCount: Int32 = 15
}

extension DatabaseRow {
    init(_ row: SQLRow) {
        self.init(
            id: row.integer(0), incarnation: row.integer(1), sequence: row.integer(2), zones: row.integer(3),
            used: QuotaAmounts(bytes: row.integer(4), records: row.integer(5), assets: row.integer(12)),
            epoch: UInt64(bitPattern: row.integer(6)),
            received: QuotaAmounts(bytes: row.integer(7), records: row.integer(8), assets: row.integer(13)),
            returned: QuotaAmounts(bytes: row.integer(9), records: row.integer(10), assets: row.integer(14)),
            overdrawn: QuotaParts(rawValue: row.integer(11)))
    }
}

/// Finds rows by their keys on one connection. Does not write.
struct Rows {
    let db: Database

    func schema(_ database: DatabaseKey) throws -> SchemaRow? {
        try schema(container: database.container, environment: database.environment)
    }

    func schema(container: String, environment: Environment) throws -> SchemaRow? {
        try db.first(Self.findSchema, container, environment.column) { SchemaRow($0) }
    }

    private static let findSchema = "SELECT \(SchemaRow.columns) FROM schema WHERE container = ? AND environment = ?"

    func schema(id: Int64) throws -> SchemaRow? {
        try db.first(Self.findSchemaByID, id) { SchemaRow($0) }
    }

    private static let findSchemaByID = "SELECT \(SchemaRow.columns) FROM schema WHERE id = ?"

    /// The least incarnation of what comes to a container's environment; nil where it is the shard's.
    func incarnationFloor(schemaID: Int64) throws -> Int64? {
        try db.first("SELECT incarnation FROM schema_floor WHERE schema = ?", schemaID) { $0.integer(0) }
    }

    func databaseID(_ database: DatabaseKey, schemaID: Int64) throws -> Int64? {
        try self.database(database, schemaID: schemaID)?.id
    }

    func database(_ database: DatabaseKey, schemaID: Int64) throws -> DatabaseRow? {
        try db.first(Self.findDatabase, schemaID, database.scope.column, database.owner) { DatabaseRow($0) }
    }

    private static let findDatabase =
        "SELECT \(DatabaseRow.columns) FROM database d WHERE d.schema = ? AND d.scope = ? AND d.owner = ?"

    /// The row of the name's greatest incarnation, whatever its life.
    func latestZone(databaseID: Int64, name: String) throws -> ZoneRow? {
        try db.first(Self.findLatestZone, databaseID, name) { ZoneRow($0) }
    }

    private static let findLatestZone = """
        SELECT \(ZoneRow.columns) FROM zone z WHERE z.database = ? AND z.name = ? ORDER BY z.incarnation DESC LIMIT 1
        """

    func record(zoneID: Int64, name: String) throws -> RecordRow? {
        try db.first(Self.findRecord, zoneID, name) { RecordRow($0) }
    }

    private static let findRecord = "SELECT \(RecordRow.columns) FROM record r WHERE r.zone = ? AND r.name = ?"

    func userID(_ name: String) throws -> Int64? {
        try db.first("SELECT id FROM user WHERE name = ?", name) { $0.integer(0) }
    }

    func userName(_ id: Int64) throws -> String? {
        try db.first("SELECT name FROM user WHERE id = ?", id) { $0.text(0) }
    }
}

extension Environment {
    /// The number in the tables.
    var column: Int64 { self == .development ? 1 : 2 }

    init?(column: Int64) {
        guard let found = Environment.allCases.first(where: { $0.column == column }) else { return nil }
        self = found
    }
}

extension Scope {
    /// The number in the tables.
    var column: Int64 {
        switch self {
        case .public: 1
        case .private: 2
        case .shared: 3
        }
    }

    init?(column: Int64) {
        guard let found = Scope.allCases.first(where: { $0.column == column }) else { return nil }
        self = found
    }
}

/// User record names by their numbers, remembered for the length of one transaction or read.
struct UserNameCache {
    /// The number that stands for an anonymous caller.
    static let anonymous: Int64 = 0
    private let rows: Rows
    private var names: [Int64: String] = [Self.anonymous: Caller.anonymousName]

    init(_ db: Database) { rows = Rows(db: db) }

    mutating func name(_ id: Int64) throws -> String {
        if let known = names[id] { return known }
        let name = try rows.userName(id) ?? Caller.anonymousName
        names[id] = name
        return name
    }

    mutating func remember(_ name: String, id: Int64) { names[id] = name }
}

extension Rows {
    /// Removes a record's row.
    func delete(_ id: Int64) throws {
        try db.run("DELETE FROM record WHERE id = ?", id)
        try db.checkOneRow("the removal of record \(id)")
    }

    func rowAndZone(_ id: Int64) throws -> (row: RecordRow, zoneID: Int64)? {
        try db.first(Self.findRowAndZone, id) { (RecordRow($0), $0.integer(10)) }
    }

    private static let findRowAndZone = "SELECT \(RecordRow.columns), r.zone FROM record r WHERE r.id = ?"
}
