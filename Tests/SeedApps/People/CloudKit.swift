import CloudKit

/// Create, retrieve, update and delete for whatever lives in records; its zone is `my-zone` of the private database.
struct CloudKit {
    typealias Cursor = CKQueryOperation.Cursor

    static let zone = CKRecordZone(zoneName: "my-zone")

    var container: CKContainer!
    var database: CKDatabase!

    init(containerId: String, usePublic: Bool = false) {
        container = CKContainer(identifier: containerId)
        database = usePublic ? container.publicCloudDatabase : container.privateCloudDatabase
    }

    func statusText() async throws -> String {
        switch try await container.accountStatus() {
        case .available:
            return "available"
        case .couldNotDetermine:
            return "could not determine"
        case .noAccount:
            return "no account"
        case .restricted:
            return "restricted"
        case .temporarilyUnavailable:
            return "temporarily unavailable"
        default:
            return "unknown"
        }
    }

    private func createOperation(
        recordType: CKRecord.RecordType,
        predicate: NSPredicate,
        sortDescriptors: [NSSortDescriptor]? = nil,
        resultsLimit: Int? = nil
    ) -> CKQueryOperation {
        let query = CKQuery(recordType: recordType, predicate: predicate)
        query.sortDescriptors = sortDescriptors
        let operation = CKQueryOperation(query: query)
        operation.zoneID = Self.zone.zoneID
        if let limit = resultsLimit {
            operation.resultsLimit = limit
        }
        return operation
    }

    /// The names of the records of a type, at most some, by an operation.
    func names(
        recordType: CKRecord.RecordType, resultsLimit: Int, completion: @escaping ([String], Error?) -> Void
    ) {
        let operation = createOperation(
            recordType: recordType, predicate: NSPredicate(value: true), resultsLimit: resultsLimit)
        var names: [String] = []
        operation.recordMatchedBlock = { recordID, _ in names.append(recordID.recordName) }
        operation.queryResultBlock = { result in
            switch result {
            case .success: completion(names, nil)
            case .failure(let error): completion(names, error)
            }
        }
        database.add(operation)
    }

    func subscribe(recordType: CKRecord.RecordType) async throws {
        let subscription = CKQuerySubscription(
            recordType: recordType,
            predicate: NSPredicate(value: true),
            options: [.firesOnRecordCreation, .firesOnRecordDeletion, .firesOnRecordUpdate]
        )
        let info = CKSubscription.NotificationInfo()
        info.shouldSendContentAvailable = true
        info.alertBody = ""
        subscription.notificationInfo = info
        try await database.save(subscription)
    }
}
