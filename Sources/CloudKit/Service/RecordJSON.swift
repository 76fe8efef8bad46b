import CoreLocation
import Foundation
import RecordModel

/// Reads records, zones and their names as the server writes them.
struct RecordReader: Sendable {
    /// The zone of records that do not name theirs.
    var zone: CKRecordZone.ID
    /// The database that the records are in; nil where their assets are not to be had from them.
    var scope: CKDatabase.Scope?

    /// Reads a record.
    /// - Throws: `internalError` if the JSON is not a record.
    func record(_ json: JSONValue) throws(CKError) -> CKRecord {
        let id = try recordID(json)
        let state = try state(json, of: id)
        guard let type = json["recordType"]?.string else { throw .unreadable("recordType") }
        return CKRecord(
            id: id, type: type, system: state.system, values: state.values,
            encryptedKeys: state.encryptedKeys)
    }

    /// Reads a record of an answer, or its error. A record that cannot be read is an error of its own, and the others
    /// are kept.
    func result(_ json: JSONValue, _ mapping: ErrorMapping) -> Result<CKRecord, any Error> {
        if let error = mapping.item(json) { return .failure(error) }
        return Result { try record(json) }
    }

    /// The name of a record, live, deleted or failed.
    func recordID(_ json: JSONValue) throws(CKError) -> CKRecord.ID {
        guard let name = json["recordName"]?.string else { throw .unreadable("recordName") }
        return CKRecord.ID(recordName: name, zoneID: zone(of: json))
    }

    /// The zone that a record or a reference names, else the reader's. All records of a zone share one object.
    private func zone(of json: JSONValue) -> CKRecordZone.ID {
        guard let name = json["zoneID"]?["zoneName"]?.string else { return zone }
        let isZone = name == zone.zoneName && zone.ownerName == CKCurrentUserDefaultName
        return isZone ? zone : CKRecordZone.ID(zoneName: name)
    }

    func state(_ json: JSONValue) throws(CKError) -> ServerState { try state(json, of: try recordID(json)) }

    private func state(_ json: JSONValue, of id: CKRecord.ID) throws(CKError) -> ServerState {
        let zone = id.zoneID
        guard let tag = json["recordChangeTag"]?.string else { throw .unreadable("recordChangeTag") }
        var system = SystemFields(
            changeTag: tag, created: stamp(json["created"]), modified: stamp(json["modified"]))
        system.parent = json["parent"]?["recordName"]?.string.map {
            CKReference(recordID: CKRecord.ID(recordName: $0, zoneID: zone), action: .none)
        }
        var values: [String: RecordValue] = [:]
        var encrypted: Set<String> = []
        if case .object(let fields)? = json["fields"] {
            values.reserveCapacity(fields.count)
            let reader = RecordReader(zone: zone)
            for field in fields {
                guard let value = try reader.value(field.value) else { continue }
                values[field.key] = scope.map { value.from(id, key: field.key, in: $0) } ?? value
                let isSealed = field.value["type"]?.string == "ENCRYPTED_BYTES"
                if isSealed || field.value["isEncrypted"] == .bool(true) { encrypted.insert(field.key) }
            }
        }
        return ServerState(system: system, values: values, encryptedKeys: encrypted)
    }

    private func stamp(_ json: JSONValue?) -> SystemFields.Stamp? {
        guard let json, let date = json["timestamp"].flatMap(Self.date) else { return nil }
        return SystemFields.Stamp(
            date: date, user: json["userRecordName"]?.string.map { CKRecord.ID(recordName: $0) })
    }

    /// A zone's name. Outside of shared databases, which the server does not have yet, zones are the caller's own, also
    /// where the server names the owner.
    static func zoneID(_ json: JSONValue) -> CKRecordZone.ID? {
        json["zoneName"]?.string.map { CKRecordZone.ID(zoneName: $0) }
    }

    static func zone(_ json: JSONValue) throws(CKError) -> CKRecordZone {
        guard let id = json["zoneID"].flatMap(zoneID) else { throw .unreadable("zoneID") }
        var capabilities: CKRecordZone.Capabilities = []
        if json["syncToken"]?.string != nil { capabilities.insert(.fetchChanges) }
        if json["atomic"] == .bool(true) { capabilities.insert(.atomic) }
        return CKRecordZone(zoneID: id, capabilities: capabilities, share: nil)
    }

