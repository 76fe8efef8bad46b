public import Foundation

/// A part of a database whose records are kept, changed and followed together.
///
/// Immutable. What the server says of a zone (its capabilities, its share) is known on an instance that came from the
/// server; one made here has none until it was saved.
public final class CKRecordZone: NSObject, _CKImmutable, Sendable {
    /// The names of a zone and its owner.
    public typealias ID = CKRecordZoneID

    /// Which zone this is.
    public let zoneID: CKRecordZone.ID
    /// What the server offers in this zone; nothing before it was saved or fetched.
    public let capabilities: CKRecordZone.Capabilities
    /// The share of the whole zone; nil if there is none.
    public let share: CKRecord.Reference?

    /// A custom zone of the current user.
    public convenience init(zoneName: String) {
        self.init(zoneID: CKRecordZone.ID(zoneName: zoneName))
    }

    /// The zone of an ID.
    public convenience init(zoneID: CKRecordZone.ID) {
        self.init(zoneID: zoneID, capabilities: [], share: nil)
    }

    init(zoneID: CKRecordZone.ID, capabilities: Capabilities, share: CKRecord.Reference?) {
        self.zoneID = zoneID
        self.capabilities = capabilities
        self.share = share
    }

    /// The zone that every database has. It holds no special capabilities.
    public class func `default`() -> CKRecordZone { CKRecordZone(zoneID: .default) }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKRecordZone else { return false }
        return zoneID == other.zoneID && capabilities == other.capabilities && share == other.share
    }

    /// Equal for equal objects.
    public override var hash: Int { zoneID.hash }

    /// The text for logs.
    public override var description: String {
        "<CKRecordZone: \(zoneID.zoneName):\(zoneID.ownerName), capabilities=\(capabilities.rawValue)>"
    }

    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(zoneID, "ZoneID")
        coder.encode(Int64(capabilities.rawValue), forKey: "Capabilities")
        coder.write(share, "Share")
    }

    /// Nil where the archive holds no zone.
    public convenience init?(coder: NSCoder) {
        guard let zoneID = coder.object(CKRecordZoneID.self, "ZoneID") else { return nil }
        let bits = UInt(truncatingIfNeeded: coder.decodeInt64(forKey: "Capabilities"))
        self.init(
            zoneID: zoneID, capabilities: Capabilities(rawValue: bits),
            share: coder.object(CKReference.self, "Share"))
    }

    /// What a zone can do beyond keeping records.
    public struct Capabilities: OptionSet, Sendable {
        /// The bits.
        public let rawValue: UInt
        /// Creates options from their bits.
        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Its changes can be followed from a token.
        public static var fetchChanges: Capabilities { Capabilities(rawValue: 1) }
        /// A batch is saved whole or not at all.
        public static var atomic: Capabilities { Capabilities(rawValue: 2) }
        /// Hierarchies of its records can be shared.
        public static var sharing: Capabilities { Capabilities(rawValue: 4) }
        /// The zone can be shared as a whole.
        public static var zoneWideSharing: Capabilities { Capabilities(rawValue: 8) }
    }
}

/// The name of a zone and of the user who owns it: `CKRecordZone.ID`.
///
/// Immutable; equal when both names are.
public final class CKRecordZoneID: NSObject, _CKImmutable, Sendable {
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

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKRecordZoneID else { return false }
        return zoneName == other.zoneName && ownerName == other.ownerName
    }

    /// Equal for equal objects.
    public override var hash: Int { combinedHash(zoneName, ownerName) }

    /// The text for logs.
    public override var description: String { "<CKRecordZoneID: zoneName=\(zoneName), ownerName=\(ownerName)>" }

    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives the object.
    public func encode(with coder: NSCoder) {
        coder.write(zoneName, "ZoneName")
        coder.write(ownerName, "ownerName")
    }

    /// Nil where the archive holds no zone ID.
    public convenience init?(coder: NSCoder) {
        guard let name = coder.text("ZoneName"), let owner = coder.text("ownerName") ?? coder.text("OwnerName") else {
            return nil
        }
        self.init(zoneName: name, ownerName: owner)
    }
}

/// A place in the changes of a zone or a database: what was fetched up to it need not be fetched again.
///
/// Opaque and immutable; equal when both name the same place. Keep it in an archive between runs.
public final class CKServerChangeToken: NSObject, _CKImmutable, Sendable {
    /// The server's text for the place (`syncToken`).
    let value: String

    /// A token that the server gave.
    init(_ value: String) { self.value = value }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool { (object as? CKServerChangeToken)?.value == value }
    /// Equal for equal objects.
    public override var hash: Int { value.hashValue }
    /// The text for logs.
    public override var description: String { "<CKServerChangeToken: \(value)>" }

    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }
    /// Archives the object.
    public func encode(with coder: NSCoder) { coder.write(value, "Token") }

    /// Nil where the archive holds no token.
    public convenience init?(coder: NSCoder) {
        guard let value = coder.text("Token") else { return nil }
        self.init(value)
    }
}
