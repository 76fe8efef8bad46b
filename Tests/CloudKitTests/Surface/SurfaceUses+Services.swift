import CloudKit

extension SurfaceUses {
    static func subscriptionOperations(
        _ modify: CKModifySubscriptionsOperation, _ fetch: CKFetchSubscriptionsOperation
    ) {
        let _: [CKModifySubscriptionsOperation] = [
            CKModifySubscriptionsOperation(subscriptionsToSave: []),
            CKModifySubscriptionsOperation(subscriptionsToSave: nil, subscriptionIDsToDelete: ["s"]),
        ]
        modify.subscriptionsToSave = [CKDatabaseSubscription(subscriptionID: "s")]
        modify.subscriptionIDsToDelete = ["s"]
        modify.perSubscriptionSaveBlock = { (_: CKSubscription.ID, _: Result<CKSubscription, any Error>) in }
        modify.perSubscriptionDeleteBlock = { (_: CKSubscription.ID, _: Result<Void, any Error>) in }
        modify.modifySubscriptionsResultBlock = { (_: Result<Void, any Error>) in }
        let _: [CKFetchSubscriptionsOperation] = [
            CKFetchSubscriptionsOperation(subscriptionIDs: ["s"]),
            CKFetchSubscriptionsOperation.fetchAllSubscriptionsOperation(),
        ]
        fetch.subscriptionIDs = ["s"]
        fetch.perSubscriptionResultBlock = { (_: CKSubscription.ID, _: Result<CKSubscription, any Error>) in }
        fetch.fetchSubscriptionsResultBlock = { (_: Result<Void, any Error>) in }
    }

    static func subscriptionHandlers(_ database: CKDatabase, _ subscription: CKSubscription) {
        database.save(subscription) { (_: CKSubscription?, _: (any Error)?) in }
        database.fetch(withSubscriptionID: "s") { (_: CKSubscription?, _: (any Error)?) in }
        database.fetch(withSubscriptionIDs: ["s"]) {
            (_: Result<Results<CKSubscription.ID, CKSubscription>, any Error>) in
        }
        database.fetchAllSubscriptions { (_: [CKSubscription]?, _: (any Error)?) in }
        database.delete(withSubscriptionID: "s") { (_: String?, _: (any Error)?) in }
        database.modifySubscriptions(saving: [subscription], deleting: []) { result in
            let _: Results<CKSubscription.ID, CKSubscription>? = try? result.get().saveResults
        }
        database.modifyRecordZones(saving: [], deleting: []) { result in
            let _: Results<CKRecordZone.ID, Void>? = try? result.get().deleteResults
        }
    }

    static func notificationInfo(_ info: CKSubscription.NotificationInfo) {
        for text in [
            \CKSubscription.NotificationInfo.alertBody, \.alertLocalizationKey, \.title, \.titleLocalizationKey,
            \.subtitle,
            \.subtitleLocalizationKey, \.alertActionLocalizationKey, \.alertLaunchImage, \.soundName, \.category,
            \.collapseIDKey,
        ] as [ReferenceWritableKeyPath<CKSubscription.NotificationInfo, String?>] { info[keyPath: text] = "a" }
        for keys in [
            \CKSubscription.NotificationInfo.alertLocalizationArgs, \.titleLocalizationArgs, \.subtitleLocalizationArgs,
            \.desiredKeys,
        ] as [ReferenceWritableKeyPath<CKSubscription.NotificationInfo, [CKRecord.FieldKey]?>] {
            info[keyPath: keys] = ["a"]
        }
        info.shouldBadge = true
        info.shouldSendMutableContent = true
    }

    static func notification(_ notification: CKNotification) {
        let _: (CKNotification.NotificationType, CKNotification.ID?) =
            (notification.notificationType, notification.notificationID)
        let _: [String?] = [notification.containerIdentifier, notification.subscriptionID]
        let _: (CKRecord.ID?, Bool) = (notification.subscriptionOwnerUserRecordID, notification.isPruned)
        switch notification {
        case let query as CKQueryNotification:
            let _: (CKQueryNotification.Reason, [String: Any]?, CKRecord.ID?, CKDatabase.Scope) =
                (query.queryNotificationReason, query.recordFields, query.recordID, query.databaseScope)
        case let zone as CKRecordZoneNotification:
            let _: (CKRecordZone.ID?, CKDatabase.Scope) = (zone.recordZoneID, zone.databaseScope)
        case let database as CKDatabaseNotification:
            let _: CKDatabase.Scope = database.databaseScope
        default: break
        }
    }

