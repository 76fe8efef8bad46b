import CloudKit

enum FetchError {
    case fetchingError, noRecords, addingError, deletingError, none
}

/// The tasks of the public list, with completion handlers.
struct TaskCloudService {
    // swift-format-ignore: AlwaysUseLowerCamelCase
    private let RecordType = "Task"
    private let database: CKDatabase

    init(containerIdentifier: String) {
        database = CKContainer(identifier: containerIdentifier).publicCloudDatabase
    }

    func fetchTasks(completion: @escaping ([CKRecord]?, FetchError) -> Void) {
        let query = CKQuery(recordType: RecordType, predicate: NSPredicate(value: true))
        query.sortDescriptors = [NSSortDescriptor(key: "createdAt", ascending: false)]

        database.perform(
            query, inZoneWith: CKRecordZone.default().zoneID,
            completionHandler: { (records, error) -> Void in
                self.processQueryResponseWith(
                    records: records, error: error as NSError?,
                    completion: { fetchedRecords, fetchError in
                        completion(fetchedRecords, fetchError)
                    })
            })
    }

    func addTask(_ title: String, at now: Date, completionHandler: @escaping (CKRecord?, FetchError) -> Void) {
        let task = CKRecord(recordType: RecordType)
        task.setObject(title as __CKRecordObjCValue, forKey: "title")
        task.setObject(now as __CKRecordObjCValue, forKey: "createdAt")
        task.setObject(0 as __CKRecordObjCValue, forKey: "checked")

        database.save(
            task,
            completionHandler: { (record, error) in
                guard let _ = error else {
                    completionHandler(record, .none)
                    return
                }
                completionHandler(nil, .addingError)
            })
    }

    func updateTask(_ task: CKRecord, completionHandler: @escaping (CKRecord?, FetchError) -> Void) {
        database.save(
            task,
            completionHandler: { (record, error) in
                guard let _ = error else {
                    completionHandler(record, .none)
                    return
                }
                completionHandler(nil, .addingError)
            })
    }

    func deleteRecord(_ record: CKRecord, completionHandler: @escaping (FetchError) -> Void) {
        database.delete(withRecordID: record.recordID) { (recordID, error) in
            guard let _ = error else {
                completionHandler(.none)
                return
            }
            completionHandler(.deletingError)
        }
    }

    private func processQueryResponseWith(
        records: [CKRecord]?, error: NSError?, completion: @escaping ([CKRecord]?, FetchError) -> Void
    ) {
        guard error == nil else {
            completion(nil, .fetchingError)
            return
        }
        guard let records = records, records.count > 0 else {
            completion(nil, .noRecords)
            return
        }
        completion(records, .none)
    }
}
