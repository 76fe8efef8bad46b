/// A value of a record's field, as CloudKit has them. There is no null: a field without a value is absent.
package enum FieldValue: Hashable, Sendable {
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
}

/// A place on the earth, as CloudKit stores it.
package struct Location: Hashable, Sendable {
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
}

/// A pointer to a record of the same database.
package struct Reference: Hashable, Sendable {
    package var recordName: String
    /// The zone of the record; nil is the zone of the record that holds the reference.
    package var zone: ZoneID?
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
}
