import CoreLocation
import Foundation

/// A record on its way into an archive or out of it.
struct ArchivedRecord {
    var type: String
    var id: CKRecordID
    var state: RecordState
}

extension ArchivedRecord {
    /// Nil where the archive holds no record. The keys are Apple's, but for the values; those of earlier versions of
    /// the SDK are read too.
    init?(coder: NSCoder) {
        guard let type = coder.text("RecordType"), let id = coder.object(CKRecordID.self, "RecordID")
        else { return nil }
        self.init(type: type, id: id, state: RecordState())
        var system = SystemFields(
            changeTag: coder.text("ETag") ?? coder.text("ChangeTag"),
            created: coder.stamp("RecordCtime", by: "CreatorUserRecordID") ?? coder.olderStamp("Created"),
            modified: coder.stamp("RecordMtime", by: "LastModifiedUserRecordID") ?? coder.olderStamp("Modified"))
        system.parent = coder.object(CKReference.self, "ParentReference") ?? coder.object(CKReference.self, "Parent")
        system.share = coder.object(CKReference.self, "ShareReference") ?? coder.object(CKReference.self, "Share")
        guard let content = coder.codable(Content.self, Self.valuesKey) else {
            // No values are known, so a conflict's ancestor has none either.
            state = RecordState(
                ServerState(system: system, values: [:]), base: Self.base(system, values: [:], encryptedKeys: []),
                changedKeys: [], isParentChanged: false)
            return
        }
        var baseSystem = system
        if content.isParentChanged {
            baseSystem.parent = coder.object(CKReference.self, "PreviousParentReference")
        }
        state = RecordState(
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
        let system = includingValues ? state.system : state.base?.system ?? state.system
        coder.write(type, "RecordType")
        coder.write(id, "RecordID")
        coder.write(system.changeTag, "ETag")
        coder.encode(system.changeTag != nil, forKey: "KnownToServer")
        coder.write(system.created?.date as NSDate?, "RecordCtime")
        coder.write(system.created?.user, "CreatorUserRecordID")
        coder.write(system.modified?.date as NSDate?, "RecordMtime")
        coder.write(system.modified?.user, "LastModifiedUserRecordID")
        coder.write(system.parent, "ParentReference")
        coder.write(system.share, "ShareReference")
        guard includingValues else { return }
        coder.write(state.base?.system.parent, "PreviousParentReference")
        coder.encode(state.parentEdit != nil, forKey: "HasUpdatedParentReference")
        coder.write(codable: content, Self.valuesKey)
    }

    private var content: Content {
        Content(
            values: state.values.mapValues(ArchivedValue.init), encryptedKeys: state.encryptedKeys.sorted(),
            changedKeys: state.changedKeys, isParentChanged: state.parentEdit != nil,
            baseValues: state.base?.values.mapValues(ArchivedValue.init) ?? [:],
            baseEncryptedKeys: state.base?.encryptedKeys.sorted() ?? [])
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

/// A value in the form in which an archive holds it.
enum ArchivedValue: Codable {
    case string(String)
    case data(Data)
    case int64(Int64)
    case double(Double)
    case date(Double)
    /// Latitude, longitude, altitude, horizontal and vertical accuracy, course and its accuracy, speed and its
    /// accuracy, timestamp.
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
            self = .location([
                place.coordinate.latitude, place.coordinate.longitude, place.altitude, place.horizontalAccuracy,
                place.verticalAccuracy, place.course, place.courseAccuracy, place.speed, place.speedAccuracy,
                place.timestamp.timeIntervalSinceReferenceDate,
            ])
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
        return .location(
            CLLocation(
                coordinate: CLLocationCoordinate2D(latitude: parts[0], longitude: parts[1]), altitude: parts[2],
                horizontalAccuracy: parts[3], verticalAccuracy: parts[4], course: parts[5], courseAccuracy: parts[6],
                speed: parts[7], speedAccuracy: parts[8],
                timestamp: Date(timeIntervalSinceReferenceDate: parts[9])))
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
