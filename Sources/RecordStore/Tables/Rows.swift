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

    /// The columns in the order that `init` reads them.
    static let columns =
        "r.id, r.name, r.type, r.sequence, r.created_at, r.created_by, r.modified_at, r.modified_by, r.deleted, r.body"

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
}

/// A row of the zone table.
struct ZoneRow {
    var id: Int64
    var incarnation: Int64
    var sequence: Int64
    var state: Int64

    func changeTag(_ sequence: Int64) -> ChangeTag {
        ChangeTag(incarnation: UInt64(bitPattern: incarnation), sequence: UInt64(bitPattern: sequence))
    }

    func described(as name: String) -> ZoneState {
        ZoneState(
            name: name, incarnation: UInt64(bitPattern: incarnation), sequence: UInt64(bitPattern: sequence))
    }
}

/// Finds rows by their keys on one connection; makes none.
struct Rows {
    let db: Database

    func schema(_ database: DatabaseKey) throws -> (id: Int64, version: UInt64)? {
        try SQLStatement(cached: "SELECT id, version FROM schema WHERE container = ? AND environment = ?", in: db)
            .first(.text(database.container), .integer(database.environment.column)) {
                ($0.integer(0), UInt64(bitPattern: $0.integer(1)))
            }
    }

    func databaseID(_ database: DatabaseKey, schemaID: Int64) throws -> Int64? {
        try SQLStatement(cached: "SELECT id FROM database WHERE schema = ? AND scope = ? AND owner = ?", in: db)
            .first(.integer(schemaID), .integer(database.scope.column), .text(database.owner)) { $0.integer(0) }
    }

    /// The row of the name's greatest incarnation, whatever its life.
    func latestZone(databaseID: Int64, name: String) throws -> ZoneRow? {
        try SQLStatement(
            cached: """
                SELECT id, incarnation, sequence, state FROM zone WHERE database = ? AND name = ?
                ORDER BY incarnation DESC LIMIT 1
                """, in: db
        ).first(.integer(databaseID), .text(name)) {
            ZoneRow(id: $0.integer(0), incarnation: $0.integer(1), sequence: $0.integer(2), state: $0.integer(3))
        }
    }

    func record(zoneID: Int64, name: String) throws -> RecordRow? {
        try SQLStatement(cached: Self.findRecord, in: db)
            .first(.integer(zoneID), .text(name)) { RecordRow($0) }
    }

    private static let findRecord = "SELECT \(RecordRow.columns) FROM record r WHERE r.zone = ? AND r.name = ?"

    func userID(_ name: String) throws -> Int64? {
        try SQLStatement(cached: "SELECT id FROM user WHERE name = ?", in: db).first(.text(name)) { $0.integer(0) }
    }

    func userName(_ id: Int64) throws -> String? {
        try SQLStatement(cached: "SELECT name FROM user WHERE id = ?", in: db).first(.integer(id)) { $0.text(0) }
    }
}

extension Environment {
    /// The number in the tables.
    var column: Int64 { self == .development ? 1 : 2 }
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
}
