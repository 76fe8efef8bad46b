import CoreLocation
import Foundation
import RecordModel

extension JSONWriter {
    /// The name of a zone; the current user's zones go without owner.
    mutating func zoneID(of zone: CKRecordZone.ID) {
        beginObject()
        member("zoneName", zone.zoneName)
        if zone.ownerName != CKCurrentUserDefaultName { member("ownerRecordName", zone.ownerName) }
        endObject()
    }

    /// A member of a name for each, left out where there is none.
    mutating func desiredKeys(_ keys: [String]?) {
        guard let keys else { return }
        key("desiredKeys")
        array { for name in keys { $0.string(name) } }
    }

    /// One operation of records/modify that saves a record.
    /// - Parameter kind: `create`, `update` or `forceUpdate`.
    mutating func saving(_ record: RecordSnapshot, _ kind: String, keys: [String], withParent: Bool) {
        beginObject()
        member("operationType", kind)
        key("record")
        beginObject()
        member("recordName", record.id.recordName)
        member("recordType", record.type)
        if kind == "update", let tag = record.system.changeTag { member("recordChangeTag", tag) }
        key("fields")
        beginObject()
        for name in keys {
            key(name)
            field(record.values[name], isEncrypted: record.encryptedKeys.contains(name))
        }
        endObject()
        if withParent {
            key("parent")
            if let parent = record.system.parent {
                object { $0.member("recordName", parent.recordID.recordName) }
            } else {
                null()
            }
        }
        endObject()
        endObject()
    }

    /// One operation of records/modify that deletes a record, whatever its version.
    mutating func deleting(_ id: CKRecord.ID) {
        beginObject()
        member("operationType", "forceDelete")
        key("record")
        object { $0.member("recordName", id.recordName) }
        endObject()
    }

    /// A field: `{value, type}`; one without value is cleared.
    private mutating func field(_ value: RecordValue?, isEncrypted: Bool) {
        beginObject()
        key("value")
        guard let value else {
            null()
            endObject()
            return
        }
        self.value(value)
        member("type", value.webType)
        if isEncrypted { member("isEncrypted", true) }
        endObject()
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
        // Both are refused before anything is written.
        case .asset, .unusable: null()
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
        beginObject()
        member("recordName", reference.recordID.recordName)
        member("action", reference.action == .deleteSelf ? "DELETE_SELF" : "NONE")
        key("zoneID")
        zoneID(of: reference.recordID.zoneID)
        endObject()
    }
}

extension RecordValue {
    /// What Web Services call the type.
    fileprivate var webType: String {
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

    /// Whether it is an asset, or has one in it.
    var hasAsset: Bool {
        switch self {
        case .asset: true
        case .list(let members): members.contains(where: \.hasAsset)
        default: false
        }
    }
}

extension Date {
    /// Since 1970; what is finer is cut off, and what is too far away stops at the last moment that there is.
    fileprivate var milliseconds: Int64 {
        Int64(exactly: (timeIntervalSince1970 * 1_000).rounded()) ?? (timeIntervalSince1970 < 0 ? .min : .max)
    }
}
