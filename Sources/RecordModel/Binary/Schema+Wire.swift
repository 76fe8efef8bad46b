package import Wire

extension Schema: WireMessage {
    package static var blank: Self { Schema(roles: [], types: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &roles)
        try wire.field(2, &types)
    }

    package mutating func check() { self = Schema(roles: roles, types: types) }
}

extension RecordType: WireMessage {
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
}

extension FieldDefinition: WireMessage {
    package static var blank: Self { FieldDefinition(name: "", type: .blank) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &name)
        try wire.required(2, &type)
        try wire.field(3, &indexes, unless: [])
        try wire.field(4, &addedIn, unless: 0)
    }
}

extension FieldType: WireMessage {
    package static var blank: Self { FieldType(.string, isList: false, isEncrypted: false, preferred: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &scalar.code)
        try wire.field(2, &isList, unless: false)
        try wire.field(3, &isEncrypted, unless: false)
        try wire.field(4, &preferred.code)
    }
}

extension Grant: WireMessage {
    package static var blank: Self { Grant(role: "", permissions: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &role)
        try wire.required(2, &permissions)
    }
}

extension IndexOptions: WireOptions {
    package static var known: Self { .all }
}

extension Permissions: WireOptions {
    package static var known: Self { .all }
}

// How many bytes the forms above have, counted without writing them: a schema is measured whenever it grows.

extension Schema {
    /// The bytes of its encoding; without the versions in which types and fields came, which only the directory knows.
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
