package import GRDB
package import RecordModel
package import Wire

/// One container environment's schema as a shard holds it, with the integers that stand for its types and indexes.
///
/// Immutable for one version and revision, so that it can be shared between connections.
struct InstalledSchema: Sendable {
    let version: UInt64
    let byName: [String: InstalledType]
    let byID: [Int64: InstalledType]
    /// Whether stored numbers may be written back as another kind, which may take more bytes.
    let convertsNumbers: Bool

    init(version: UInt64, byName: [String: InstalledType], byID: [Int64: InstalledType]) {
        self.version = version
        self.byName = byName
        self.byID = byID
        convertsNumbers = byID.values.contains(where: \.hasPreferredNumbers)
    }

    static let none = InstalledSchema(version: 0, byName: [:], byID: [:])

    /// Reads a schema with its integers from the tables.
    static func load(schemaID: Int64, in db: Database) throws -> InstalledSchema? {
        let row = try db.first("SELECT version, body FROM schema WHERE id = ?", schemaID) {
            ($0.integer(0), $0.bytes(1))
        }
        guard let (version, body) = row else { return nil }
        let schema = try Schema(decoding: body)
        let typeIDs = try db.all("SELECT id, name FROM record_type WHERE schema = ?", schemaID) {
            (id: $0.integer(0), name: $0.text(1))
        }
        let stray = Set(
            try db.all(
                "SELECT DISTINCT s.type FROM record_type t JOIN stray s ON s.type = t.id WHERE t.schema = ?", schemaID
            ) { $0.integer(0) })
        var rows = IndexRowTable(try IndexRow.all(schemaID: schemaID, in: db))
        let definitions = Dictionary(schema.types.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var byName: [String: InstalledType] = [:]
        for (id, name) in typeIDs {
            guard let definition = definitions[name] else { continue }
            let indexes = IndexDesign.all(of: definition).compactMap { design in
                rows.take(design, of: id).map { row in
                    InstalledIndex(
                        id: row.id, design: design, isReady: row.state == IndexLife.ready, job: row.job)
                }
            }
            byName[name] = InstalledType(
                id: id, definition: definition, indexes: indexes, hasStrayFields: stray.contains(id))
        }
        let byID = Dictionary(byName.values.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        return InstalledSchema(version: UInt64(bitPattern: version), byName: byName, byID: byID)
    }
}

/// A record type of an installed schema.
final class InstalledType: Sendable {
    let id: Int64
    let definition: RecordType
    /// The fields that records may hold, by name.
    let fields: [String: FieldDefinition]
    /// The indexes that are there or being built, by id.
    let indexes: [InstalledIndex]
    /// Whether stored bodies may hold values that the schema has no place for.
    let hasStrayFields: Bool
    /// Whether stored bodies may hold numbers that the preferred kind of their field cannot hold, which are hidden.
    let hasPreferredNumbers: Bool
    /// Whether records may hold references that have an action.
    let hasReferences: Bool
    let hasAssets: Bool

    init(id: Int64, definition: RecordType, indexes: [InstalledIndex], hasStrayFields: Bool) {
        self.id = id
        self.definition = definition
        self.indexes = indexes.sorted { $0.id < $1.id }
        self.hasStrayFields = hasStrayFields
        fields = Dictionary(
            definition.fields.lazy.filter { !$0.isSystem }.map { ($0.name, $0) },
            uniquingKeysWith: { first, _ in first })
        hasPreferredNumbers = definition.fields.contains { !$0.isSystem && $0.type.preferred != nil }
        hasReferences = definition.fields.contains { !$0.isSystem && $0.type.scalar == .reference }
        hasAssets = definition.fields.contains { !$0.isSystem && $0.type.scalar == .asset }
    }

    func index(named name: String, for purpose: IndexPurpose = .values) -> InstalledIndex? {
        indexes.first { $0.name == name && $0.purpose == purpose }
    }

    /// The fields of a stored body that the schema has, with values of their types: all that reads and writes may see
    /// of it. What a removed field left behind is scrubbed later.
    ///
    /// Numbers from before a field's kind was settled are shown as that kind where that is exact, else not at all.
    func visible(_ fields: Fields) -> Fields {
        guard hasStrayFields || hasPreferredNumbers else { return fields }
        return Fields(fields.all.compactMap { visible($0) })
    }

    /// What a scrub leaves of a stored body: all that is visible, and numbers that cannot be shown.
    func scrubbed(_ fields: Fields) -> Fields {
        Fields(
            fields.all.compactMap { field in
                if let shown = visible(field) { return shown }
                return self.fields[field.name]?.type.isUnsettled(field.value) == true ? field : nil
            })
    }

    private func visible(_ field: Fields.Field) -> Fields.Field? {
        if field.name == SystemField.parent.rawValue { return field }
        guard let type = fields[field.name]?.type else { return nil }
        if type.accepts(field.value) { return field }
        return type.settled(field.value).map { Fields.Field(name: field.name, value: $0) }
    }

    /// A stored body's fields as reads and writes may see them.
    /// - Throws: `WireError` if the body is damaged, which is corruption.
    func fields(of row: RecordRow) throws -> Fields { visible(try decodeBody(row.body)) }
}

/// What an index's rows are.
enum IndexPurpose: Int64, Hashable, Sendable {
    /// A row for each distinct value: QUERYABLE and SORTABLE.
    case values = 1
    /// A row for each distinct word: SEARCHABLE.
    case tokens = 2
    /// A row for a location's cell: QUERYABLE and SORTABLE on LOCATION.
    case cells = 3
}

/// The design of a field's index, derived from the schema alone.
struct IndexDesign: Hashable, Sendable {
    let name: String
    let system: SystemField?
    let type: FieldType
    let purpose: IndexPurpose
    let indexClass: IndexClass
    let options: RecordModel.IndexOptions

    /// What the rows of the index depend on: where it changes, the index is another one.
    var shape: String {
        switch purpose {
        case .values: "\((type.isOpenNumber ? .number : type.settledScalar).rawValue)\(type.isList ? "_LIST" : "")"
        // The number is the version of the rows' making.
        case .tokens: "TOKENS1\(type.isList ? "_LIST" : "")"
        case .cells: "CELLS1"
        }
    }

    /// The indexes that a field calls for; empty where its options mean nothing for its type.
    static func all(of field: FieldDefinition) -> [IndexDesign] {
        if field.indexes.isEmpty { return [] }
        let system = SystemField(rawValue: field.name)
        if field.isSystem && system == nil { return [] }
        let type = system?.type ?? field.type
        if type.isEncrypted { return [] }
        func design(_ purpose: IndexPurpose, _ indexClass: IndexClass) -> IndexDesign {
            IndexDesign(
                name: field.name, system: system, type: type, purpose: purpose, indexClass: indexClass,
                options: field.indexes)
        }
        var designs: [IndexDesign] = []
        if !field.indexes.isDisjoint(with: [.queryable, .sortable]) {
            if system == .etag {
                // A tag is compared for equality only; its index holds the sequence.
                designs.append(design(.values, .number))
            } else if let indexClass = IndexClass(type) {
                designs.append(design(.values, indexClass))
            } else if type.scalar == .location && !type.isList {
                designs.append(design(.cells, .number))
            }
        }
        if field.indexes.contains(.searchable) && type.scalar == .string && system == nil {
            designs.append(design(.tokens, .bytes))
        }
        return designs
    }

    /// The indexes that a type calls for; of two fields with one name the first counts.
    static func all(of type: RecordType) -> [IndexDesign] {
        var seen: Set<String> = []
        return type.fields.flatMap { seen.insert($0.name).inserted ? all(of: $0) : [] }
    }
}

/// One index of one field.
struct InstalledIndex: Sendable {
    /// The column `field` of its rows.
    let id: Int64
    let name: String
    let system: SystemField?
    let type: FieldType
    let purpose: IndexPurpose
    let indexClass: IndexClass
    let options: RecordModel.IndexOptions
    /// Whether every record has its rows; only such an index may drive a query.
    let isReady: Bool
    /// The job that fills it; 0 once the index is ready.
    private let job: Int64

    init(id: Int64, design: IndexDesign, isReady: Bool, job: Int64 = 0) {
        self.id = id
        name = design.name
        system = design.system
        type = design.type
        purpose = design.purpose
        indexClass = design.indexClass
        options = design.options
        self.isReady = isReady
        self.job = isReady ? 0 : job
    }

    /// The greatest record id that was looked at, and the last one to look at; both 0 once the index is ready. Not kept
    /// in memory: they change with each part of the job.
    func built(in db: Database) throws -> (done: Int64, total: Int64) {
        if isReady { return (0, 0) }
        let job = try Job.find(job, in: db)
        return (job?.position ?? 0, job?.last ?? 0)
    }

    /// 0 to 1: how much of what was there when the index was made has its rows.
    func progress(in db: Database) throws -> Double {
        if isReady { return 1 }
        let (done, total) = try built(in: db)
        return total > 0 ? min(1, Double(done) / Double(total)) : 0
    }

    /// The options of the field that the index serves.
    var words: String {
        if purpose == .tokens { return "SEARCHABLE" }
        let words = [(RecordModel.IndexOptions.queryable, "QUERYABLE"), (.sortable, "SORTABLE")]
        return words.filter { options.contains($0.0) }.map(\.1).joined(separator: " ")
    }
}

/// A row of `field_index`.
struct IndexRow {
    var id: Int64
    var typeID: Int64
    var name: String
    var purpose: Int64
    var shape: String
    var state: Int64
    /// The job that fills it; 0 where none does.
    var job: Int64

    /// All of a schema's, dropped ones included, by id.
    static func all(schemaID: Int64, in db: Database) throws -> [IndexRow] {
        try db.all(
            """
            SELECT i.id, i.type, i.name, i.purpose, i.shape, i.state, i.job
            FROM record_type t JOIN field_index i ON i.type = t.id
            WHERE t.schema = ? ORDER BY i.id
            """, schemaID
        ) {
            IndexRow(
                id: $0.integer(0), typeID: $0.integer(1), name: $0.text(2), purpose: $0.integer(3), shape: $0.text(4),
                state: $0.integer(5), job: $0.integer(6))
        }
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

    /// Takes out the oldest row with a design.
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

/// How far one index of a container environment is on one shard.
package struct IndexState: Hashable, Sendable, WireMessage {
    /// The record type's name.
    package var type: String
    /// The field's name in the schema language.
    package var field: String
    /// What the index is for, in the schema language's words: one or more of `QUERYABLE`, `SEARCHABLE` and `SORTABLE`,
    /// separated by spaces.
    package var purpose: String
    /// Whether every record of the type on this shard has its rows in the index; until then it drives no query.
    package var isReady: Bool
    /// The greatest row number of a record on the shard that was looked at; 0 once the index is ready.
    package var done: UInt64
    /// The greatest row number of a record on the shard when the index was made; 0 once the index is ready.
    package var total: UInt64

    package static var blank: Self { IndexState(type: "", field: "", purpose: "", isReady: false, done: 0, total: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &type)
        try wire.field(2, &field)
        try wire.field(3, &purpose)
        try wire.field(4, &isReady, unless: false)
        try wire.field(5, &done)
        try wire.field(6, &total)
    }
}

extension IndexState {
    /// The indexes of a container environment on this shard, by type and field; empty without a schema.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package static func all(
        container: String, environment: Environment, schemaVersion: UInt64, from tables: RecordTables, in db: Database
    ) throws -> ReadOutcome<[IndexState]> {
        let installed = try Rows(db: db).schema(container: container, environment: environment)?.version ?? 0
        guard installed >= schemaVersion else { return .needsSchema(installed: installed) }
        return .found(try all(container: container, environment: environment, from: tables, in: db))
    }

    /// The indexes of a container environment on this shard, by type and field; empty without a schema.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package static func all(
        container: String, environment: Environment, from tables: RecordTables, in db: Database
    ) throws -> [IndexState] {
        guard let row = try Rows(db: db).schema(container: container, environment: environment) else { return [] }
        let schema = try tables.installedSchema(row, in: db)
        return try schema.byName.values.sorted { $0.definition.name < $1.definition.name }.flatMap { type in
            try type.indexes.sorted { ($0.name, $0.purpose.rawValue) < ($1.name, $1.purpose.rawValue) }.map { index in
                let (done, total) = try index.built(in: db)
                return IndexState(
                    type: type.definition.name, field: index.name, purpose: index.words, isReady: index.isReady,
                    done: UInt64(max(done, 0)), total: UInt64(max(total, 0)))
            }
        }
    }
}
