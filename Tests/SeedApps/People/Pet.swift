import CloudKit

class Pet: CloudKitable, Hashable, Identifiable {
    var record: CKRecord

    required init(record: CKRecord) {
        self.record = record
    }

    convenience init(name: String, breed: String, owner: Person) {
        let recordID = CKRecord.ID(zoneID: CloudKit.zone.zoneID)
        self.init(record: CKRecord(recordType: "Pets", recordID: recordID))
        self.name = name
        self.breed = breed
        record["ownedBy"] = CKRecord.Reference(recordID: owner.record.recordID, action: .deleteSelf)
    }

    var id: String { record.recordID.recordName }

    var name: String {
        get { record["name"] as? String ?? "" }
        set { record["name"] = newValue }
    }

    var breed: String {
        get { record["breed"] as? String ?? "" }
        set { record["breed"] = newValue }
    }

    var owner: CKRecord.Reference? { record["ownedBy"] as? CKRecord.Reference }

    static func == (lhs: Pet, rhs: Pet) -> Bool {
        lhs.record == rhs.record
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(record)
    }
}
