package import GRDB
package import RecordModel

/// How far one index of a container environment is on one shard.
package struct IndexState: Hashable, Sendable {
    /// The record type's name.
    package var type: String
    /// The field's name; system fields go by their schema names.
    package var field: String
    /// What the index is for, in the schema language's words: one or more of `QUERYABLE`, `SEARCHABLE` and `SORTABLE`,
    /// separated by spaces.
    package var purpose: String
    package var isReady: Bool
    /// Rows of the shard that were looked at, of those there were when the index was made; both 0 where it was ready at
    /// once.
    package var done: UInt64
    package var total: UInt64

    package init(type: String, field: String, purpose: String, isReady: Bool, done: UInt64, total: UInt64) {
        self.type = type
        self.field = field
        self.purpose = purpose
        self.isReady = isReady
        self.done = done
        self.total = total
    }
}

extension RecordTables {
    /// The indexes of a container environment on this shard, where it has at least that version of the schema.
    package func indexStates(
        container: String, environment: Environment, schemaVersion: UInt64, in db: Database
    ) throws -> ReadOutcome<[IndexState]> {
        let installed = try Rows(db: db).schema(container: container, environment: environment)?.version ?? 0
        guard installed >= schemaVersion else { return .needsSchema(installed: installed) }
        return .found(try indexStates(container: container, environment: environment, in: db))
    }

    /// The indexes of a container environment on this shard, by type and field; none where no schema is installed.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package func indexStates(
        container: String, environment: Environment, in db: Database
    ) throws -> [IndexState] {
        guard let row = try Rows(db: db).schema(container: container, environment: environment) else { return [] }
        let schema = try installedSchema(row, in: db)
        let rows = try IndexRow.all(schemaID: row.id, in: db)
        return schema.byName.values.sorted { $0.definition.name < $1.definition.name }.flatMap { type in
            type.indexes.sorted { ($0.name, $0.purpose.rawValue) < ($1.name, $1.purpose.rawValue) }.map { index in
                let row = rows.first { $0.id == index.id }
                return IndexState(
                    type: type.definition.name, field: index.name, purpose: index.words, isReady: index.isReady,
                    done: UInt64(max(row?.done ?? 0, 0)), total: UInt64(max(row?.total ?? 0, 0)))
            }
        }
    }
}

extension InstalledIndex {
    /// The options of the field that the index serves.
    var words: String {
        if purpose == .tokens { return "SEARCHABLE" }
        let words = [(RecordModel.IndexOptions.queryable, "QUERYABLE"), (.sortable, "SORTABLE")]
        return words.filter { options.contains($0.0) }.map(\.1).joined(separator: " ")
    }
}
