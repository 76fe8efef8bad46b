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
}

/// One record type of a schema.
package struct RecordType: Hashable, Sendable {
    package var name: String
    /// Sorted by name in byte order, system fields among them where they carry an index.
    package var fields: [FieldDefinition]
    package var grants: [Grant]

    package init(name: String, fields: [FieldDefinition] = [], grants: [Grant] = []) {
        self.name = name
        self.fields = fields.sorted { $0.name.precedes($1.name) }
        self.grants = grants
    }

    package func field(named name: String) -> FieldDefinition? {
        fields.first { $0.name == name }
    }
}

/// One field of a record type.
package struct FieldDefinition: Hashable, Sendable {
    package var name: String
    package var type: FieldType
    package var indexes: IndexOptions

    package init(name: String, type: FieldType, indexes: IndexOptions = []) {
        self.name = name
        self.type = type
        self.indexes = indexes
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
