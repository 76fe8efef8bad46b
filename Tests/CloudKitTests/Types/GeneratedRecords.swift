import CloudKit
import CoreLocation
import Foundation

/// A record of the type "Place".
struct Place {
    static let recordType = "Place"
    let record: CKRecord

    init(recordID: CKRecord.ID = CKRecord.ID(recordName: UUID().uuidString)) {
        record = CKRecord(recordType: Self.recordType, recordID: recordID)
    }

    /// Nil for a record of another type.
    init?(_ record: CKRecord) {
        guard record.recordType == Self.recordType else { return nil }
        self.record = record
    }

    var `class`: String? {
        get { record["class"] as? String }
        nonmutating set { record["class"] = newValue }
    }

    var code: String? {
        get { record.encryptedValues["code"] as? String }
        nonmutating set { record.encryptedValues["code"] = newValue }
    }

    var count: Int64? {
        get { record["count"] as? Int64 }
        nonmutating set { record["count"] = newValue }
    }

    var hash: Data? {
        get { record["hash"] as? Data }
        nonmutating set { record["hash"] = newValue }
    }

    var height: Double? {
        get { record["height"] as? Double }
        nonmutating set { record["height"] = newValue }
    }

    var image: CKAsset? {
        get { record["image"] as? CKAsset }
        nonmutating set { record["image"] = newValue }
    }

    var images: [CKAsset]? {
        get { record["images"] as? [CKAsset] }
        nonmutating set { record["images"] = newValue }
    }

    var name: String? {
        get { record["name"] as? String }
        nonmutating set { record["name"] = newValue }
    }

    var near: CKRecord.Reference? {
        get { record["near"] as? CKRecord.Reference }
        nonmutating set { record["near"] = newValue }
    }

    var opened: Date? {
        get { record["opened"] as? Date }
        nonmutating set { record["opened"] = newValue }
    }

    var record2: String? {
        get { record["record"] as? String }
        nonmutating set { record["record"] = newValue }
    }

    var recordType2: Int64? {
        get { record["recordType"] as? Int64 }
        nonmutating set { record["recordType"] = newValue }
    }

    var secrets: [Int64]? {
        get { record.encryptedValues["secrets"] as? [Int64] }
        nonmutating set { record.encryptedValues["secrets"] = newValue }
    }

    var spot: CLLocation? {
        get { record["spot"] as? CLLocation }
        nonmutating set { record["spot"] = newValue }
    }

    var tags: [String]? {
        get { record["tags"] as? [String] }
        nonmutating set { record["tags"] = newValue }
    }
}

/// A record of the type "place".
struct Place2 {
    static let recordType = "place"
    let record: CKRecord

    init(recordID: CKRecord.ID = CKRecord.ID(recordName: UUID().uuidString)) {
        record = CKRecord(recordType: Self.recordType, recordID: recordID)
    }

    /// Nil for a record of another type.
    init?(_ record: CKRecord) {
        guard record.recordType == Self.recordType else { return nil }
        self.record = record
    }
}
