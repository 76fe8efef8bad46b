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

extension Stamp: WireMessage {
    package static var blank: Self { Stamp(timestamp: 0, user: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &timestamp)
        try wire.required(2, &user)
    }
}

extension ChangeTag: WireMessage {
    package static var blank: Self { ChangeTag(incarnation: 0, sequence: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &incarnation)
        try wire.required(2, &sequence)
    }
}

extension Record: WireMessage {
    package static var blank: Self {
        Record(name: "", type: "", changeTag: .blank, created: .blank, modified: .blank, fields: Fields())
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &name)
        try wire.required(2, &type)
        try wire.required(3, &changeTag)
        try wire.required(4, &created)
        try wire.required(5, &modified)
        try wire.required(6, &fields)
    }
}
