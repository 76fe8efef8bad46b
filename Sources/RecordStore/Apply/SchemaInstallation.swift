import GRDB
import RecordModel
import Wire

/// Records on a shard up to which a new index is filled by the command that brings it.
private let filledAtOnceMax: Int64 = 500
/// Records in memory at once while a scrub is finished.
private let scrubPartRows = 1_000
/// How many times the budget one command may clean.
private let scrubPartsMax = 5

/// A schema's fields in tables, for questions about all of them at once. Of two of one name the first counts.
private struct FieldTypes {
    let byType: [String: [String: FieldType]]

    init(_ schema: Schema) {
        byType = Dictionary(
            schema.types.map { type in
                let fields = type.fields.map { ($0.name, $0.type) }
                return (type.name, Dictionary(fields, uniquingKeysWith: { first, _ in first }))
            }, uniquingKeysWith: { first, _ in first })
    }
}

private let stillCleaning = ServiceError(
    .tryAgainLater,
    "types or fields come back whose former values are still being removed: that goes on, and takes a while",
    retryAfterSeconds: 1)

extension InstalledSchema {
    /// What the schema has in common with a later one, where types and fields were dropped and came again in versions
    /// between, which this shard skips; nil where it skips none.
    fileprivate func common(with later: Schema) -> Schema? {
        let wanted = Dictionary(later.types.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var skipsAny = false
        let types = byID.values.sorted { $0.id < $1.id }.compactMap { type -> RecordType? in
            guard let next = wanted[type.definition.name] else { return type.definition }
            if next.addedIn > version {
                skipsAny = true
                return nil
            }
            let again = Set(next.fields.filter { !$0.isSystem && $0.addedIn > version }.map(\.name))
            var definition = type.definition
            definition.fields.removeAll { again.contains($0.name) }
            if definition.fields.count < type.definition.fields.count { skipsAny = true }
            return definition
        }
        return skipsAny ? Schema(types: types) : nil
    }
}

/// The installation of a schema on a shard, in a transaction.
struct SchemaInstallation: TransactionPart {
    let transaction: RecordTransaction

    /// Installs a later version; what follows for stored records is left to jobs.
    func install(_ command: InstallSchema) throws -> RecordOutcome {
        guard command.version > 0 else {
            return .refused(ServiceError(.badRequest, "schema version 0 stands for no schema"))
        }
        var row = try transaction.makeSchemaRow(container: command.container, environment: command.environment)
        guard row.version <= command.version else { return .needsSchema(installed: row.version) }
        let isReset = command.generation > row.generation
        if row.version == command.version && !isReset { return .schemaInstalled }
        var before = try transaction.tables.installedSchema(row, in: db)
        // After a reset no live record has what is being removed.
        if !isReset {
            if let between = before.common(with: command.schema) {
                try transaction.forgetRows()
                try replace(before, by: between, version: row.version, of: row)
                row = try transaction.makeSchemaRow(container: command.container, environment: command.environment)
                before = try transaction.tables.installedSchema(row, in: db)
            }
            if try bringsBackStray(command.schema, before: before, schemaID: row.id),
                try !finishScrubs(schemaID: row.id)
            {
                try transaction.forgetRows()
                return .refused(stillCleaning)
            }
        }
        try transaction.forgetRows()
        if isReset { try ZoneLives(transaction).retireAll(schemaID: row.id) }
        row.generation = max(command.generation, row.generation)
        try replace(isReset ? nil : before, by: command.schema, version: command.version, of: row)
        // What is remembered of the schema must not depend on how commands were grouped.
        try transaction.forgetRows()
        return .schemaInstalled
    }

    /// - Parameter before: what live records may hold; nil without live records.
    private func replace(_ before: InstalledSchema?, by schema: Schema, version: UInt64, of row: SchemaRow) throws {
        try Invariant.check(
            version >= row.version, "schema \(row.id) would go from version \(row.version) to \(version)")
        try db.run(
            "UPDATE schema SET version = ?, generation = ?, revision = revision + 1, body = ? WHERE id = ?", version,
            row.generation, schema.encoded(), row.id)
        try db.checkOneRow("version \(version) of schema \(row.id)")
        let lastRecord = try db.first("SELECT max(id) FROM record") { $0.integer(0) } ?? 0
        // Retired zones keep what they hold until they are reclaimed.
        if try lastRecord > 0 || !VersionTable(transaction).isEmpty(), let before {
            try addScrub(before: before, after: schema, schemaID: row.id, lastRecord: lastRecord)
        }
        try settleIndexes(schema, schemaID: row.id, lastRecord: lastRecord)
    }

