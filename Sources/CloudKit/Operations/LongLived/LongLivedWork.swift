import Foundation

/// An operation that can be kept on disk: what it is to do, without its blocks.
protocol LongLivedWork: CKDatabaseOperation {
    /// The name that its file has for the class; subclasses of apps come back as this one.
    static var workName: String { get }
    /// Writes what it is to do.
    func encodeWork(with coder: NSCoder)
    /// Takes over what was written.
    func decodeWork(with coder: NSCoder)
}

enum LongLivedClasses {
    private static let makers: [String: @Sendable () -> any LongLivedWork] = [
        CKModifyRecordsOperation.workName: { CKModifyRecordsOperation() },
        CKFetchRecordsOperation.workName: { CKFetchRecordsOperation() },
        CKQueryOperation.workName: { CKQueryOperation() },
        CKModifyRecordZonesOperation.workName: { CKModifyRecordZonesOperation() },
        CKFetchRecordZonesOperation.workName: { CKFetchRecordZonesOperation() },
        CKFetchDatabaseChangesOperation.workName: { CKFetchDatabaseChangesOperation() },
        CKFetchRecordZoneChangesOperation.workName: { CKFetchRecordZoneChangesOperation() },
        CKModifySubscriptionsOperation.workName: { CKModifySubscriptionsOperation() },
        CKFetchSubscriptionsOperation.workName: { CKFetchSubscriptionsOperation() },
    ]

    /// A new operation of a class; nil for a name that this version does not know.
    static func make(_ name: String) -> (any LongLivedWork)? { makers[name]?() }
}

extension CKModifyRecordsOperation: LongLivedWork {
    static var workName: String { "CKModifyRecordsOperation" }

    func encodeWork(with coder: NSCoder) {
        coder.write(objects: recordsToSave, "RecordsToSave")
        coder.write(objects: recordIDsToDelete, "RecordIDsToDelete")
        coder.encode(Int64(savePolicy.rawValue), forKey: "SavePolicy")
        coder.encode(isAtomic, forKey: "IsAtomic")
        coder.write(clientChangeTokenData.map { $0 as NSData }, "ClientChangeTokenData")
    }

    func decodeWork(with coder: NSCoder) {
        recordsToSave = coder.objects(CKRecord.self, "RecordsToSave")
        recordIDsToDelete = coder.objects(CKRecordID.self, "RecordIDsToDelete")
        savePolicy = RecordSavePolicy(rawValue: coder.integer("SavePolicy")) ?? .ifServerRecordUnchanged
        isAtomic = coder.decodeBool(forKey: "IsAtomic")
        clientChangeTokenData = coder.object(NSData.self, "ClientChangeTokenData") as Data?
    }
}

extension CKFetchRecordsOperation: LongLivedWork {
    static var workName: String { "CKFetchRecordsOperation" }

    func encodeWork(with coder: NSCoder) {
        coder.write(objects: recordIDs, "RecordIDs")
        coder.write(desiredKeys, "DesiredKeys")
        coder.encode(isForCurrentUser, forKey: "IsForCurrentUser")
    }

    func decodeWork(with coder: NSCoder) {
        recordIDs = coder.objects(CKRecordID.self, "RecordIDs")
        desiredKeys = coder.texts("DesiredKeys")
        isForCurrentUser = coder.decodeBool(forKey: "IsForCurrentUser")
    }
}

extension CKQueryOperation: LongLivedWork {
    static var workName: String { "CKQueryOperation" }

    func encodeWork(with coder: NSCoder) {
        coder.write(query, "Query")
        coder.write(cursor, "Cursor")
        coder.write(zoneID, "ZoneID")
        coder.encode(Int64(resultsLimit), forKey: "ResultsLimit")
        coder.write(desiredKeys, "DesiredKeys")
    }

    func decodeWork(with coder: NSCoder) {
        query = coder.object(CKQuery.self, "Query")
        cursor = coder.object(CKQueryCursor.self, "Cursor")
        zoneID = coder.object(CKRecordZoneID.self, "ZoneID")
        resultsLimit = coder.integer("ResultsLimit")
        desiredKeys = coder.texts("DesiredKeys")
    }
}

extension CKModifyRecordZonesOperation: LongLivedWork {
    static var workName: String { "CKModifyRecordZonesOperation" }

