import CloudKit

/// What a line of the list shows of a task, and its check mark.
struct TaskRow {
    let record: CKRecord

    var title: String { record.object(forKey: "title") as? String ?? "" }
    var createdAt: Date? { record.object(forKey: "createdAt") as? Date }
    var checked: Bool { (record.object(forKey: "checked") as? Int64) == 1 }

    func toggleChecked(at now: Date) {
        record.setObject((checked ? 0 : 1) as __CKRecordObjCValue, forKey: "checked")
        record.setObject(now as __CKRecordObjCValue, forKey: "modifiedAt")
    }
}
