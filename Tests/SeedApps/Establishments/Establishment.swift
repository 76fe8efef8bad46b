import CloudKit
import CoreLocation
import Foundation

/// Where one can change a baby.
struct ChangingTableLocation: OptionSet {
    let rawValue: Int

    static let womens = ChangingTableLocation(rawValue: 1 << 0)
    static let mens = ChangingTableLocation(rawValue: 1 << 1)
    static let family: ChangingTableLocation = [.womens, .mens]
}

/// What a child sits on.
struct SeatingType: OptionSet {
    let rawValue: Int

    static let booster = SeatingType(rawValue: 1 << 0)
    static let highChair = SeatingType(rawValue: 1 << 1)
}

/// A place that welcomes children, as its record tells.
class Establishment: NSObject {
    let record: CKRecord
    let name: String
    let location: CLLocation
    weak var database: CKDatabase?

    init(record: CKRecord, database: CKDatabase) {
        self.record = record
        self.database = database
        self.name = record.object(forKey: "Name") as! String
        self.location = record.object(forKey: "Location") as! CLLocation
    }

    func changingTable() -> ChangingTableLocation {
        let value = record.object(forKey: "ChangingTable") as? NSNumber
        return ChangingTableLocation(rawValue: value?.intValue ?? 0)
    }

    func seatingType() -> SeatingType {
        let value = record.object(forKey: "SeatingType") as? NSNumber
        return SeatingType(rawValue: value?.intValue ?? 0)
    }

    func healthyOption() -> Bool {
        (record.object(forKey: "HealthyOption") as? NSNumber)?.boolValue ?? false
    }

    func kidsMenu() -> Bool {
        (record.object(forKey: "KidsMenu") as? NSNumber)?.boolValue ?? false
    }

    func loadCoverPhoto(completion: @escaping (_ photo: Data?) -> Void) {
        DispatchQueue.global(qos: .userInitiated).async {
            var photo: Data?
            if let coverPhoto = self.record.object(forKey: "CoverPhoto") as? CKAsset, let url = coverPhoto.fileURL {
                photo = try? Data(contentsOf: url)
            }
            completion(photo)
        }
    }
}
