import CloudKit
import Testing

@Suite("Numbers and names that programs store")
struct SurfaceNumberTests {
    @Test("the error codes have Apple's numbers")
    func errorCodes() {
        for (index, code) in SurfaceList.codes.enumerated() {
            #expect("\(CKError.Code(rawValue: index + 1).map { "\($0)" } ?? "none")" == code.name, "code \(index + 1)")
        }
        #expect(CKError.Code(rawValue: 0) == nil && CKError.Code(rawValue: SurfaceList.codes.count + 1) == nil)
        #expect(CKErrorDomain == "CKErrorDomain")
    }

    @Test("enumerations have Apple's numbers")
    func rawValues() {
        let statuses: [CKAccountStatus] = [
            .couldNotDetermine, .available, .restricted, .noAccount, .temporarilyUnavailable,
        ]
        #expect(statuses.map(\.rawValue) == [0, 1, 2, 3, 4])
        #expect([CKDatabase.Scope.public, .private, .shared].map(\.rawValue) == [1, 2, 3])
        #expect([CKRecord.ReferenceAction.none, .deleteSelf].map(\.rawValue) == [0, 1])
        let policies: [CKModifyRecordsOperation.RecordSavePolicy] = [.ifServerRecordUnchanged, .changedKeys, .allKeys]
        #expect(policies.map(\.rawValue) == [0, 1, 2])
        let capabilities: [CKRecordZone.Capabilities] = [.fetchChanges, .atomic, .sharing, .zoneWideSharing]
        #expect(capabilities.map(\.rawValue) == [1, 2, 4, 8])
        #expect([CKSubscription.SubscriptionType.query, .recordZone, .database].map(\.rawValue) == [1, 2, 3])
        let options: [CKQuerySubscription.Options] = [
            .firesOnRecordCreation, .firesOnRecordUpdate, .firesOnRecordDeletion, .firesOnce,
        ]
        #expect(options.map(\.rawValue) == [1, 2, 4, 8])
        let notifications: [CKNotification.NotificationType] = [.query, .recordZone, .readNotification, .database]
        #expect(notifications.map(\.rawValue) == [1, 2, 3, 4])
        let reasons: [CKQueryNotification.Reason] = [.recordCreated, .recordUpdated, .recordDeleted]
        #expect(reasons.map(\.rawValue) == [1, 2, 3])
        let roles: [CKShare.ParticipantRole] = [.unknown, .owner, .administrator, .privateUser, .publicUser]
        #expect(roles.map(\.rawValue) == [0, 1, 2, 3, 4])
        let permissions: [CKShare.ParticipantPermission] = [.unknown, .none, .readOnly, .readWrite]
        #expect(permissions.map(\.rawValue) == [0, 1, 2, 3])
        let acceptances: [CKShare.ParticipantAcceptanceStatus] = [.unknown, .pending, .accepted, .removed]
        #expect(acceptances.map(\.rawValue) == [0, 1, 2, 3])
    }

    @Test("names of the system have Apple's spelling")
    func names() {
        #expect(CKCurrentUserDefaultName == "__defaultOwner__")
        #expect(CKRecordZone.ID.defaultZoneName == "_defaultZone")
        #expect(CKRecord.SystemType.userRecord == "Users" && CKRecord.SystemType.share == "cloudkit.share")
        let keys = [
            CKShare.SystemFieldKey.title, CKShare.SystemFieldKey.thumbnailImageData, CKShare.SystemFieldKey.shareType,
        ]
        #expect(keys == ["cloudkit.title", "cloudkit.thumbnailImageData", "cloudkit.type"])
    }
}