    /// Whether a schema brings back what is still being removed from records.
    private func bringsBackStray(_ schema: Schema, before: InstalledSchema, schemaID: Int64) throws -> Bool {
        let stray = try db.all(
            """
            SELECT t.name, s.field FROM record_type t JOIN stray s ON s.type = t.id WHERE t.schema = ?
            ORDER BY t.id, s.field
            """, schemaID
        ) { (type: $0.text(0), field: $0.text(1)) }
        if stray.isEmpty { return false }
        let wanted = FieldTypes(schema)
        return stray.contains { typeName, fieldName in
            guard let fields = wanted.byType[typeName] else { return false }
            let known = before.byName[typeName]
            if fieldName.isEmpty { return known == nil }
            guard let type = fields[fieldName] else { return false }
            return known?.fields[fieldName]?.type != type
        }
    }

    /// Cleans records of what the schema lost so far, because values must not come back with their field.
    /// - Returns: whether all of them are clean; if not, the schema has to wait for maintenance.
    private func finishScrubs(schemaID: Int64) throws -> Bool {
        var parts = 0
        while let job = try Job.first(.scrub, subject: schemaID, in: db) {
            if transaction.level >= .boundedRows, parts == scrubPartsMax { return false }
            transaction.partBytes = 0
            _ = try ScrubJob(transaction).work(on: job, budget: scrubPartRows)
            parts += 1
        }
        return true
    }

    /// Queues the removal of values that the schema no longer has a place for.
    private func addScrub(before: InstalledSchema, after: Schema, schemaID: Int64, lastRecord: Int64) throws {
        var stray: [(type: Int64, field: String)] = []
        let wanted = FieldTypes(after)
        for type in before.byID.values.sorted(by: { $0.id < $1.id }) {
            guard let fields = wanted.byType[type.definition.name] else {
                stray.append((type.id, ""))
                continue
            }
            for field in type.fields.values.sorted(by: { $0.name < $1.name }) where fields[field.name] != field.type {
                stray.append((type.id, field.name))
            }
        }
        if stray.isEmpty { return }
        let job = try JobTable(transaction).add(.scrub, subject: schemaID, last: lastRecord)
        for (type, field) in stray {
            try db.run("INSERT OR REPLACE INTO stray VALUES (?, ?, ?)", type, field, job)
        }
    }

    /// Gives numbers to types and indexes, drops the indexes that are gone or changed, and has new ones filled.
    private func settleIndexes(_ schema: Schema, schemaID: Int64, lastRecord: Int64) throws {
        var unclaimed = IndexRowTable(try IndexRow.all(schemaID: schemaID, in: db))
        var build: Int64?
        var (seen, waiting): (Set<String>, Int64) = ([], 0)
        for type in schema.types where seen.insert(type.name).inserted {
            let (typeID, isNew) = try makeType(type.name, schemaID: schemaID)
            for design in IndexDesign.all(of: type) {
                if unclaimed.take(design, of: typeID) != nil { continue }
                // A new type has no records.
                let isReady = isNew || lastRecord == 0
                if !isReady { waiting += 1 }
                if !isReady && build == nil {
                    build = try JobTable(transaction).add(.buildIndexes, subject: schemaID, last: lastRecord)
                }
                try db.run(
                    "INSERT INTO field_index VALUES (NULL, ?, ?, ?, ?, ?, ?)", typeID, design.name,
                    design.purpose.rawValue, design.shape, isReady ? IndexLife.ready : IndexLife.building,
                    isReady ? 0 : build ?? 0)
            }
        }
        for row in unclaimed.rest {
            try db.run("UPDATE field_index SET state = 2, job = 0 WHERE id = ?", row.id)
            try db.checkOneRow("the end of index \(row.id)")
            _ = try JobTable(transaction).add(.dropIndex, subject: row.id)
        }
        if let build, try isSmall(indexes: waiting), let job = try Job.find(build, in: db) {
            transaction.partBytes = 0
            _ = try IndexJobs(transaction).build(job, budget: .max)
        }
    }

    /// Whether there are so few records that new indexes are filled at once.
    private func isSmall(indexes: Int64) throws -> Bool {
        let count = try db.first("SELECT count(*) FROM (SELECT 1 FROM record LIMIT \(filledAtOnceMax + 1))") {
            $0.integer(0)
        }
        let rows = (count ?? 0) * indexes
        return (count ?? 0) <= filledAtOnceMax && (transaction.level < .boundedRows || rows <= Limits.rowsPerRequestMax)
    }

    /// A number once given stays with the name.
    private func makeType(_ name: String, schemaID: Int64) throws -> (id: Int64, isNew: Bool) {
        let found = try db.first("SELECT id FROM record_type WHERE schema = ? AND name = ?", schemaID, name) {
            $0.integer(0)
        }
        if let found { return (found, false) }
        try db.run("INSERT INTO record_type VALUES (NULL, ?, ?)", schemaID, name)
        return (db.lastInsertedRowID, true)
    }
}
