/// The record types and roles of one container's environment.
package struct Schema: Hashable, Sendable {
    /// Sorted by name.
    package var roles: [String]
    /// Sorted by name.
    package var types: [RecordType]

    package init(roles: [String] = [], types: [RecordType] = []) {
        self.roles = roles.sorted { $0.precedes($1) }
        self.types = types.sorted { $0.name.precedes($1.name) }
    }

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
}

/// One record type of a schema.
package struct RecordType: Hashable, Sendable {
    package var name: String
    /// Sorted by name in byte order, system fields among them where they carry an index.
    package var fields: [FieldDefinition]
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

    package func field(named name: String) -> FieldDefinition? {
        fields.first { $0.name == name }
    }

    fileprivate mutating func date(_ version: UInt64, after earlier: RecordType?) {
        let known = Dictionary((earlier?.fields ?? []).map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        addedIn = earlier?.addedIn ?? version
        for place in fields.indices {
            let field = known[fields[place].name]
            fields[place].addedIn =
                field?.type.unsettled == fields[place].type.unsettled ? field?.addedIn ?? 0 : version
        }
    }
}

/// One field of a record type.
package struct FieldDefinition: Hashable, Sendable {
    package var name: String
    package var type: FieldType
    package var indexes: IndexOptions
    /// The version of the schema in which the field came, or came again after it was dropped: a shard that has an
    /// earlier version holds values of another field of this name. The directory sets it, from
    /// `FeatureLevel.datedFields` on; 0 where nobody did, and in schemas that were not installed.
    package var addedIn: UInt64

    /// A field of a schema that nobody has installed where `addedIn` is left out.
    package init(name: String, type: FieldType, indexes: IndexOptions = [], addedIn: UInt64 = 0) {
        self.name = name
        self.type = type
        self.indexes = indexes
        self.addedIn = addedIn
    }

    package var isSystem: Bool { name.hasPrefix("___") }
}

/// What a field's index serves.
package struct IndexOptions: OptionSet, Hashable, Sendable {
    package var rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    /// Equality, membership, "all records of the type" on `___recordID`.
    package static let queryable = IndexOptions(rawValue: 1)
    /// Ranges and sort keys.
    package static let sortable = IndexOptions(rawValue: 2)
    /// Full text.
    package static let searchable = IndexOptions(rawValue: 4)
    /// Those that this build knows.
    static let all: IndexOptions = [.queryable, .sortable, .searchable]
}

/// What a role may do with records of a type in the public database.
package struct Grant: Hashable, Sendable {
    package var role: String
    package var permissions: Permissions

    package init(role: String, permissions: Permissions) {
        self.role = role
        self.permissions = permissions
    }
}

/// Create, read and write (update and delete), each on its own.
package struct Permissions: OptionSet, Hashable, Sendable {
    package var rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package static let create = Permissions(rawValue: 1)
    package static let read = Permissions(rawValue: 2)
    package static let write = Permissions(rawValue: 4)
    /// Those that this build knows.
    static let all: Permissions = [.create, .read, .write]
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

    package var type: FieldType {
        switch self {
        case .createTime, .modTime: FieldType(.timestamp)
        case .createdBy, .modifiedBy, .parent, .recordID: FieldType(.reference)
        case .etag: FieldType(.string)
        }
    }
}
