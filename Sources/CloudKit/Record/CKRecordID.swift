public import Foundation

/// The name of a record within its database: `CKRecord.ID`.
///
/// Immutable; equal if record name and zone are.
public final class CKRecordID: NSObject, _CKImmutable, Sendable {
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

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKRecordID else { return false }
        return recordName == other.recordName && zoneID == other.zoneID
    }

    /// Equal for equal objects.
    public override var hash: Int { combinedHash(recordName, zoneID) }

    /// The text for logs.
    public override var description: String {
        "<CKRecordID: recordName=\(recordName), zoneID=\(zoneID.zoneName):\(zoneID.ownerName)>"
    }

    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(recordName, "RecordName")
        coder.write(zoneID, "ZoneID")
    }

    /// Nil if the archive holds no record ID.
    public convenience init?(coder: NSCoder) {
        guard let name = coder.text("RecordName"),
            let zone = coder.object(CKRecordZoneID.self, "ZoneID")
        else { return nil }
        self.init(recordName: name, zoneID: zone)
    }
}

/// A pointer from a record to another of the same zone: `CKRecord.Reference`.
///
/// Immutable; equal if record ID and action are.
public final class CKReference: NSObject, _CKImmutable, Sendable {
    /// What happens to the record that holds a reference when its target is deleted.
    public typealias Action = CKRecord.ReferenceAction

    /// The record it points to.
    public let recordID: CKRecord.ID
    /// What the target's deletion does to the record that holds the reference.
    public let action: CKRecord.ReferenceAction

    /// A pointer to a record by its ID.
    public init(recordID: CKRecord.ID, action: CKRecord.ReferenceAction) {
        self.recordID = recordID
        self.action = action
    }

    /// A pointer to a record.
    public convenience init(record: CKRecord, action: CKRecord.ReferenceAction) {
        self.init(recordID: record.recordID, action: action)
    }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKReference else { return false }
        return recordID == other.recordID && action == other.action
    }

    /// Equal for equal objects.
    public override var hash: Int { combinedHash(recordID, action) }

    /// The text for logs.
    public override var description: String {
        "<CKReference: recordID=\(recordID.recordName), action=\(action == .deleteSelf ? "deleteSelf" : "none")>"
    }

    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(recordID, "recordID")
        coder.encode(Int64(action.rawValue), forKey: "Action")
    }

    /// Nil if the archive holds no reference.
    public convenience init?(coder: NSCoder) {
        guard
            let recordID = coder.object(CKRecordID.self, "recordID") ?? coder.object(CKRecordID.self, "RecordID"),
            let action = CKRecord.ReferenceAction(rawValue: UInt(truncatingIfNeeded: coder.integer("Action")))
        else { return nil }
        self.init(recordID: recordID, action: action)
    }
}

extension CKRecord {
    /// What happens to the record that holds a reference when its target is deleted.
    public enum ReferenceAction: UInt, Hashable, Sendable {
        /// Nothing.
        case none = 0
        /// It is deleted too.
        case deleteSelf = 1
    }
}

/// Lets classes whose objects cannot change share how these are copied and archived. Nothing else conforms.
public protocol _CKImmutable: NSSecureCoding, NSCopying {}

extension _CKImmutable {
    /// Itself: it cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    public static var supportsSecureCoding: Bool { true }
}
