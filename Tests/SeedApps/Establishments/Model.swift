import CloudKit
import CoreLocation
import Foundation

// swift-format-ignore: AlwaysUseLowerCamelCase
let EstablishmentType = "Establishment"

protocol ModelDelegate: AnyObject {
    func errorUpdating(_ error: NSError)
    func modelUpdated()
}

/// The establishments near a place, of the public database.
class Model {
    weak var delegate: ModelDelegate?
    var items: [Establishment] = []

    let container: CKContainer
    let publicDB: CKDatabase
    let privateDB: CKDatabase

    init() {
        container = CKContainer.default()
        publicDB = container.publicCloudDatabase
        privateDB = container.privateCloudDatabase
    }

    func fetchEstablishments(_ location: CLLocation, radiusInMeters: CLLocationDistance) {
        let radiusInKilometers = radiusInMeters / 1000.0
        let locationPredicate = NSPredicate(
            format: "distanceToLocation:fromLocation:(%K,%@) < %f", "Location", location, radiusInKilometers)
        fetch(locationPredicate)
    }

    /// Those a predicate holds for, wherever they are.
    func fetch(_ predicate: NSPredicate) {
        let query = CKQuery(recordType: EstablishmentType, predicate: predicate)
        publicDB.perform(query, inZoneWith: nil) { results, error in
            if let error = error {
                DispatchQueue.main.async {
                    self.delegate?.errorUpdating(error as NSError)
                    return
                }
            } else {
                self.items.removeAll(keepingCapacity: true)
                for record in results! {
                    let establishment = Establishment(record: record, database: self.publicDB)
                    self.items.append(establishment)
                }
                DispatchQueue.main.async {
                    self.delegate?.modelUpdated()
                    return
                }
            }
        }
    }
}
