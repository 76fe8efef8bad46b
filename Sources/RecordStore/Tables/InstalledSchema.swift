import GRDB
import RecordModel
import Wire

/// One container environment's schema as a shard holds it, with the integers that stand for its types and fields.
///
/// Immutable for one version, so that it can be shared between connections.
struct InstalledSchema: Sendable {
    let version: UInt64
    let byName: [String: InstalledType]
    let byID: [Int64: InstalledType]
}

/// A record type of an installed schema.
final class InstalledType: Sendable {
    let id: Int64
    let definition: RecordType
    /// The fields that records may hold, by name.
    let fields: [String: FieldDefinition]
    /// The indexed fields, by field id.
    let indexes: [InstalledIndex]

    init(id: Int64, definition: RecordType, fieldIDs: [String: Int64]) {
        self.id = id
        self.definition = definition
        fields = Dictionary(
            definition.fields.lazy.filter { !$0.isSystem }.map { ($0.name, $0) },
            uniquingKeysWith: { first, _ in first })
        var seen: Set<String> = []
        indexes = definition.fields.compactMap { field in
            guard seen.insert(field.name).inserted, let id = fieldIDs[field.name] else { return nil }
            return InstalledIndex(id: id, field: field)
        }.sorted { $0.id < $1.id }
    }

    func index(named name: String) -> InstalledIndex? { indexes.first { $0.name == name } }
}

/// One indexed field.
struct InstalledIndex: Sendable {
    let id: Int64
    let name: String
    let system: SystemField?
    let type: FieldType
    let indexClass: IndexClass
    let options: RecordModel.IndexOptions

    /// Nil where the field has no ordinary index.
    init?(id: Int64, field: FieldDefinition) {
        let system = SystemField(rawValue: field.name)
        if field.isSystem && system == nil { return nil }
        let type = system?.type ?? field.type
        guard !field.indexes.isDisjoint(with: [.queryable, .sortable]) else { return nil }
        // A tag is compared for equality only; its index holds the sequence.
        guard let indexClass = system == .etag ? .number : IndexClass(type) else { return nil }
        self.id = id
        name = field.name
        self.system = system
        self.type = type
        self.indexClass = indexClass
        options = field.indexes
    }

    /// What the rows of the index depend on: where it changes, the rows are made anew.
    var shape: String { "\(type.settledScalar.rawValue)\(type.isList ? "_LIST" : "")" }
}

extension InstalledSchema {
    /// Reads a schema with its integers from the tables.
    static func load(schemaID: Int64, in db: Database) throws -> InstalledSchema? {
        let row = try SQLStatement(cached: "SELECT version, body FROM schema WHERE id = ?", in: db)
            .first(.integer(schemaID)) { ($0.integer(0), $0.bytes(1)) }
        guard let (version, body) = row else { return nil }
        let schema = try Schema(decoding: body)
        let typeIDs = try SQLStatement(cached: "SELECT id, name FROM record_type WHERE schema = ?", in: db)
            .all(.integer(schemaID)) { ($0.text(1), $0.integer(0)) }
        var byName: [String: InstalledType] = [:]
        for (name, id) in typeIDs {
            guard let definition = schema.type(named: name) else { continue }
            let fieldIDs = try SQLStatement(cached: "SELECT id, name FROM field WHERE type = ?", in: db)
                .all(.integer(id)) { ($0.text(1), $0.integer(0)) }
            byName[name] = InstalledType(
                id: id, definition: definition, fieldIDs: Dictionary(fieldIDs, uniquingKeysWith: { first, _ in first }))
        }
        let byID = Dictionary(byName.values.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        return InstalledSchema(version: UInt64(bitPattern: version), byName: byName, byID: byID)
    }
}
