import GRDB
import RecordModel
import Wire

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

/// What an index of a field is to be, by the schema alone.
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

    /// The indexes that a field calls for; none where its options mean nothing for its type.
    static func all(of field: FieldDefinition) -> [IndexDesign] {
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
    /// 0 to 1: how much of what was there when the index was made has its rows.
    let progress: Double

    init(id: Int64, design: IndexDesign, isReady: Bool, progress: Double) {
        self.id = id
        name = design.name
        system = design.system
        type = design.type
        purpose = design.purpose
        indexClass = design.indexClass
        options = design.options
        self.isReady = isReady
        self.progress = isReady ? 1 : progress
    }
}
