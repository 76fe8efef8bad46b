import CloudKit

class Person: CloudKitable, Hashable, Identifiable {
    var record: CKRecord

    required init(record: CKRecord) {
        self.record = record
    }

    convenience init(firstName: String, lastName: String) {
        let recordID = CKRecord.ID(zoneID: CloudKit.zone.zoneID)
        self.init(record: CKRecord(recordType: "People", recordID: recordID))
        self.firstName = firstName
        self.lastName = lastName
    }

    var id: String { record.recordID.recordName }

    var firstName: String {
        get { record["firstName"] as? String ?? "" }
        set { record["firstName"] = newValue }
    }

    var lastName: String {
        get { record["lastName"] as? String ?? "" }
        set { record["lastName"] = newValue }
    }

    static func == (lhs: Person, rhs: Person) -> Bool {
        lhs.record == rhs.record
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(record)
    }
}
