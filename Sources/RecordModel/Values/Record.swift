package import Wire

/// The fields of a record, sorted by name in byte order; no name occurs twice and no value is null.
package struct Fields: Hashable, Sendable, WireCodable {
    /// One field that has a value.
    package struct Field: Hashable, Sendable {
        /// The field's name in the schema; `___parent` for the record's parent.
        package var name: String
        /// The value; that of an encrypted field is `.sealed` in commands and on disk.
        package var value: FieldValue
        package init(name: String, value: FieldValue) {
            self.name = name
            self.value = value
        }
    }

    /// All fields, in byte order of their names.
    package private(set) var all: [Field]

    package init() { all = [] }

    /// Sorts the fields; of two with one name the later wins.
    package init(_ fields: [Field]) {
        all = []
        all.reserveCapacity(fields.count)
        for field in fields { self[field.name] = field.value }
    }

    /// Fields that are sorted by name, no name twice, which the caller has made sure of.
    init(sorted fields: [Field]) { all = fields }

    /// The value of the field of this name, by binary search; nil if it has no value. Setting nil removes the field.
    package subscript(name: String) -> FieldValue? {
        get {
            let position = lowerBound(name)
            return isHere(name, position) ? all[position].value : nil
        }
        set {
            let position = lowerBound(name)
            switch (newValue, isHere(name, position)) {
            case (let value?, true): all[position].value = value
            case (let value?, false): all.insert(Field(name: name, value: value), at: position)
            case (nil, true): all.remove(at: position)
            case (nil, false): break
            }
        }
    }

    /// Names and values together, in bytes: what the limit of 1 MB is held against.
    package var sizeBytes: Int { all.reduce(0) { $0 + $1.name.utf8.count + $1.value.sizeBytes } }

    /// Whether the field at the lower bound of a name has that name.
    private func isHere(_ name: String, _ position: Int) -> Bool {
        position < all.count && !name.precedes(all[position].name)
    }

    private func lowerBound(_ name: String) -> Int { all.prefixEnd { $0.name.precedes(name) } }

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

/// Who did something to a record, and when.
package struct Stamp: Hashable, Sendable, WireMessage {
    /// Milliseconds since 1970.
    package var timestamp: Int64
    /// The user record name.
    package var user: String

    package init(timestamp: Int64, user: String) {
        self.timestamp = timestamp
        self.user = user
    }

    package static var blank: Self { Stamp(timestamp: 0, user: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &timestamp)
        try wire.required(2, &user)
    }
}

/// A record as it is stored.
package struct Record: Hashable, Sendable, WireMessage {
    /// The record's name, unique within its zone.
    package var name: String
    /// The name of the record type, which no save changes.
    package var type: String
    /// The record's version, which every change replaces.
    package var changeTag: ChangeTag
    /// Who made the record, and when; later saves leave it as it is.
    package var created: Stamp
    /// Who saved the record last, and when; equal to `created` in a new record.
    package var modified: Stamp
    /// The fields that have values, the parent among them as `___parent`.
    package var fields: Fields

    package init(
        name: String, type: String, changeTag: ChangeTag, created: Stamp, modified: Stamp, fields: Fields
    ) {
        self.name = name
        self.type = type
        self.changeTag = changeTag
        self.created = created
        self.modified = modified
        self.fields = fields
    }

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

/// The version of a record: the life of its zone and the zone's counter when the record last changed. Clients compare
/// it for equality only.
package struct ChangeTag: Hashable, Sendable, CustomStringConvertible, WireMessage {
    /// The life of the zone; greater after the zone was deleted and made again, or restored.
    package var incarnation: UInt64
    /// The zone's counter, which grows by one for each changed record.
    package var sequence: UInt64

    package init(incarnation: UInt64, sequence: UInt64) {
        self.incarnation = incarnation
        self.sequence = sequence
    }

    /// Reads `description` back; nil if the text is no change tag of ours.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let incarnation = UInt64(parts[0], radix: 36),
            let sequence = UInt64(parts[1], radix: 36)
        else { return nil }
        self.init(incarnation: incarnation, sequence: sequence)
        guard description == text else { return nil }
    }

    /// Both numbers in base 36, such as `1.2s`.
    package var description: String { String(incarnation, radix: 36) + "." + String(sequence, radix: 36) }

    package static var blank: Self { ChangeTag(incarnation: 0, sequence: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &incarnation)
        try wire.required(2, &sequence)
    }
}

/// The compact form of a record's fields: what a row of the record table and a command hold.
package func encodeBody(_ fields: Fields) -> [UInt8] {
    fields.encoded()
}

/// Reads what `encodeBody` wrote.
/// - Throws: `WireError` if the bytes are malformed or of a newer version; a retry does not help.
package func decodeBody(_ bytes: some Collection<UInt8>) throws(WireError) -> Fields {
    try Fields(decoding: bytes)
}

private func exchange<Value>(_ place: inout Value, _ new: Value) -> Value {
    defer { place = new }
    return place
}