    static func sharingOperations(_ metadata: CKFetchShareMetadataOperation, _ accept: CKAcceptSharesOperation) {
        let _ = CKFetchShareMetadataOperation(shareURLs: [])
        metadata.shareURLs = []
        metadata.shouldFetchRootRecord = true
        metadata.rootRecordDesiredKeys = ["a"]
        metadata.perShareMetadataResultBlock = { (_: URL, _: Result<CKShare.Metadata, any Error>) in }
        metadata.fetchShareMetadataResultBlock = { (_: Result<Void, any Error>) in }
        let _ = CKAcceptSharesOperation(shareMetadatas: [])
        accept.shareMetadatas = []
        accept.perShareResultBlock = { (_: CKShare.Metadata, _: Result<CKShare, any Error>) in }
        accept.acceptSharesResultBlock = { (_: Result<Void, any Error>) in }
        let people = CKFetchShareParticipantsOperation(userIdentityLookupInfos: [])
        people.userIdentityLookupInfos = [CKUserIdentity.LookupInfo(emailAddress: "a@example.com")]
        people.perShareParticipantResultBlock = {
            (_: CKUserIdentity.LookupInfo, _: Result<CKShare.Participant, any Error>) in
        }
        people.fetchShareParticipantsResultBlock = { (_: Result<Void, any Error>) in }
    }

    static func share(_ record: CKRecord, _ metadata: CKShare.Metadata) {
        let share = CKShare(rootRecord: record)
        let _: [CKShare] = [
            CKShare(rootRecord: record, shareID: CKRecord.ID(recordName: "s")), CKShare(recordZoneID: .default),
            metadata.share,
        ]
        let _: ([CKShare.Participant], CKShare.Participant, CKShare.Participant?, URL?) =
            (share.participants, share.owner, share.currentUserParticipant, share.url)
        let _: (String, CKRecord.ID?, CKRecord?) =
            (metadata.containerIdentifier, metadata.hierarchicalRootRecordID, metadata.rootRecord)
        let _: (CKShare.ParticipantRole, CKShare.ParticipantAcceptanceStatus, CKShare.ParticipantPermission) =
            (metadata.participantRole, metadata.participantStatus, metadata.participantPermission)
        let identity: CKUserIdentity = metadata.ownerIdentity
        let _: (CKRecord.ID?, CKUserIdentity.LookupInfo?, PersonNameComponents?, Bool) =
            (identity.userRecordID, identity.lookupInfo, identity.nameComponents, identity.hasiCloudAccount)
        let _: [String?] = [identity.lookupInfo?.emailAddress, identity.lookupInfo?.phoneNumber]
        let _: CKRecord.ID? = identity.lookupInfo?.userRecordID
        let _: CKShare.Participant.ID = share.owner.participantID
    }

    static func preferences(_ store: NSUbiquitousKeyValueStore) {
        let _: [NSUbiquitousKeyValueStore] = [NSUbiquitousKeyValueStore(), NSUbiquitousKeyValueStore.default]
        let _: (Any?, String?, [Any]?) = (
            store.object(forKey: "a"), store.string(forKey: "a"), store.array(forKey: "a")
        )
        let _: ([String: Any]?, Data?) = (store.dictionary(forKey: "a"), store.data(forKey: "a"))
        let _: (Int64, Double, Bool) = (store.longLong(forKey: "a"), store.double(forKey: "a"), store.bool(forKey: "a"))
        store.set("text", forKey: "a")
        store.set(Data(), forKey: "a")
        store.set(["a"], forKey: "a")
        store.set(["a": 1], forKey: "a")
        store.set(Int64(1), forKey: "a")
        store.set(1.5, forKey: "a")
        store.set(true, forKey: "a")
        store.set(nil as Any?, forKey: "a")
        store.removeObject(forKey: "a")
        store.synchronize()
        let _: [String: Any] = store.dictionaryRepresentation
        let _: NSNotification.Name = NSUbiquitousKeyValueStore.didChangeExternallyNotification
        let _: [String] = [NSUbiquitousKeyValueStoreChangeReasonKey, NSUbiquitousKeyValueStoreChangedKeysKey]
        let _: [Int] = [
            NSUbiquitousKeyValueStoreServerChange, NSUbiquitousKeyValueStoreInitialSyncChange,
            NSUbiquitousKeyValueStoreQuotaViolationChange, NSUbiquitousKeyValueStoreAccountChange,
        ]
    }
}
