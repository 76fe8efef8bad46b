package import Wire

/// The field numbers of values. A value is one field, its number says the type; so the same numbers serve alone, as
/// members of a list and (moved up by `Fields.valueBase`) in a record's body.
private enum Tag {
    static let string = 1
    static let int64 = 2
    static let double = 3
    static let timestamp = 4
    static let bytes = 5
    static let location = 6
    static let reference = 7
    static let list = 8
    static let sealed = 9
    static let asset = 10
    /// Inside a list: the type of its members, so that an empty list keeps it.
    static let element = 15
}

extension FieldValue: WireCodable {
    /// One field: 1 string, 2 int64, 3 double, 4 timestamp, 5 bytes, 6 location, 7 reference, 8 list, 9 sealed,
    /// 10 asset.
    package func encode(to writer: inout WireWriter) {
        encode(to: &writer, base: 0)
    }

    /// Reads the first value there is; fields of unknown numbers are skipped.
    /// - Throws: `WireError` if there is no value, or a malformed one; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var value: FieldValue?
        while let field = try reader.nextField() {
            if let known = try FieldValue(tag: field, from: &reader) { value = known } else { try reader.skip() }
        }
        self = try required(value, 0)
    }

    /// Writes the value as one field whose number is its tag plus `base`.
    func encode(to writer: inout WireWriter, base: Int) {
        switch self {
        case .string(let text): writer.field(base + Tag.string, text)
        case .int64(let number): writer.field(base + Tag.int64, signed: number)
        case .double(let number): writer.field(base + Tag.double, double: number)
        case .timestamp(let milliseconds): writer.field(base + Tag.timestamp, signed: milliseconds)
        case .bytes(let bytes): writer.field(base + Tag.bytes, bytes)
        case .location(let location): writer.field(base + Tag.location) { location.encode(to: &$0) }
        case .reference(let reference): writer.field(base + Tag.reference) { reference.encode(to: &$0) }
        case .asset(let asset): writer.field(base + Tag.asset) { asset.encode(to: &$0) }
        case .list(let element, let members):
            writer.field(base + Tag.list) { nested in
                nested.field(Tag.element, element.wireCode)
                for member in members { member.encode(to: &nested, base: 0) }
            }
        case .sealed(let bytes): writer.field(base + Tag.sealed, bytes)
        case .encrypted: preconditionFailure("an encrypted value is sealed before it is encoded")
        }
    }

    /// Reads the current field as the value that its tag (without base) says; nil, with nothing read, if it is
    /// unknown.
    init?(tag: Int, from reader: inout WireReader) throws(WireError) {
        if tag == Tag.list {
            var nested = try reader.nested()
            self = try Self.list(from: &nested)
        } else if tag == Tag.sealed {
            self = .sealed(try reader.array())
        } else if let scalar = try Self.scalar(tag: tag, from: &reader) {
            self = scalar
        } else {
            return nil
        }
    }

    private static func scalar(tag: Int, from reader: inout WireReader) throws(WireError) -> FieldValue? {
        switch tag {
        case Tag.string: .string(try reader.string())
        case Tag.int64: .int64(try reader.signed())
        case Tag.double: .double(try reader.double())
        case Tag.timestamp: .timestamp(try reader.signed())
        case Tag.bytes: .bytes(try reader.array())
        case Tag.location: .location(try reader.message())
        case Tag.reference: .reference(try reader.message())
        case Tag.asset: .asset(try reader.message())
        default: nil
        }
    }

    /// Members are scalars only, so that hostile bytes cannot nest without end.
    private static func list(from reader: inout WireReader) throws(WireError) -> FieldValue {
        var element: ScalarType?
        var members: [FieldValue] = []
        while let field = try reader.nextField() {
            if field == Tag.element {
                // A second type would not be that of the members before it.
                guard element == nil else { throw .invalidValue(field: field) }
                element = try reader.code(field)
            } else if let member = try scalar(tag: field, from: &reader) {
                guard member.type.scalar == element else { throw .invalidValue(field: field) }
                members.append(member)
            } else {
                // A member of a type from the future cannot be left out silently.
                throw field <= Tag.sealed ? .invalidValue(field: field) : .unknownField(field)
            }
        }
        return .list(try required(element, Tag.element), members)
    }
}

extension Location: WireMessage {
    package static var blank: Self { Location(latitude: .nan, longitude: .nan) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &latitude)
        try wire.required(2, &longitude)
        try wire.field(3, &horizontalAccuracy)
        try wire.field(4, &verticalAccuracy)
        try wire.field(5, &altitude)
        try wire.field(6, &speed)
        try wire.field(7, &course)
        try wire.field(8, &timestamp)
    }
}

extension Reference: WireMessage {
    package static var blank: Self { Reference(recordName: "", zone: nil, action: .none) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &recordName)
        try wire.field(2, &zone)
        try wire.field(3, &writtenAction)
    }

    /// `none` is left out.
    private var writtenAction: WireCode<Action>? {
        get { action == .none ? nil : action.code }
        set { action = newValue?.value ?? .none }
    }
}
