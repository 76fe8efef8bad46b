import CoreLocation
import Foundation

/// The names that classes have in archives: those of Apple's framework.
///
/// Archives that Apple's framework wrote name `CKRecordID`, and Foundation on Linux would look for
/// `CloudKit.CKRecordID` only. In the other direction, `NSKeyedArchiver.setClassName(_:for:)` has no effect in
/// Foundation on Linux (6.3): it keeps the name under another key than it looks for. So each class also names Apple's
/// as the one to fall back to, which Foundation everywhere takes where it does not have the first.
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
        for entry in classes {
            NSKeyedUnarchiver.setClass(entry.type, forClassName: entry.name)
            NSKeyedArchiver.setClassName(entry.name, for: entry.type)
        }
    }

    /// What an archive of a class names beside the class itself.
    static func fallbacks(_ type: AnyClass) -> [String] {
        classes.first { $0.type == type }.map { [$0.name] } ?? []
    }
}

/// Called before `main`: see `AtLoad`.
@_cdecl("zonekeeper_cloudkit_name_classes")
package func nameClassesAtLoad() { ArchiveNames.register() }