    func encodeWork(with coder: NSCoder) {
        coder.write(objects: recordZonesToSave, "ZonesToSave")
        coder.write(objects: recordZoneIDsToDelete, "ZoneIDsToDelete")
    }

    func decodeWork(with coder: NSCoder) {
        recordZonesToSave = coder.objects(CKRecordZone.self, "ZonesToSave")
        recordZoneIDsToDelete = coder.objects(CKRecordZoneID.self, "ZoneIDsToDelete")
    }
}

extension CKFetchRecordZonesOperation: LongLivedWork {
    static var workName: String { "CKFetchRecordZonesOperation" }

    func encodeWork(with coder: NSCoder) { coder.write(objects: recordZoneIDs, "ZoneIDs") }

    func decodeWork(with coder: NSCoder) { recordZoneIDs = coder.objects(CKRecordZoneID.self, "ZoneIDs") }
}

extension CKFetchDatabaseChangesOperation: LongLivedWork {
    static var workName: String { "CKFetchDatabaseChangesOperation" }

    func encodeWork(with coder: NSCoder) {
        coder.write(previousServerChangeToken, "PreviousServerChangeToken")
        coder.encode(Int64(resultsLimit), forKey: "ResultsLimit")
        coder.encode(fetchAllChanges, forKey: "FetchAllChanges")
    }

    func decodeWork(with coder: NSCoder) {
        previousServerChangeToken = coder.object(CKServerChangeToken.self, "PreviousServerChangeToken")
        resultsLimit = coder.integer("ResultsLimit")
        fetchAllChanges = coder.decodeBool(forKey: "FetchAllChanges")
    }
}

extension CKFetchRecordZoneChangesOperation: LongLivedWork {
    static var workName: String { "CKFetchRecordZoneChangesOperation" }

    func encodeWork(with coder: NSCoder) {
        coder.write(objects: recordZoneIDs, "ZoneIDs")
        coder.encode(fetchAllChanges, forKey: "FetchAllChanges")
        let configurations = configurationsByRecordZoneID.map { Array($0) }
        coder.write(objects: configurations?.map(\.key), "ConfiguredZoneIDs")
        coder.write(objects: configurations?.map(\.value), "Configurations")
    }

    func decodeWork(with coder: NSCoder) {
        recordZoneIDs = coder.objects(CKRecordZoneID.self, "ZoneIDs")
        fetchAllChanges = coder.decodeBool(forKey: "FetchAllChanges")
        guard let zones = coder.objects(CKRecordZoneID.self, "ConfiguredZoneIDs"),
            let configurations = coder.objects(CKFetchRecordZoneChangesConfiguration.self, "Configurations")
        else { return }
        configurationsByRecordZoneID = Dictionary(zip(zones, configurations)) { first, _ in first }
    }
}

extension CKModifySubscriptionsOperation: LongLivedWork {
    static var workName: String { "CKModifySubscriptionsOperation" }

    func encodeWork(with coder: NSCoder) {
        coder.write(objects: subscriptionsToSave, "SubscriptionsToSave")
        coder.write(subscriptionIDsToDelete, "SubscriptionIDsToDelete")
    }

    func decodeWork(with coder: NSCoder) {
        subscriptionsToSave = coder.objects(CKSubscription.self, "SubscriptionsToSave")
        subscriptionIDsToDelete = coder.texts("SubscriptionIDsToDelete")
    }
}

extension CKFetchSubscriptionsOperation: LongLivedWork {
    static var workName: String { "CKFetchSubscriptionsOperation" }

    func encodeWork(with coder: NSCoder) { coder.write(subscriptionIDs, "SubscriptionIDs") }

    func decodeWork(with coder: NSCoder) { subscriptionIDs = coder.texts("SubscriptionIDs") }
}

extension NSCoder {
    fileprivate func write(objects: [some NSObject]?, _ key: String) {
        if let objects { encode(NSArray(array: objects), forKey: key) }
    }

    fileprivate func objects<T: NSObject & NSCoding>(_ type: T.Type, _ key: String) -> [T]? {
        containsValue(forKey: key) ? decodeObject(of: [NSArray.self, type], forKey: key) as? [T] : nil
    }
}
