import CloudKit

/// What lives in a record.
protocol CloudKitable {
    init(record: CKRecord)
    var record: CKRecord { get }
}
