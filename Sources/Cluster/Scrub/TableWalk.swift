import Foundation
import GRDB
import Wire

/// A bounded part of a walk over everything that a group's database replicates, in an order that is the same on every
/// replica.
struct TableWalk {
    /// Rows and bytes of one part; the row that reaches the bytes is the last.
    static let rowsMax = 2_000
    static let bytesMax = 4 << 20

    /// What belongs to the replica and not to the state: what was applied in which transactions, and the hashes
    /// themselves.
    private static let ownTables = ["applied", "meta", "state_hash"]

    /// Folds the rows after the cursor into a hash.
    /// - Parameter cursor: where the last part ended; empty at the beginning.
    /// - Returns: where this part ended; empty at the end of the last table.
    /// - Throws: `DatabaseError`; `WireError` where the bytes are no cursor.
    static func fold(
        after cursor: [UInt8], in db: Database, into fold: (UnsafeRawBufferPointer) -> Void
    ) throws -> [UInt8] {
        var position = cursor.isEmpty ? nil : try Position(decoding: cursor)
        var rowsLeft = rowsMax
        var bytesLeft = bytesMax
        for source in try sources(in: db) where source.name >= position?.source ?? "" {
            let after = position?.source == source.name ? position?.key : nil
            position = nil
            let rows = try source.rows(after: after, rowsMax: rowsLeft, in: db)
            while let row = try rows.next() {
                var writer = WireWriter(capacity: 256)
                writer.field(1, source.name)
                for (_, value) in row { writer.scrubbed(value) }
                writer.bytes.withUnsafeBytes(fold)
                rowsLeft -= 1
                bytesLeft -= writer.bytes.count
                if rowsLeft == 0 || bytesLeft <= 0 {
                    let key = source.key.indices.map { row[$0] as DatabaseValue }
                    return Position(source: source.name, key: key).encoded()
                }
            }
        }
        return []
    }

    /// Every table, and every index of it, since a lookup by an index sees only what that holds; by name.
    private static func sources(in db: Database) throws -> [Source] {
        let tables = try String.fetchAll(
            try db.cachedStatement(
                sql:
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"))
        var sources: [Source] = []
        for table in tables where !ownTables.contains(table) {
            sources.append(Source(table: table, index: nil, key: try db.primaryKey(table).columns))
            let indexes = try Row.fetchAll(
                try db.cachedStatement(
                    sql: "SELECT name FROM pragma_index_list(?) WHERE partial = 0 AND origin <> 'pk' ORDER BY name"),
                arguments: [table])
            for index in indexes {
                let name: String = index[0]
                let columns = try Row.fetchAll(
                    try db.cachedStatement(sql: "SELECT name FROM pragma_index_xinfo(?) ORDER BY seqno"),
                    arguments: [name])
                // The row number has no name there.
                sources.append(Source(table: table, index: name, key: columns.map { $0[0] ?? "rowid" }))
            }
        }
        return sources.sorted { $0.name < $1.name }
    }

    /// A table or an index, as a list of rows in one order.
    private struct Source {
        var table: String
        var index: String?
        /// The columns that order the rows, and tell each from all others.
        var key: [String]

        var name: String { index.map { "\(table)/\($0)" } ?? table }

        /// The rows after a key; an index's rows are read from it alone.
        func rows(after: [DatabaseValue]?, rowsMax: Int, in db: Database) throws -> RowCursor {
            let columns = key.map { "\"\($0)\"" }.joined(separator: ", ")
            let marks = key.map { _ in "?" }.joined(separator: ", ")
            let condition = after == nil ? "" : "WHERE (\(columns)) > (\(marks))"
            let place = index.map { "\"\(table)\" INDEXED BY \"\($0)\"" } ?? "\"\(table)\""
            // The key first, so that it is in the row even where it is the hidden row number.
            let statement = try db.cachedStatement(
                sql: """
                    SELECT \(columns)\(index == nil ? ", *" : "") FROM \(place) \(condition) ORDER BY \(columns) LIMIT ?
                    """)
            return try Row.fetchCursor(
                statement, arguments: StatementArguments((after ?? []) + [rowsMax.databaseValue]))
        }
    }

    /// The last row of a part.
    private struct Position: WireCodable {
        var source: String
        var key: [DatabaseValue]

        init(source: String, key: [DatabaseValue]) {
            self.source = source
            self.key = key
        }

        func encode(to writer: inout WireWriter) {
            writer.field(1, source)
            for value in key { writer.field(2) { $0.scrubbed(value) } }
        }

        init(from reader: inout WireReader) throws(WireError) {
            self.init(source: "", key: [])
            while let field = try reader.nextField() {
                switch field {
                case 1: source = try reader.string()
                case 2:
                    var nested = try reader.nested()
                    key.append(try nested.scrubbed())
                default: try reader.skip()
                }
            }
        }
    }
}

extension WireWriter {
    /// A value such that different ones have different bytes.
    fileprivate mutating func scrubbed(_ value: DatabaseValue) {
        switch value.storage {
        case .null: field(2, true)
        case .int64(let number): field(3, signed: number)
        case .double(let number): field(4, double: number)
        case .string(let text): field(5, text)
        case .blob(let data): field(6, [UInt8](data))
        }
    }
}

extension WireReader {
    fileprivate mutating func scrubbed() throws(WireError) -> DatabaseValue {
        guard let field = try nextField() else { throw .missingField(2) }
        switch field {
        case 2:
            _ = try bool()
            return .null
        case 3: return try signed().databaseValue
        case 4: return try double().databaseValue
        case 5: return try string().databaseValue
        case 6: return Data(try array()).databaseValue
        default: throw .invalidValue(field: field)
        }
    }
}
