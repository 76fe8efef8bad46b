import GRDB
import RecordModel
import Wire

/// A row of `field_index`, with the progress of the job that fills it.
struct IndexRow {
    var id: Int64
    var typeID: Int64
    var name: String
    var purpose: Int64
    var shape: String
    var state: Int64
    /// The greatest record id that was looked at, and the last one to look at.
    var done: Int64
    var total: Int64

    /// All of a schema's, dropped ones included, by id.
    static func all(schemaID: Int64, in db: Database) throws -> [IndexRow] {
        try SQLStatement(
            cached: """
                SELECT i.id, i.type, i.name, i.purpose, i.shape, i.state, coalesce(j.position, 0), coalesce(j.last, 0)
                FROM record_type t JOIN field_index i ON i.type = t.id LEFT JOIN job j ON j.id = i.job
                WHERE t.schema = ? ORDER BY i.id
                """, in: db
        ).all(.integer(schemaID)) {
            IndexRow(
                id: $0.integer(0), typeID: $0.integer(1), name: $0.text(2), purpose: $0.integer(3), shape: $0.text(4),
                state: $0.integer(5), done: $0.integer(6), total: $0.integer(7))
        }
    }

    /// Whether the row is the index of a design.
    func matches(_ design: IndexDesign) -> Bool {
        state != IndexLife.dropped && name == design.name && purpose == design.purpose.rawValue && shape == design.shape
    }

    /// 0 to 1.
    var progress: Double {
        if state == IndexLife.ready { return 1 }
        return total > 0 ? min(1, Double(done) / Double(total)) : 0
    }
}

extension InstalledSchema {
    /// Reads a schema with its integers from the tables.
    static func load(schemaID: Int64, in db: Database) throws -> InstalledSchema? {
        let row = try SQLStatement(cached: "SELECT version, body FROM schema WHERE id = ?", in: db)
            .first(.integer(schemaID)) { ($0.integer(0), $0.bytes(1)) }
        guard let (version, body) = row else { return nil }
        let schema = try Schema(decoding: body)
        let typeIDs = try SQLStatement(cached: "SELECT id, name FROM record_type WHERE schema = ?", in: db)
            .all(.integer(schemaID)) { (id: $0.integer(0), name: $0.text(1)) }
        let stray = Set(
            try SQLStatement(
                cached: "SELECT DISTINCT s.type FROM record_type t JOIN stray s ON s.type = t.id WHERE t.schema = ?",
                in: db
            ).all(.integer(schemaID)) { $0.integer(0) })
        let rows = Dictionary(grouping: try IndexRow.all(schemaID: schemaID, in: db), by: \.typeID)
        var byName: [String: InstalledType] = [:]
        for (id, name) in typeIDs {
            guard let definition = schema.type(named: name) else { continue }
            let indexes = IndexDesign.all(of: definition).compactMap { design in
                rows[id]?.first { $0.matches(design) }.map { row in
                    InstalledIndex(
                        id: row.id, design: design, isReady: row.state == IndexLife.ready, progress: row.progress)
                }
            }
            byName[name] = InstalledType(
                id: id, definition: definition, indexes: indexes, hasStrayFields: stray.contains(id))
        }
        let byID = Dictionary(byName.values.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        return InstalledSchema(version: UInt64(bitPattern: version), byName: byName, byID: byID)
    }
}
