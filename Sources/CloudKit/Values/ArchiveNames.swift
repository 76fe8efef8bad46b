import CoreLocation
import Foundation

/// The names that classes have in archives: those of Apple's framework.
///
/// Archives that Apple's framework wrote name `CKRecordID`, and Foundation on Linux would look for
/// `CloudKit.CKRecordID` only. In the other direction, `NSKeyedArchiver.setClassName(_:for:)` has no effect in
/// Foundation on Linux (6.3): it keeps the name under another key than it looks for. So the archiver asks us, see
/// `ArchiverNames`. Each class also names Apple's as the one to fall back to, for the case that it does not.
enum ArchiveNames {
    private static let classes: [(name: String, type: AnyClass)] = [
        ("CKAsset", CKAsset.self), ("CKDatabaseSubscription", CKDatabaseSubscription.self),
        ("CKFetchRecordZoneChangesConfiguration", CKFetchRecordZoneChangesConfiguration.self),
        ("CKFetchRecordZoneChangesOptions", CKFetchRecordZoneChangesOptions.self),
        ("CKLocationSortDescriptor", CKLocationSortDescriptor.self), ("CKNotificationID", CKNotificationID.self),
        ("CKNotificationInfo", CKNotificationInfo.self), ("CKOperationGroup", CKOperationGroup.self),
        ("CKQuery", CKQuery.self), ("CKQueryCursor", CKQueryCursor.self),
        ("CKQuerySubscription", CKQuerySubscription.self), ("CKRecord", CKRecord.self),
        ("CKRecordID", CKRecordID.self), ("CKRecordZone", CKRecordZone.self), ("CKRecordZoneID", CKRecordZoneID.self),
        ("CKRecordZoneSubscription", CKRecordZoneSubscription.self), ("CKReference", CKReference.self),
        ("CKServerChangeToken", CKServerChangeToken.self), ("CKShare", CKShare.self),
        ("CKShareMetadata", CKShareMetadata.self), ("CKShareParticipant", CKShareParticipant.self),
        ("CKUserIdentity", CKUserIdentity.self), ("CKUserIdentityLookupInfo", CKUserIdentityLookupInfo.self),
        ("CLLocation", CLLocation.self),
    ]

    /// Makes the names known to Foundation.
    static func register() {
        for entry in classes { NSKeyedUnarchiver.setClass(entry.type, forClassName: entry.name) }
        ArchiverNames.install()
    }

    /// The name of a class in archives; nil for one that is not ours.
    static func name(of type: AnyClass) -> String? { classes.first { $0.type == type }?.name }

    /// What an archive of a class names beside the class itself.
    static func fallbacks(_ type: AnyClass) -> [String] {
        name(of: type).map { [$0] } ?? []
    }
}

/// Called before `main`: see `AtLoad`.
@_cdecl("zonekeeper_cloudkit_name_classes")
package func nameClassesAtLoad() { ArchiveNames.register() }

/// Has every `NSKeyedArchiver` ask for our classes' names where Foundation looks for a name that was set.
///
/// Foundation calls the open method `classNameForClass(_:)` of the archiver, which a subclass may override. Programs
/// make archivers of the class itself, so its table of methods gets the override in place of its own. Where the table
/// is not as expected, nothing is changed.
private enum ArchiverNames {
    /// A subclass that overrides nothing: what differs in it differs in every subclass.
    private final class Plain: NSKeyedArchiver {}

    private final class Naming: NSKeyedArchiver {
        // swift-format-ignore: AlwaysUseLowerCamelCase
        override func classNameForClass(_ cls: AnyClass) -> String? {
            super.classNameForClass(cls) ?? ArchiveNames.name(of: cls)
        }
    }

    static func install() {
        let (own, naming) = (table(NSKeyedArchiver.self), table(Naming.self))
        let (plain, count) = (table(Plain.self), min(own.count, naming.count))
        guard plain.count >= count else { return }
        let places = (0..<count).filter { own[$0] == plain[$0] && own[$0] != naming[$0] }
        guard places.count == 1 else { return }
        own[places[0]] = naming[places[0]]
    }

    /// The words of a class's metadata from its address on, the table of methods among them. Its size is at a fixed
    /// place behind the class pointer, the superclass, flags, and the form of instances.
    private static func table(_ type: AnyClass) -> UnsafeMutableBufferPointer<UInt> {
        let start = unsafeBitCast(type, to: UnsafeMutableRawPointer.self)
        let head = 2 * MemoryLayout<UInt>.size
        // flags, address point and size of instances, alignment, reserved; then the size of the class, address point.
        let size = Int(start.load(fromByteOffset: head + 16, as: UInt32.self))
        let before = Int(start.load(fromByteOffset: head + 20, as: UInt32.self))
        let count = max(0, size - before) / MemoryLayout<UInt>.size
        return UnsafeMutableBufferPointer(start: start.assumingMemoryBound(to: UInt.self), count: count)
    }
}
