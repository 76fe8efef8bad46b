package import Wire

/// The compact form of a record's fields: what a row of the record table and a command hold.
package func encodeBody(_ fields: Fields) -> [UInt8] {
    fields.encoded()
}

/// Reads what `encodeBody` wrote.
/// - Throws: `WireError` if the bytes are malformed or of a newer version; a retry does not help.
package func decodeBody(_ bytes: some Collection<UInt8>) throws(WireError) -> Fields {
    try Fields(decoding: bytes)
}

extension Fields: WireCodable {
    private static let version: UInt64 = 1
    private static let versionTag = 1
    private static let nameTag = 2
    private static let valueBase = 16

    /// 1 version, then for each field 2 its name and, right after it, its value with number 16 plus the value's tag:
    /// no nesting, so scalars cost no allocation.
    package func encode(to writer: inout WireWriter) {
        writer.field(Self.versionTag, Self.version)
        for field in all {
            writer.field(Self.nameTag, field.name)
            field.value.encode(to: &writer, base: Self.valueBase)
        }
    }

    /// - Throws: `WireError` if the version is unknown, a name has no value, a value no name, or names in disorder;
    ///   a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var fields: [Field] = []
        var name: String?
        var version: UInt64?
        while let field = try reader.nextField() {
            switch field {
            case Self.versionTag: version = try reader.unsigned()
            case Self.nameTag:
                guard name == nil else { throw .missingField(Self.valueBase) }
                name = try reader.string()
            default:
                guard field > Self.valueBase, let value = try FieldValue(tag: field - Self.valueBase, from: &reader)
                else {
                    try reader.skip()
                    continue
                }
                let name = try required(exchange(&name, nil), Self.nameTag)
                if let last = fields.last, !last.name.precedes(name) { throw .invalidValue(field: Self.nameTag) }
                fields.append(Field(name: name, value: value))
            }
        }
        guard name == nil else { throw .missingField(Self.valueBase) }
        guard try required(version, Self.versionTag) == Self.version else {
            throw .unknownValue(field: Self.versionTag)
        }
        self.init(sorted: fields)
    }
}

private func exchange<Value>(_ place: inout Value, _ new: Value) -> Value {
    defer { place = new }
    return place
}

extension Stamp: WireCodable {
    /// 1 timestamp, 2 user.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, signed: timestamp)
        writer.field(2, user)
    }

    /// - Throws: `WireError` if a part is missing; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var timestamp: Int64?
        var user: String?
        while let field = try reader.nextField() {
            switch field {
            case 1: timestamp = try reader.signed()
            case 2: user = try reader.string()
            default: try reader.skip()
            }
        }
        self.init(timestamp: try required(timestamp, 1), user: try required(user, 2))
    }
}

extension ChangeTag: WireCodable {
    /// 1 incarnation, 2 sequence.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, incarnation)
        writer.field(2, sequence)
    }

    /// - Throws: `WireError` if a part is missing; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var incarnation: UInt64?
        var sequence: UInt64?
        while let field = try reader.nextField() {
            switch field {
            case 1: incarnation = try reader.unsigned()
            case 2: sequence = try reader.unsigned()
            default: try reader.skip()
            }
        }
        self.init(incarnation: try required(incarnation, 1), sequence: try required(sequence, 2))
    }
}

extension Record: WireCodable {
    /// 1 name, 2 type, 3 change tag, 4 created, 5 modified, 6 fields.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, name)
        writer.field(2, type)
        writer.field(3) { changeTag.encode(to: &$0) }
        writer.field(4) { created.encode(to: &$0) }
        writer.field(5) { modified.encode(to: &$0) }
        writer.field(6) { fields.encode(to: &$0) }
    }

    /// - Throws: `WireError` if a part is missing or malformed; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var name: String?
        var type: String?
        var changeTag: ChangeTag?
        var created: Stamp?
        var modified: Stamp?
        var fields: Fields?
        while let field = try reader.nextField() {
            switch field {
            case 1: name = try reader.string()
            case 2: type = try reader.string()
            case 3: changeTag = try reader.message()
            case 4: created = try reader.message()
            case 5: modified = try reader.message()
            case 6: fields = try reader.message()
            default: try reader.skip()
            }
        }
        self.init(
            name: try required(name, 1), type: try required(type, 2), changeTag: try required(changeTag, 3),
            created: try required(created, 4), modified: try required(modified, 5), fields: try required(fields, 6))
    }
}
