import Foundation
import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

/// What the tables hold, made comparable.
extension Fixture {
    /// All index rows, as text in a fixed order; the indexes go by type, field and purpose.
    func rowsOfIndexes() throws -> [String] {
        try queue.read { db in
            let name = "i.type || ' ' || i.name || ' ' || i.purpose || ' ' || i.shape"
            return try ["index_number", "index_bytes"].flatMap { table in
                try String.fetchAll(
                    db,
                    sql: """
                        SELECT \(name) || ' ' || x.zone || ' ' || hex(x.value) || ' ' || x.record
                        FROM \(table) x JOIN field_index i ON i.id = x.field ORDER BY 1
                        """)
            }
                + String.fetchAll(
                    db,
                    sql: """
                        SELECT \(name) || ' ' || x.zone || ' missing ' || x.record
                        FROM index_missing x JOIN field_index i ON i.id = x.field ORDER BY 1
                        """)
        }
    }

    /// Drops every index and adds it again, so that all rows are made from the records alone.
    func remakeIndexes(rows: UInt64 = 500) throws {
        let found = try queue.read {
            try Row.fetchOne($0, sql: "SELECT version, generation, body FROM schema ORDER BY id LIMIT 1")
        }
        let row = try #require(found)
        let version = UInt64(bitPattern: row[0] as Int64)
        let generation = UInt64(bitPattern: row[1] as Int64)
        let schema = try Schema(decoding: Array(row[2] as Data))
        var bare = schema
        for type in bare.types.indices {
            for field in bare.types[type].fields.indices { bare.types[type].fields[field].indexes = [] }
        }
        #expect(try apply(Self.install(version + 1, bare, generation: generation)) == .schemaInstalled)
        try maintain(rows: rows)
        #expect(try rowsOfIndexes().isEmpty)
        for table in ["index_number", "index_bytes", "index_missing"] {
            #expect(try count("SELECT count(*) FROM \(table)") == 0)
        }
        #expect(try apply(Self.install(version + 2, schema, generation: generation)) == .schemaInstalled)
        try maintain(rows: rows)
    }

    /// What rows of `idempotency` take, from the rows alone.
    func rememberedBytes() throws -> [DatabaseKey: Int64] {
        var bytes: [DatabaseKey: Int64] = [:]
        for key in [Self.publicData, Self.annsData] {
            bytes[key] = try queue.read {
                try Int64.fetchOne(
                    $0,
                    sql: """
                        SELECT coalesce(sum(length(i.outcome) + length(CAST(i.caller AS BLOB)) + 128), 0)
                        FROM idempotency i JOIN database d ON d.id = i.database WHERE d.scope = ? AND d.owner = ?
                        """, arguments: [key.scope == .public ? 1 : 2, key.owner])
            }
        }
        return bytes
    }

    /// How many records' fields name each file: as counted, and counted again from all records that are stored.
    func assetCounts() throws -> (counted: [AssetReference: Int64], again: [AssetReference: Int64]) {
        let (rows, bodies) = try queue.read { db in
            (
                try Row.fetchAll(db, sql: "SELECT sha256, size, named FROM asset WHERE named > 0"),
                try Data.fetchAll(
                    db, sql: "SELECT body FROM record WHERE deleted = 0 UNION ALL SELECT body FROM record_version")
            )
        }
        var (counted, again): ([AssetReference: Int64], [AssetReference: Int64]) = ([:], [:])
        for row in rows {
            counted[AssetReference(sha256: Array(row[0] as Data), size: UInt64(row[1] as Int64))] = row[2] as Int64
        }
        for body in bodies { for asset in try decodeBody(Array(body)).assets { again[asset, default: 0] += 1 } }
        return (counted, again)
    }

    /// Checks that the edges are those that the bodies call for.
    func expectEdges() throws {
        let (bodies, edges) = try queue.read { db in
            (
                try Row.fetchAll(db, sql: "SELECT zone, id, body FROM record WHERE deleted = 0"),
                try String.fetchAll(
                    db, sql: "SELECT zone || ' ' || hex(target) || ' ' || action || ' ' || source FROM edge")
            )
        }
        var expected: Set<String> = []
        for row in bodies {
            for field in try decodeBody(Array(row[2] as Data)).all {
                let members: [FieldValue] =
                    if case .list(_, let members) = field.value { members } else { [field.value] }
                for case .reference(let reference) in members where reference.action != .none {
                    let hex = reference.recordName.utf8.map { String(format: "%02X", $0) }.joined()
                    let action = reference.action == .deleteSelf ? 1 : 2
                    expected.insert("\(row[0] as Int64) \(hex) \(action) \(row[1] as Int64)")
                }
            }
        }
        #expect(Set(edges) == expected)
        #expect(edges.count == expected.count)
    }
}
