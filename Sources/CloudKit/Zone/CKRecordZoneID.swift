public import Foundation

/// The name of a zone and of the user who owns it: `CKRecordZone.ID`.
///
/// The class stands at the top level under the name it has in Objective-C, because Foundation on Linux archives no
/// nested classes; `CKRecordZone.ID` is the name to use. Immutable; equal when both names are.
public final class CKRecordZoneID: NSObject, NSSecureCoding, NSCopying, Sendable {
    /// The name of the zone, unique within its database.
    public let zoneName: String
    /// The record name of the owner's user record, or `CKCurrentUserDefaultName` for the user who asks.
    public let ownerName: String

    /// The zone of a name; without an owner it is the current user's.
    public init(
        zoneName: String = CKRecordZoneID.defaultZoneName, ownerName: String = CKCurrentUserDefaultName
    ) {
        self.zoneName = zoneName
        self.ownerName = ownerName
    }

    /// The zone that every database has, of the current user.
    public static let `default` = CKRecordZoneID()
    /// `_defaultZone`.
    public static let defaultZoneName = "_defaultZone"

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKRecordZoneID else { return false }
        return zoneName == other.zoneName && ownerName == other.ownerName
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(zoneName)
        hasher.combine(ownerName)
        return hasher.finalize()
    }

    public override var description: String { "<CKRecordZoneID: zoneName=\(zoneName), ownerName=\(ownerName)>" }

    /// Itself: it cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public static var supportsSecureCoding: Bool { true }

    public func encode(with coder: NSCoder) {
        coder.write(zoneName, "ZoneName")
        coder.write(ownerName, "OwnerName")
    }

    /// Nil where the archive holds no zone ID.
    public convenience init?(coder: NSCoder) {
        guard let name = coder.text("ZoneName"), let owner = coder.text("OwnerName") else { return nil }
        self.init(zoneName: name, ownerName: owner)
    }
}