    // MARK: Values

    /// The value of `{value, type}`; nil for a cleared field.
    private func value(_ field: JSONValue) throws(CKError) -> RecordValue? {
        guard let json = field["value"], !json.isNull else { return nil }
        guard let type = field["type"]?.string else { throw .unreadable("type of a field") }
        guard type.hasSuffix("_LIST") else { return try scalar(json, type) }
        guard let members = json.array else { throw .unreadable("list of type \(type)") }
        let element = String(type.dropLast("_LIST".count))
        var values: [RecordValue] = []
        values.reserveCapacity(members.count)
        for member in members { values.append(try scalar(member, element)) }
        return .list(values)
    }

    private func scalar(_ json: JSONValue, _ type: String) throws(CKError) -> RecordValue {
        switch (type, json) {
        case ("STRING", .string(let text)): return .string(text)
        case ("INT64", .integer(let number)): return .int64(number)
        case ("DOUBLE", .number(let number)): return .double(number)
        case ("DOUBLE", .integer(let number)): return .double(Double(number))
        case ("TIMESTAMP", _): if let date = Self.date(json) { return .date(date) }
        case ("BYTES", .string(let text)), ("ENCRYPTED_BYTES", .string(let text)):
            if let bytes = Base64.decode(text) { return .data(Data(bytes)) }
        case ("LOCATION", .object): if let place = location(json) { return .location(place) }
        case ("REFERENCE", .object): if let reference = reference(json) { return .reference(reference) }
        case ("ASSETID", .object), ("ASSET", .object):
            if let content = AssetContent(json) { return .asset(CKAsset(fileURL: nil, content: content)) }
        default: break
        }
        throw .unreadable("value of type \(type)")
    }

    private func reference(_ json: JSONValue) -> CKReference? {
        guard let name = json["recordName"]?.string else { return nil }
        return CKReference(
            recordID: CKRecord.ID(recordName: name, zoneID: zone(of: json)),
            action: json["action"]?.string == "DELETE_SELF" ? .deleteSelf : .none)
    }

    /// Parts of a location that the server does not have are invalid, as in Core Location.
    private func location(_ json: JSONValue) -> CLLocation? {
        func number(_ key: String) -> Double? { json[key]?.double }
        guard let latitude = number("latitude"), let longitude = number("longitude") else { return nil }
        return CLLocation(
            coordinate: CLLocationCoordinate2D(latitude: latitude, longitude: longitude),
            altitude: number("altitude") ?? 0, horizontalAccuracy: number("horizontalAccuracy") ?? 0,
            verticalAccuracy: number("verticalAccuracy") ?? -1, course: number("course") ?? -1,
            speed: number("speed") ?? -1,
            timestamp: json["timestamp"].flatMap(Self.date) ?? Date(timeIntervalSince1970: 0))
    }

    /// Milliseconds since 1970.
    private static func date(_ json: JSONValue) -> Date? {
        json.double.map { Date(timeIntervalSince1970: $0 / 1_000) }
    }
}

extension JSONValue {
    /// A number, however it is written.
    var double: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }
}

extension JSONWriter {
    /// Writes the name of a zone; the current user's zones without an owner.
    mutating func zoneID(of zone: CKRecordZone.ID) {
        object { writer in
            writer.member("zoneName", zone.zoneName)
            if zone.ownerName != CKCurrentUserDefaultName { writer.member("ownerRecordName", zone.ownerName) }
        }
    }

    mutating func member(_ key: String, _ zone: CKRecordZone.ID) {
        self.key(key)
        zoneID(of: zone)
    }

    /// A member whose value is an array with an element for each item.
    mutating func member<Items: Sequence>(
        _ key: String, each items: Items, _ write: (inout JSONWriter, Items.Element) -> Void
    ) {
        self.key(key)
        array { writer in for item in items { write(&writer, item) } }
    }

    /// The fields to fetch; nil asks for all.
    mutating func desiredKeys(_ keys: [String]?) {
        if let keys { member("desiredKeys", each: keys) { $0.string($1) } }
    }

