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

    /// 0 to 1.
    var progress: Double {
        if state == IndexLife.ready { return 1 }
        return total > 0 ? min(1, Double(done) / Double(total)) : 0
    }
}

/// The rows of a schema's live indexes by what they are of, so that each design finds its own without a search: a
/// schema may have a hundred thousand indexes.
struct IndexRowTable {
    private struct Key: Hashable {
        var typeID: Int64
        var name: String
        var purpose: Int64
        var shape: String
    }

    private var rows: [Key: [IndexRow]] = [:]
    /// Rows that were looked at so far.
    private(set) var lookedAt = 0

    /// - Parameter all: by id.
    init(_ all: [IndexRow]) {
        rows.reserveCapacity(all.count)
        for row in all where row.state != IndexLife.dropped {
            lookedAt += 1
            let key = Key(typeID: row.typeID, name: row.name, purpose: row.purpose, shape: row.shape)
            rows[key, default: []].append(row)
        }
    }

    /// Takes out the oldest row that is the index of a design; nil if there is none.
    mutating func take(_ design: IndexDesign, of typeID: Int64) -> IndexRow? {
        let key = Key(typeID: typeID, name: design.name, purpose: design.purpose.rawValue, shape: design.shape)
        guard let found = rows[key] else { return nil }
        lookedAt += 1
        rows[key] = found.count > 1 ? Array(found.dropFirst()) : nil
        return found.first
    }

    /// What was not taken out, by id.
    var rest: [IndexRow] { rows.values.flatMap(\.self).sorted { $0.id < $1.id } }
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
        var rows = IndexRowTable(try IndexRow.all(schemaID: schemaID, in: db))
        let definitions = Dictionary(schema.types.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var byName: [String: InstalledType] = [:]
        for (id, name) in typeIDs {
            guard let definition = definitions[name] else { continue }
            let indexes = IndexDesign.all(of: definition).compactMap { design in
                rows.take(design, of: id).map { row in
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
