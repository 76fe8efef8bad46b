import CloudKit
import CoreLocation

/// The model of establishments, seed 002.
enum EstablishmentRows {
    static let rows: [SeedRow] =
        model + rules + [
            .console(37, "the sections of the dashboard"),
            .console(39, "records, places and images entered in the console"),
            .run(46, "Establishment.loadCoverPhoto") { surroundings in
                let database = CKContainer.default().publicCloudDatabase
                let saved = try await withCover(surroundings)
                let establishment = Establishment(record: saved, database: database)
                let photo: Data? = await completion { establishment.loadCoverPhoto(completion: $0) }
                try expectEqual(photo, surroundings.picture, "the photo")
                try await RestaurantRows.remove([saved])
            },
            .run(47, "assets come with their record unless left out, and go with it") { surroundings in
                let database = CKContainer.default().publicCloudDatabase
                let saved = try await withCover(surroundings)
                let without = try await database.records(for: [saved.recordID], desiredKeys: ["Name"])
                try expect(try without[saved.recordID]?.get()["CoverPhoto"] == nil, "left out")
                let photo = try need(
                    try await database.record(for: saved.recordID)["CoverPhoto"] as? CKAsset, "the photo")
                let url = try need(photo.fileURL, "its file")
                try expectEqual(try Data(contentsOf: url), surroundings.picture, "the photo, with its record")
                try await RestaurantRows.remove([saved])
                try await expectFailure(.unknownItem, of: "the record of the photo") {
                    try await database.record(for: saved.recordID)
                }
            },
        ]

    static func place(_ name: String, _ location: CLLocation, seats: SeatingType = []) -> CKRecord {
        let record = CKRecord(recordType: EstablishmentType)
        record["Name"] = name
        record["Location"] = location
        record["SeatingType"] = seats.rawValue
        record["ChangingTable"] = ChangingTableLocation.family.rawValue
        record["HealthyOption"] = true
        record["KidsMenu"] = false
        record["Rating"] = 4.5
        return record
    }

    /// A place that was saved with the picture, as a fetch gives it.
    private static func withCover(_ surroundings: Surroundings) async throws -> CKRecord {
        let database = CKContainer.default().publicCloudDatabase
        let record = place("Photo", CLLocation(latitude: 0, longitude: 0))
        try await surroundings.withPictureFile { file in
            record["CoverPhoto"] = CKAsset(fileURL: file)
            try await database.save(record)
        }
        return try await database.record(for: record.recordID)
    }

    /// Ferry Building, San Francisco.
    static let ferryBuilding = CLLocation(latitude: 37.7955, longitude: -122.3937)

    /// Three places: 0.9 km, 5.6 km and 61 km from the Ferry Building.
    static func three() -> [CKRecord] {
        let union = place("Mr. Union", CLLocation(latitude: 37.7880, longitude: -122.3975), seats: [.highChair])
        let mission = place("Mission Lunch", CLLocation(latitude: 37.7480, longitude: -122.4160), seats: [.booster])
        let cupertino = place("Cupertino Grill", CLLocation(latitude: 37.3318, longitude: -122.0312))
        mission["Note"] = "Strollers welcome, crayons at the counter"
        union["Note"] = "Crayons"
        return [union, mission, cupertino]
    }

    /// What the model finds, by name.
    static func names(_ start: (Model) -> Void) async throws -> [String] {
        let model = Model()
        let waiter = ModelWaiter()
        model.delegate = waiter
        let error: NSError? = await completion { done in
            waiter.done = done
            start(model)
        }
        if let error { throw error }
        return model.items.map(\.name).sorted()
    }

    static func withThree(_ body: ([CKRecord]) async throws -> Void) async throws {
        let records = three()
        _ = try await CKContainer.default().publicCloudDatabase.modifyRecords(
            saving: records, deleting: [], atomically: false
        ).saveResults.values.map { try $0.get() }
        try await body(records)
        try await RestaurantRows.remove(records)
    }
}

/// Waits for the model as the map's screen does.
private final class ModelWaiter: ModelDelegate {
    var done: ((NSError?) -> Void)?

    func errorUpdating(_ error: NSError) { done?(error) }
    func modelUpdated() { done?(nil) }
}
