package import Wire

extension Schema: WireCodable {
    /// 1 roles, 2 record types.
    package func encode(to writer: inout WireWriter) {
        for role in roles { writer.field(1, role) }
        for type in types { writer.field(2) { type.encode(to: &$0) } }
    }

    /// - Throws: `WireError` if a type is malformed; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var roles: [String] = []
        var types: [RecordType] = []
        while let field = try reader.nextField() {
            switch field {
            case 1: roles.append(try reader.string())
            case 2: types.append(try reader.message())
            default: try reader.skip()
            }
        }
        self.init(roles: roles, types: types)
    }
}

extension RecordType: WireCodable {
    /// 1 name, 2 fields, 3 grants.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, name)
        for field in fields { writer.field(2) { field.encode(to: &$0) } }
        for grant in grants { writer.field(3) { grant.encode(to: &$0) } }
    }

    /// - Throws: `WireError` if a part is missing or malformed; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var name: String?
        var fields: [FieldDefinition] = []
        var grants: [Grant] = []
        while let field = try reader.nextField() {
            switch field {
            case 1: name = try reader.string()
            case 2: fields.append(try reader.message())
            case 3: grants.append(try reader.message())
            default: try reader.skip()
            }
        }
        self.init(name: try required(name, 1), fields: fields, grants: grants)
    }
}

extension FieldDefinition: WireCodable {
    /// 1 name, 2 type, 3 index options.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, name)
        writer.field(2) { type.encode(to: &$0) }
        if !indexes.isEmpty { writer.field(3, UInt64(indexes.rawValue)) }
    }

    /// - Throws: `WireError` if a part is missing or out of range; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var name: String?
        var type: FieldType?
        var indexes: IndexOptions = []
        while let field = try reader.nextField() {
            switch field {
            case 1: name = try reader.string()
            case 2: type = try reader.message()
            case 3: indexes = IndexOptions(rawValue: UInt8(try reader.options(UInt64(IndexOptions.all.rawValue))))
            default: try reader.skip()
            }
        }
        self.init(name: try required(name, 1), type: try required(type, 2), indexes: indexes)
    }
}

extension FieldType: WireCodable {
    /// 1 scalar, 2 list, 3 encrypted, 4 preferred; what is false or nil is left out.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, scalar.wireCode)
        if isList { writer.field(2, true) }
        if isEncrypted { writer.field(3, true) }
        if let preferred { writer.field(4, preferred.wireCode) }
    }

    /// - Throws: `WireError` if the scalar is missing or a code unknown; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var scalar: ScalarType?
        var isList = false
        var isEncrypted = false
        var preferred: ScalarType?
        while let field = try reader.nextField() {
            switch field {
            case 1: scalar = try reader.code(field)
            case 2: isList = try reader.bool()
            case 3: isEncrypted = try reader.bool()
            case 4:
                let code: ScalarType = try reader.code(field)
                preferred = code
            default: try reader.skip()
            }
        }
        self.init(try required(scalar, 1), isList: isList, isEncrypted: isEncrypted, preferred: preferred)
    }
}

extension Grant: WireCodable {
    /// 1 role, 2 permissions.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, role)
        writer.field(2, UInt64(permissions.rawValue))
    }

    /// - Throws: `WireError` if a part is missing or out of range; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var role: String?
        var permissions: Permissions?
        while let field = try reader.nextField() {
            switch field {
            case 1: role = try reader.string()
            case 2: permissions = Permissions(rawValue: UInt8(try reader.options(UInt64(Permissions.all.rawValue))))
            default: try reader.skip()
            }
        }
        self.init(role: try required(role, 1), permissions: try required(permissions, 2))
    }
}

// How many bytes the forms above have, counted without writing them: a schema is measured whenever it grows.

extension Schema {
    /// The bytes of its encoding.
    package var encodedSize: Int {
        roles.reduce(0) { $0 + fieldSize($1.utf8.count) } + types.reduce(0) { $0 + fieldSize($1.encodedSize) }
    }
}

extension RecordType {
    fileprivate var encodedSize: Int {
        fieldSize(name.utf8.count) + fields.reduce(0) { $0 + fieldSize($1.encodedSize) }
            + grants.reduce(0) { $0 + fieldSize($1.encodedSize) }
    }
}

extension FieldDefinition {
    fileprivate var encodedSize: Int {
        fieldSize(name.utf8.count) + fieldSize(type.encodedSize)
            + (indexes.isEmpty ? 0 : 1 + varintSize(Int(indexes.rawValue)))
    }
}

extension FieldType {
    /// Every code of a scalar is one byte.
    fileprivate var encodedSize: Int { 2 + (isList ? 2 : 0) + (isEncrypted ? 2 : 0) + (preferred == nil ? 0 : 2) }
}

extension Grant {
    fileprivate var encodedSize: Int { fieldSize(role.utf8.count) + 1 + varintSize(Int(permissions.rawValue)) }
}

/// The bytes of a field with so many bytes of content, under a number below 16.
private func fieldSize(_ count: Int) -> Int { 1 + varintSize(count) + count }

private func varintSize(_ value: Int) -> Int { max(1, (Int.bitWidth - value.leadingZeroBitCount + 6) / 7) }
