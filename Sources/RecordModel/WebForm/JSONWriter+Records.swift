extension JSONWriter {
    /// A record, with a type on every field and every key that clients insist on.
    /// - Parameters:
    ///   - desiredKeys: the fields to write; nil is all.
    ///   - numbersAsStrings: whether INT64, DOUBLE and TIMESTAMP values are written as strings.
    ///   - zone: the record's zone, for results from more than one.
    ///   - assets: makes the dictionaries of assets; without it they have sizes only.
    package mutating func record(
        _ record: Record, desiredKeys: [String]? = nil, numbersAsStrings: Bool = false, zone: ZoneID? = nil,
        assets: AssetPresenter? = nil
    ) {
        beginObject()
        member("recordName", record.name)
        member("recordType", record.type)
        key("fields")
        fields(record.fields, DesiredKeys(desiredKeys), numbersAsStrings: numbersAsStrings, assets)
        key("pluginFields")
        object { _ in }
        member("recordChangeTag", record.changeTag.description)
        stamp("created", record.created)
        stamp("modified", record.modified)
        member("deleted", false)
        if case .reference(let parent)? = record.fields[SystemField.parent.rawValue] {
            key("parent")
            beginObject()
            member("recordName", parent.recordName)
            endObject()
        }
        if let zone {
            key("zoneID")
            zoneID(zone)
        }
        endObject()
    }

    /// What is left of a deleted record: the result of a deletion (without tag) or an entry of a change feed (with it),
    /// in which clients tell tombstones by a record type of null.
    package mutating func tombstone(recordName: String, changeTag: ChangeTag? = nil) {
        beginObject()
        member("recordName", recordName)
        if changeTag != nil { member("recordType", .null) }
        member("deleted", true)
        if let changeTag { member("recordChangeTag", changeTag.description) }
        endObject()
    }

    private mutating func fields(
        _ fields: Fields, _ desired: DesiredKeys, numbersAsStrings: Bool, _ assets: AssetPresenter?
    ) {
        beginObject()
        for field in fields.all where desired.contains(field.name) {
            // The parent has a member of its own, and what is sealed is never for a client.
            if field.name.hasPrefix("___") { continue }
            if case .sealed = field.value { continue }
            key(field.name)
            beginObject()
            key("value")
            value(field.value, numbersAsStrings: numbersAsStrings) { assets?.present($0, field.name) }
            member("type", field.value.webTypeName)
            if case .encrypted = field.value { member("isEncrypted", true) }
            endObject()
        }
        endObject()
    }

    private mutating func stamp(_ name: String, _ stamp: Stamp) {
        key(name)
        beginObject()
        member("timestamp", integer: stamp.timestamp)
        member("userRecordName", stamp.user)
        // Clients drop a stamp without a device; this is what CloudKit says of writes over Web Services.
        member("deviceID", "2")
        endObject()
    }

    /// The value of a field, without its type.
    /// - Parameter asset: makes the dictionary of an asset; without one it has the size only.
    package mutating func value(
        _ value: FieldValue, numbersAsStrings: Bool, asset: (AssetReference) -> AssetDictionary? = { _ in nil }
    ) {
        switch value {
        case .string(let text): string(text)
        case .int64(let number), .timestamp(let number):
            if numbersAsStrings { string(String(number)) } else { integer(number) }
        case .double(let number):
            if numbersAsStrings { string(number.description) } else { self.number(number) }
        case .bytes(let bytes): base64(bytes)
        case .location(let location): self.location(location)
        case .reference(let reference): self.reference(reference)
        case .asset(let file): self.asset(asset(file) ?? AssetDictionary(size: file.size))
        case .list(_, let members):
            beginArray()
            for member in members { self.value(member, numbersAsStrings: numbersAsStrings, asset: asset) }
            endArray()
        case .encrypted(let plain): self.value(plain, numbersAsStrings: numbersAsStrings, asset: asset)
        case .sealed(let bytes): base64(bytes)
        }
    }

    private mutating func location(_ location: Location) {
        beginObject()
        member("latitude", number: location.latitude)
        member("longitude", number: location.longitude)
        if let metres = location.horizontalAccuracy { member("horizontalAccuracy", number: metres) }
        if let metres = location.verticalAccuracy { member("verticalAccuracy", number: metres) }
        if let metres = location.altitude { member("altitude", number: metres) }
        if let speed = location.speed { member("speed", number: speed) }
        if let degrees = location.course { member("course", number: degrees) }
        if let milliseconds = location.timestamp { member("timestamp", integer: milliseconds) }
        endObject()
    }

    private mutating func reference(_ reference: Reference) {
        beginObject()
        member("recordName", reference.recordName)
        member("action", reference.action.rawValue)
        if let zone = reference.zone {
            key("zoneID")
            zoneID(zone)
        }
        endObject()
    }
}

extension FieldValue {
    /// The type as responses state it. An empty list is `UNKNOWN_LIST`, as in CloudKit; of the encrypted types only
    /// that of bytes has a name of its own.
    var webTypeName: String {
        switch self {
        case .list(_, let members) where members.isEmpty: "UNKNOWN_LIST"
        case .encrypted(.bytes): "ENCRYPTED_BYTES"
        case .encrypted(let plain): plain.webTypeName
        default: type.webName
        }
    }
}

/// Which fields to write; a set once there are many keys, so that no request costs keys times fields.
private struct DesiredKeys {
    private let few: [String]?
    private let many: Set<String>

    init(_ keys: [String]?) {
        few = keys.map { $0.count <= 8 ? $0 : [] }
        many = keys.map { $0.count <= 8 ? [] : Set($0) } ?? []
    }

    func contains(_ name: String) -> Bool {
        guard let few else { return true }
        return few.contains(name) || many.contains(name)
    }
}
