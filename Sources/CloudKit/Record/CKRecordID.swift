public import Foundation

/// The name of a record within its database: `CKRecord.ID`.
///
/// The class stands at the top level under the name it has in Objective-C, because Foundation on Linux archives no
/// nested classes; `CKRecord.ID` is the name to use. Immutable; equal when record name and zone are.
public final class CKRecordID: NSObject, NSSecureCoding, NSCopying, Sendable {
    /// Unique within the zone; at most 255 characters.
    public let recordName: String
    /// The zone that holds the record.
    public let zoneID: CKRecordZone.ID

    /// A record of the default zone.
    public convenience init(recordName: String) {
        self.init(recordName: recordName, zoneID: .default)
    }

    /// A record of a zone; without a name it gets a random one.
    public init(recordName: String = UUID().uuidString, zoneID: CKRecordZone.ID = CKRecordZone.ID.default) {
        self.recordName = recordName
        self.zoneID = zoneID
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKRecordID else { return false }
        return recordName == other.recordName && zoneID == other.zoneID
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(recordName)
        hasher.combine(zoneID)
        return hasher.finalize()
    }

    public override var description: String {
        "<CKRecordID: recordName=\(recordName), zoneID=\(zoneID.zoneName):\(zoneID.ownerName)>"
    }

    /// Itself: it cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public static var supportsSecureCoding: Bool { true }

    public func encode(with coder: NSCoder) {
        coder.write(recordName, "RecordName")
        coder.write(zoneID, "ZoneID")
    }

    /// Nil where the archive holds no record ID.
    public convenience init?(coder: NSCoder) {
        guard let name = coder.text("RecordName"),
            let zone = coder.object(CKRecordZoneID.self, "ZoneID")
        else { return nil }
        self.init(recordName: name, zoneID: zone)
    }
}
