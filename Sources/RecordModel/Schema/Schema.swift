package import Wire

/// The record types and roles of one container's environment.
package struct Schema: Hashable, Sendable, WireMessage {
    /// Sorted by name.
    package var roles: [String]
    /// Sorted by name.
    package var types: [RecordType]

    package init(roles: [String] = [], types: [RecordType] = []) {
        self.roles = roles.sorted { $0.precedes($1) }
        self.types = types.sorted { $0.name.precedes($1.name) }
    }

    /// The record type of this name, by linear search; nil if the schema has no such type.
    package func type(named name: String) -> RecordType? {
        types.first { $0.name == name }
    }

    /// This schema as the version that follows an earlier one, each type and field with the version that it came with.
    package func dated(_ version: UInt64, after earlier: Schema) -> Schema {
        let known = Dictionary(earlier.types.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var dated = self
        for place in types.indices { dated.types[place].date(version, after: known[types[place].name]) }
        return dated
    }

    package static var blank: Self { Schema(roles: [], types: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &roles)
        try wire.field(2, &types)
    }

    package mutating func check() { self = Schema(roles: roles, types: types) }

    /// The bytes of its encoding; without the versions in which types and fields came, which only the directory knows.
    package var encodedSize: Int {
        roles.reduce(0) { $0 + fieldSize($1.utf8.count) } + types.reduce(0) { $0 + $1.sizeInSchema }
    }
}

/// One record type of a schema.
package struct RecordType: Hashable, Sendable, WireMessage {
    /// The type's name, unique within its schema.
    package var name: String
    /// Sorted by name in byte order, system fields among them where they carry an index.
    package var fields: [FieldDefinition]
    /// What roles may do with the type's records; only a normalized schema has one grant a role, sorted by role.
    package var grants: [Grant]
    /// The version of the schema in which the type came, or came again; see `FieldDefinition.addedIn`.
    package var addedIn: UInt64

    /// Brings the fields in order.
    package init(name: String, fields: [FieldDefinition] = [], grants: [Grant] = [], addedIn: UInt64 = 0) {
        self.name = name
        self.fields = fields.sorted { $0.name.precedes($1.name) }
        self.grants = grants
        self.addedIn = addedIn
    }

    /// The field of this name, by linear search; nil if it is not listed, as a system field without an index is not.
    package func field(named name: String) -> FieldDefinition? {
        fields.first { $0.name == name }
    }

    /// Its fields by their names; of two with one name the first.
    var fieldsByName: [String: FieldDefinition] {
        Dictionary(fields.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    fileprivate mutating func date(_ version: UInt64, after earlier: RecordType?) {
        let known = earlier?.fieldsByName ?? [:]
        addedIn = earlier?.addedIn ?? version
        for place in fields.indices {
            let field = known[fields[place].name]
            fields[place].addedIn =
                field?.type.unsettled == fields[place].type.unsettled ? field?.addedIn ?? 0 : version
        }
    }

    package static var blank: Self { RecordType(name: "", fields: [], grants: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &name)
        try wire.field(2, &fields)
        try wire.field(3, &grants)
        try wire.field(4, &addedIn, unless: 0)
    }

    package mutating func check() {
        self = RecordType(name: name, fields: fields, grants: grants, addedIn: addedIn)
    }

    private var encodedSize: Int {
        fieldSize(name.utf8.count) + fields.reduce(0) { $0 + fieldSize($1.encodedSize) }
            + grants.reduce(0) { $0 + fieldSize($1.encodedSize) }
    }

    /// The bytes that the type adds to a schema.
    var sizeInSchema: Int { fieldSize(encodedSize) }
}

/// One field of a record type.
package struct FieldDefinition: Hashable, Sendable, WireMessage {
    /// The field's name, unique within its record type; names of system fields begin with `___`.
    package var name: String
    /// The type of its values; a change of schema can only add the preferred kind of a `NUMBER`.
    package var type: FieldType
    /// What the field's index serves; empty if the field has no index.
    package var indexes: IndexOptions
    /// The schema version that added the field, or added it again after it was dropped: shards with an earlier version
    /// hold values of another field of this name. Set by the directory from `FeatureLevel.datedFields` on; else 0, as
    /// in schemas that were not installed.
    package var addedIn: UInt64

    /// A field of a schema that is not installed, if `addedIn` is left out.
    package init(name: String, type: FieldType, indexes: IndexOptions = [], addedIn: UInt64 = 0) {
        self.name = name
        self.type = type
        self.indexes = indexes
        self.addedIn = addedIn
    }

    /// Whether the name begins with `___`, as only the names of system fields do.
    package var isSystem: Bool { name.hasPrefix("___") }

    package static var blank: Self { FieldDefinition(name: "", type: .blank) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &name)
        try wire.required(2, &type)
        try wire.field(3, &indexes, unless: [])
        try wire.field(4, &addedIn, unless: 0)
    }

    fileprivate var encodedSize: Int {
        fieldSize(name.utf8.count) + fieldSize(type.encodedSize)
            + (indexes.isEmpty ? 0 : 1 + varintSize(Int(indexes.rawValue)))
    }
}

/// What a field's index serves.
package struct IndexOptions: OptionSet, Hashable, Sendable, WireOptions {
    /// The bits as they are on disk; a bit never changes its meaning.
    package var rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    /// Equality, membership, "all records of the type" on `___recordID`.
    package static let queryable = IndexOptions(rawValue: 1)
    /// Ranges and sort keys.
    package static let sortable = IndexOptions(rawValue: 2)
    /// Full text.
    package static let searchable = IndexOptions(rawValue: 4)
    /// All that this build knows.
    static let all: IndexOptions = [.queryable, .sortable, .searchable]

    package static var known: Self { .all }
}

/// What a role may do with records of a type in the public database.
package struct Grant: Hashable, Sendable, WireMessage {
    /// One of `SchemaRules.systemRoles`, or a role that the schema defines.
    package var role: String
    /// What the role may do; a grant of nothing has no effect.
    package var permissions: Permissions

    package init(role: String, permissions: Permissions) {
        self.role = role
        self.permissions = permissions
    }

    package static var blank: Self { Grant(role: "", permissions: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &role)
        try wire.required(2, &permissions)
    }

    fileprivate var encodedSize: Int { fieldSize(role.utf8.count) + 1 + varintSize(Int(permissions.rawValue)) }
}

/// Create, read and write (update and delete), each on its own.
package struct Permissions: OptionSet, Hashable, Sendable, WireOptions {
    /// The bits as they are on disk; a bit never changes its meaning.
    package var rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    /// Make records of the type.
    package static let create = Permissions(rawValue: 1)
    /// Get records of the type, by name or by query.
    package static let read = Permissions(rawValue: 2)
    /// Update and delete records of the type.
    package static let write = Permissions(rawValue: 4)
    /// All that this build knows.
    static let all: Permissions = [.create, .read, .write]

    package static var known: Self { .all }
}

/// The fields that every record type has without stating them. `parent` is the one that clients set; it is kept among a
/// record's fields.
package enum SystemField: String, CaseIterable, Sendable {
    case createTime = "___createTime"
    case createdBy = "___createdBy"
    case etag = "___etag"
    case modTime = "___modTime"
    case modifiedBy = "___modifiedBy"
    case parent = "___parent"
    case recordID = "___recordID"

    /// The type that the system gives the field; a schema that states another one is refused.
    package var type: FieldType {
        switch self {
        case .createTime, .modTime: FieldType(.timestamp)
        case .createdBy, .modifiedBy, .parent, .recordID: FieldType(.reference)
        case .etag: FieldType(.string)
        }
    }
}

/// The fields of a record type by name: a linear search for few lookups, a table for many, so that a request does
/// not cost its fields times those of the type.
struct FieldTable {
    let type: RecordType
    private let table: [String: Int]?
    private static let searchedMax = 16

    /// - Parameter count: how many fields will be asked for.
    init(_ type: RecordType, asking count: Int) {
        self.type = type
        guard count > Self.searchedMax, type.fields.count > Self.searchedMax else {
            table = nil
            return
        }
        var table: [String: Int] = [:]
        table.reserveCapacity(type.fields.count)
        for (place, field) in type.fields.enumerated() { table[field.name] = place }
        self.table = table
    }

    subscript(name: String) -> FieldDefinition? {
        guard let table else { return type.field(named: name) }
        return table[name].map { type.fields[$0] }
    }
}

// `encodedSize` is how long a form is, without writing it: a schema is measured whenever it grows.

extension FieldType {
    /// Every code of a scalar is one byte.
    fileprivate var encodedSize: Int { 2 + (isList ? 2 : 0) + (isEncrypted ? 2 : 0) + (preferred == nil ? 0 : 2) }
}

/// The size of a field with `count` bytes of content, under a number below 16.
private func fieldSize(_ count: Int) -> Int { 1 + varintSize(count) + count }

private func varintSize(_ value: Int) -> Int { max(1, (Int.bitWidth - value.leadingZeroBitCount + 6) / 7) }
