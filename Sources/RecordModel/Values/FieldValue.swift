package import Wire

/// A value of a record's field, as CloudKit has them. There is no null: a field without a value is absent.
package enum FieldValue: Hashable, Sendable, WireCodable {
    case string(String)
    case int64(Int64)
    case double(Double)
    /// Milliseconds since 1970-01-01 UTC; may be negative.
    case timestamp(Int64)
    case bytes([UInt8])
    case location(Location)
    case reference(Reference)
    case asset(AssetReference)
    /// Values of one scalar type, in order. An empty list keeps its type where the schema knows it.
    case list(ScalarType, [FieldValue])
    /// An encrypted field's value in the clear, as a client sends and gets it. It is sealed before a command is made of
    /// it, so it is never in the log or on disk, and has no binary form.
    indirect case encrypted(FieldValue)
    /// What sealing made of an encrypted field's value: all that the store ever sees of it.
    case sealed([UInt8])

    /// The type this value has.
    package var type: FieldType {
        switch self {
        case .string: FieldType(.string)
        case .int64: FieldType(.int64)
        case .double: FieldType(.double)
        case .timestamp: FieldType(.timestamp)
        case .bytes: FieldType(.bytes)
        case .location: FieldType(.location)
        case .reference: FieldType(.reference)
        case .asset: FieldType(.asset)
        case .list(let element, _): FieldType(element, isList: true)
        case .encrypted(let value):
            FieldType(value.type.scalar, isList: value.type.isList, isEncrypted: true)
        case .sealed: FieldType(.bytes, isEncrypted: true)
        }
    }

    /// What the value counts for in a record's size, in bytes: text in UTF-8, bytes as they are, 8 for a number or a
    /// timestamp, 56 for a location, a reference its names, 40 for an asset (whose bytes have a quota of their own), a
    /// list the sum, a sealed value its sealed form.
    package var sizeBytes: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .int64, .double, .timestamp: 8
        case .bytes(let bytes): bytes.count
        case .location: 56
        case .reference(let reference): reference.recordName.utf8.count + (reference.zone?.name.utf8.count ?? 0)
        case .asset: AssetReference.countedBytes
        case .list(_, let elements): elements.reduce(0) { $0 + $1.sizeBytes }
        case .encrypted(let value): value.sizeBytes
        case .sealed(let bytes): bytes.count
        }
    }

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

/// A place on the earth, as CloudKit stores it.
package struct Location: Hashable, Sendable, WireMessage {
    /// Degrees, -90 to 90.
    package var latitude: Double
    /// Degrees, -180 to 180.
    package var longitude: Double
    /// Metres.
    package var horizontalAccuracy: Double?
    /// Metres.
    package var verticalAccuracy: Double?
    /// Metres.
    package var altitude: Double?
    /// Metres a second.
    package var speed: Double?
    /// Degrees from north.
    package var course: Double?
    /// Milliseconds since 1970.
    package var timestamp: Int64?

    package init(latitude: Double, longitude: Double) {
        self.latitude = latitude
        self.longitude = longitude
    }

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

/// A pointer to a record of the same database.
package struct Reference: Hashable, Sendable, WireMessage {
    /// The target's name, unique within the target's zone.
    package var recordName: String
    /// The zone of the record; nil is the zone of the record that holds the reference.
    package var zone: ZoneID?
    /// What a deletion of the target does to the holder; always `none` in queries and in a record's parent.
    package var action: Action

    package init(recordName: String, zone: ZoneID? = nil, action: Action = .none) {
        self.recordName = recordName
        self.zone = zone
        self.action = action
    }

    /// What the deletion of the target does to the record that holds the reference.
    package enum Action: String, Hashable, Sendable {
        case none = "NONE"
        case deleteSelf = "DELETE_SELF"
        case validate = "VALIDATE"
    }

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

/// The type of a single value. The raw value is CloudKit's name for it.
package enum ScalarType: String, Hashable, Sendable, CaseIterable {
    case string = "STRING"
    case int64 = "INT64"
    case double = "DOUBLE"
    case timestamp = "TIMESTAMP"
    case bytes = "BYTES"
    case location = "LOCATION"
    case reference = "REFERENCE"
    case asset = "ASSET"
    /// A number whose kind the schema leaves open; only the schema language knows it.
    case number = "NUMBER"
}

/// The type of a field: a scalar or a list of scalars, encrypted or not.
package struct FieldType: Hashable, Sendable, WireMessage {
    /// The type of the value, or of each member of a list.
    package var scalar: ScalarType
    /// Whether values are lists, whose members all have the type `scalar`.
    package var isList: Bool
    /// Whether values are sealed before they get into the log; such a field has no index.
    package var isEncrypted: Bool
    /// For `number`: the kind that values take, `int64` or `double`, once it was stated.
    package var preferred: ScalarType?

    package init(_ scalar: ScalarType, isList: Bool = false, isEncrypted: Bool = false, preferred: ScalarType? = nil) {
        self.scalar = scalar
        self.isList = isList
        self.isEncrypted = isEncrypted
        self.preferred = preferred
    }

    /// The type without a preferred kind of numbers.
    package var unsettled: FieldType { FieldType(scalar, isList: isList, isEncrypted: isEncrypted) }

    /// The name that Web Services give it, such as `STRING` or `INT64_LIST`.
    package var webName: String {
        let base = scalar == .asset ? "ASSETID" : scalar.rawValue
        return isList ? base + "_LIST" : base
    }

    package static var blank: Self { FieldType(.string, isList: false, isEncrypted: false, preferred: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &scalar.code)
        try wire.field(2, &isList, unless: false)
        try wire.field(3, &isEncrypted, unless: false)
        try wire.field(4, &preferred.code)
    }
}

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