    /// One operation of records/modify that saves a record.
    /// - Parameter kind: `create`, `update` or `forceUpdate`.
    mutating func saving(_ record: RecordSnapshot, _ kind: String, keys: [String], withParent: Bool) {
        object { writer in
            writer.member("operationType", kind)
            writer.key("record")
            writer.object { writer in
                writer.member("recordName", record.id.recordName)
                writer.member("recordType", record.type)
                if kind == "update", let tag = record.system.changeTag { writer.member("recordChangeTag", tag) }
                writer.key("fields")
                writer.object { writer in
                    for name in keys {
                        writer.key(name)
                        writer.field(record.values[name], isEncrypted: record.encryptedKeys.contains(name))
                    }
                }
                guard withParent else { return }
                let parent = record.system.parent?.recordID.recordName
                writer.member("parent", parent.map { .members(["recordName": .string($0)]) } ?? .null)
            }
        }
    }

    /// One operation of records/modify that deletes a record, whatever its version.
    mutating func deleting(_ id: CKRecord.ID) {
        object { writer in
            writer.member("operationType", "forceDelete")
            writer.key("record")
            writer.object { $0.member("recordName", id.recordName) }
        }
    }

    /// A field: `{value, type}`; one without value is cleared.
    private mutating func field(_ value: RecordValue?, isEncrypted: Bool) {
        object { writer in
            writer.key("value")
            guard let value else { return writer.null() }
            writer.value(value)
            writer.member("type", value.webType)
            if isEncrypted { writer.member("isEncrypted", true) }
        }
    }

    private mutating func value(_ value: RecordValue) {
        switch value {
        case .string(let text): string(text)
        case .data(let data): base64(Array(data))
        case .int64(let number): integer(number)
        case .double(let number): self.number(number)
        case .date(let date): integer(date.milliseconds)
        case .location(let place): location(place)
        case .reference(let reference): self.reference(reference)
        case .list(let members): array { for member in members { $0.value(member) } }
        case .asset(let asset): self.asset(asset)
        // Refused before anything is written.
        case .unusable: null()
        }
    }

    /// What was uploaded goes with its receipt; what the record has already, without one, is kept.
    private mutating func asset(_ asset: CKAsset) {
        if let receipt = asset.receipt { return value(receipt) }
        guard let content = asset.content else { return null() }
        object { writer in
            writer.member("fileChecksum", content.checksum)
            writer.member("size", integer: content.size)
        }
    }

    private mutating func location(_ place: CLLocation) {
        beginObject()
        member("latitude", number: place.coordinate.latitude)
        member("longitude", number: place.coordinate.longitude)
        member("horizontalAccuracy", number: place.horizontalAccuracy)
        member("verticalAccuracy", number: place.verticalAccuracy)
        member("altitude", number: place.altitude)
        member("speed", number: place.speed)
        member("course", number: place.course)
        member("timestamp", integer: place.timestamp.milliseconds)
        endObject()
    }

    private mutating func reference(_ reference: CKReference) {
        object { writer in
            writer.member("recordName", reference.recordID.recordName)
            writer.member("action", reference.action == .deleteSelf ? "DELETE_SELF" : "NONE")
            writer.member("zoneID", reference.recordID.zoneID)
        }
    }
}

extension RecordValue {
    /// The type's name in CloudKit Web Services.
    var webType: String {
        switch self {
        case .string: "STRING"
        case .data: "BYTES"
        case .int64: "INT64"
        case .double: "DOUBLE"
        case .date: "TIMESTAMP"
        case .location: "LOCATION"
        case .reference: "REFERENCE"
        case .asset: "ASSETID"
        case .list(let members): members.first.map { $0.webType + "_LIST" } ?? "UNKNOWN_LIST"
        case .unusable: "STRING"
        }
    }
}

extension Date {
    /// Milliseconds since 1970, truncated and clamped.
    fileprivate var milliseconds: Int64 {
        Int64(exactly: (timeIntervalSince1970 * 1_000).rounded()) ?? (timeIntervalSince1970 < 0 ? .min : .max)
    }
}
