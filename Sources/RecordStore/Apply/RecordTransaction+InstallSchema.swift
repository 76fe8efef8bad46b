import GRDB
import RecordModel
import Wire

/// Records that one step of a backfill reads.
private let backfillStep: Int64 = 500

extension RecordTransaction {
    /// Installs a later version, drops the rows of indexes that are gone or changed, and fills new ones.
    ///
    /// The work is in proportion to the shard's records where indexes are new, and to their rows where they go.
    func installSchema(_ command: InstallSchema) throws -> RecordOutcome {
        guard command.version > 0 else {
            return .refused(ServiceError(.badRequest, "schema version 0 stands for no schema"))
        }
        let schemaID = try makeSchemaRow(container: command.container, environment: command.environment)
        let installed =
            try SQLStatement(cached: "SELECT version FROM schema WHERE id = ?", in: db)
            .first(.integer(schemaID)) { UInt64(bitPattern: $0.integer(0)) } ?? 0
        if installed == command.version { return .schemaInstalled }
        guard installed < command.version else { return .needsSchema(installed: installed) }
        try SQLStatement(cached: "UPDATE schema SET version = ?, body = ? WHERE id = ?", in: db).run(
            .integer(Int64(bitPattern: command.version)), .blob(command.schema.encoded()), .integer(schemaID))
        databases.removeAll()

        for type in command.schema.types { try makeTypeRows(type, schemaID: schemaID) }
        let schema = try tables.installedSchema(id: schemaID, version: command.version, in: db)
        let fresh = try settleIndexes(schemaID: schemaID, schema: schema)
        if !fresh.isEmpty { try backfill(fresh, schema: schema) }
        return .schemaInstalled
    }

    /// Gives numbers to a type and its fields; a number once given stays with the name.
    private func makeTypeRows(_ type: RecordType, schemaID: Int64) throws {
        let find = try SQLStatement(cached: "SELECT id FROM record_type WHERE schema = ? AND name = ?", in: db)
        var typeID = try find.first(.integer(schemaID), .text(type.name)) { $0.integer(0) }
        if typeID == nil {
            try SQLStatement(cached: "INSERT INTO record_type VALUES (NULL, ?, ?)", in: db)
                .run(.integer(schemaID), .text(type.name))
            typeID = db.lastInsertedRowID
        }
        guard let typeID else { return }
        let insert = try SQLStatement(cached: "INSERT OR IGNORE INTO field VALUES (NULL, ?, ?, '')", in: db)
        for field in type.fields { try insert.run(.integer(typeID), .text(field.name)) }
    }

    /// Brings the shapes of all indexes to the schema's, and returns the ids of those that have to be filled.
    private func settleIndexes(schemaID: Int64, schema: InstalledSchema) throws -> Set<Int64> {
        let fields = try SQLStatement(
            cached: """
                SELECT f.id, f.type, f.name, f.shape FROM field f JOIN record_type t ON t.id = f.type
                WHERE t.schema = ? ORDER BY f.id
                """, in: db
        ).all(.integer(schemaID)) { (id: $0.integer(0), typeID: $0.integer(1), name: $0.text(2), shape: $0.text(3)) }
        var fresh: Set<Int64> = []
        for field in fields {
            let index = schema.byID[field.typeID]?.indexes.first { $0.id == field.id }
            let shape = index?.shape ?? ""
            if shape == field.shape { continue }
            for table in ["index_number", "index_bytes", "index_missing"] where !field.shape.isEmpty {
                try SQLStatement(cached: "DELETE FROM \(table) WHERE field = ?", in: db).run(.integer(field.id))
            }
            try SQLStatement(cached: "UPDATE field SET shape = ? WHERE id = ?", in: db)
                .run(.text(shape), .integer(field.id))
            if index != nil { fresh.insert(field.id) }
        }
        return fresh
    }

    private func backfill(_ fresh: Set<Int64>, schema: InstalledSchema) throws {
        let indexes = schema.byID.mapValues { type in type.indexes.filter { fresh.contains($0.id) } }
        let select = try SQLStatement(
            cached: """
                SELECT \(RecordRow.columns), r.zone FROM record r WHERE r.id > ? AND r.deleted = 0 ORDER BY r.id LIMIT ?
                """, in: db)
        var last: Int64 = 0
        while true {
            let page = try select.all(.integer(last), .integer(backfillStep)) { (RecordRow($0), $0.integer(10)) }
            for (row, zoneID) in page {
                guard let wanted = indexes[row.typeID], !wanted.isEmpty else { continue }
                let record = try indexedRecord(row, fields: try decodeBody(row.body))
                for index in wanted {
                    try updateIndex(index, zoneID: zoneID, recordID: row.id, from: nil, to: record.keys(in: index))
                }
            }
            guard page.count == backfillStep, let end = page.last else { return }
            last = end.0.id
        }
    }
}
