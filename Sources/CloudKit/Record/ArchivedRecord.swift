import CoreLocation
import Foundation

extension RecordState {
    /// The state of a record in an archive. The keys are Apple's, but for the values; those of earlier versions of the
    /// SDK are read too.
    init(coder: NSCoder) {
        var system = SystemFields(
            changeTag: coder.text("ETag") ?? coder.text("ChangeTag"),
            created: coder.stamp("RecordCtime", by: "CreatorUserRecordID") ?? coder.olderStamp("Created"),
            modified: coder.stamp("RecordMtime", by: "LastModifiedUserRecordID") ?? coder.olderStamp("Modified"))
        system.parent = coder.object(CKReference.self, "ParentReference") ?? coder.object(CKReference.self, "Parent")
        system.share = coder.object(CKReference.self, "ShareReference") ?? coder.object(CKReference.self, "Share")
        guard let content = coder.codable(Content.self, Self.valuesKey) else {
            // No values are known, so a conflict's ancestor has none either.
            self.init(
                ServerState(system: system, values: [:]), base: Self.base(system, values: [:], encryptedKeys: []),
                changedKeys: [], isParentChanged: false)
            return
        }
        var baseSystem = system
        if content.isParentChanged {
            baseSystem.parent = coder.object(CKReference.self, "PreviousParentReference")
        }
        self.init(
            ServerState(
                system: system, values: content.values.mapValues(\.value), encryptedKeys: Set(content.encryptedKeys)),
            base: Self.base(
                baseSystem, values: content.baseValues.mapValues(\.value),
                encryptedKeys: Set(content.baseEncryptedKeys)),
            changedKeys: content.changedKeys, isParentChanged: content.isParentChanged)
    }

    /// Apple's framework keeps values under keys of its own, which are not known.
    private static let valuesKey = "ZonekeeperValues"

    func encode(with coder: NSCoder, includingValues: Bool) {
        let system = includingValues ? system : base?.system ?? system
        coder.write(system.changeTag, "ETag")
        coder.encode(system.changeTag != nil, forKey: "KnownToServer")
        coder.write(system.created?.date as NSDate?, "RecordCtime")
        coder.write(system.created?.user, "CreatorUserRecordID")
        coder.write(system.modified?.date as NSDate?, "RecordMtime")
        coder.write(system.modified?.user, "LastModifiedUserRecordID")
        coder.write(system.parent, "ParentReference")
        coder.write(system.share, "ShareReference")
        guard includingValues else { return }
        coder.write(base?.system.parent, "PreviousParentReference")
        coder.encode(parentEdit != nil, forKey: "HasUpdatedParentReference")
        let content = Content(
            values: values.mapValues(ArchivedValue.init), encryptedKeys: encryptedKeys.sorted(),
            changedKeys: changedKeys, isParentChanged: parentEdit != nil,
            baseValues: base?.values.mapValues(ArchivedValue.init) ?? [:],
            baseEncryptedKeys: base?.encryptedKeys.sorted() ?? [])
        coder.write(codable: content, Self.valuesKey)
    }

    /// A record that never was on the server has no base.
    private static func base(
        _ system: SystemFields, values: [String: RecordValue], encryptedKeys: Set<String>
    ) -> ServerState? {
        system.changeTag == nil ? nil : ServerState(system: system, values: values, encryptedKeys: encryptedKeys)
    }

    /// What a whole record has beside its system fields.
    private struct Content: Codable {
        var values: [String: ArchivedValue]
        var encryptedKeys: [String]
        var changedKeys: [String]
        var isParentChanged: Bool
        var baseValues: [String: ArchivedValue]
        var baseEncryptedKeys: [String]
    }
}

extension NSCoder {
    fileprivate func stamp(_ key: String, by userKey: String) -> SystemFields.Stamp? {
        object(NSDate.self, key).map { SystemFields.Stamp(date: $0 as Date, user: object(CKRecordID.self, userKey)) }
    }

    fileprivate func olderStamp(_ key: String) -> SystemFields.Stamp? {
        date(key + "Date").map { SystemFields.Stamp(date: $0, user: object(CKRecordID.self, key + "User")) }
    }
}

enum ArchivedValue: Codable {
    case string(String)
    case data(Data)
    case int64(Int64)
    case double(Double)
    case date(Double)
    /// A location's `parts`, and its timestamp.
    case location([Double])
    case reference(name: String, zone: String, owner: String, deletesSelf: Bool)
    case asset(URL?, content: AssetContent?)
    case list([ArchivedValue])
    case unusable(String)

    init(_ value: RecordValue) {
        switch value {
        case .string(let text): self = .string(text)
        case .data(let data): self = .data(data)
        case .int64(let number): self = .int64(number)
        case .double(let number): self = .double(number)
        case .date(let date): self = .date(date.timeIntervalSinceReferenceDate)
        case .location(let place):
            self = .location(place.parts + [place.timestamp.timeIntervalSinceReferenceDate])
        case .reference(let reference):
            let id = reference.recordID
            self = .reference(
                name: id.recordName, zone: id.zoneID.zoneName, owner: id.zoneID.ownerName,
                deletesSelf: reference.action == .deleteSelf)
        case .asset(let asset): self = .asset(asset.fileURL, content: asset.content)
        case .list(let elements): self = .list(elements.map(ArchivedValue.init))
        case .unusable(let reason): self = .unusable(reason)
        }
    }

    var value: RecordValue {
        switch self {
        case .string(let text): .string(text)
        case .data(let data): .data(data)
        case .int64(let number): .int64(number)
        case .double(let number): .double(number)
        case .date(let seconds): .date(Date(timeIntervalSinceReferenceDate: seconds))
        case .location(let parts): Self.location(parts)
        case .reference(let name, let zone, let owner, let deletesSelf):
            .reference(
                CKReference(
                    recordID: CKRecordID(
                        recordName: name, zoneID: CKRecordZoneID(zoneName: zone, ownerName: owner)),
                    action: deletesSelf ? .deleteSelf : .none))
        case .asset(let url, let content): .asset(CKAsset(fileURL: url, content: content))
        case .list(let elements): .list(elements.map(\.value))
        case .unusable(let reason): .unusable(reason)
        }
    }

    private static func location(_ parts: [Double]) -> RecordValue {
        guard parts.count == 10 else { return .unusable("a location that the archive holds in part") }
        return .location(CLLocation(parts: parts, timestamp: Date(timeIntervalSinceReferenceDate: parts[9])))
    }
}

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
