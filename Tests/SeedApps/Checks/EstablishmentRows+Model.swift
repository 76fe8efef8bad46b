import CloudKit
import CoreLocation

extension EstablishmentRows {
    static let model: [SeedRow] = [
        .run(38, "the record type Establishment takes its fields") { _ in
            let record = place("Corner", ferryBuilding, seats: [.booster, .highChair])
            let saved = try await CKContainer.default().publicCloudDatabase.save(record)
            let fetched = try await CKContainer.default().publicCloudDatabase.record(for: saved.recordID)
            let establishment = Establishment(record: fetched, database: CKContainer.default().publicCloudDatabase)
            try expectEqual(establishment.name, "Corner", "the name")
            try expectEqual(establishment.location.coordinate.latitude, 37.7955, "the latitude")
            try expectEqual(establishment.seatingType(), [.booster, .highChair], "the seats")
            try expectEqual(establishment.changingTable(), .family, "the changing table")
            try expect(establishment.healthyOption() && !establishment.kidsMenu(), "the truth values")
            try expectEqual(fetched["Rating"] as? Double, 4.5, "the rating")
            try await RestaurantRows.remove([saved])
        },
        .run(41, "fetchEstablishments: distanceToLocation in kilometres, with a completion handler") { _ in
            try await withThree { _ in
                let near = try await names { $0.fetchEstablishments(ferryBuilding, radiusInMeters: 2_000) }
                try expectEqual(near, ["Mr. Union"], "within 2 km")
                let further = try await names { $0.fetchEstablishments(ferryBuilding, radiusInMeters: 10_000) }
                try expectEqual(further, ["Mission Lunch", "Mr. Union"], "within 10 km")
                let all = try await names { $0.fetchEstablishments(ferryBuilding, radiusInMeters: 100_000) }
                try expectEqual(all.count, 3, "within 100 km")
            }
        },
        .run(42, "the model's container and databases") { surroundings in
            let model = Model()
            try expectEqual(model.container.containerIdentifier, surroundings.ada.container, "the container")
            try expectEqual(model.publicDB.databaseScope, .public, "the first database")
            try expectEqual(model.privateDB.databaseScope, .private, "the second")
        },
        .run(44, "predicates: BEGINSWITH, equality, IN, words, and several together") { _ in
            try await withThree { _ in
                let predicates: [(NSPredicate, [String])] = [
                    (NSPredicate(format: "Name BEGINSWITH %@", "M"), ["Mission Lunch", "Mr. Union"]),
                    (NSPredicate(format: "SeatingType = %d", SeatingType.booster.rawValue), ["Mission Lunch"]),
                    (NSPredicate(format: "SeatingType IN %@", [1, 2]), ["Mission Lunch", "Mr. Union"]),
                    (NSPredicate(format: "self CONTAINS %@", "strollers"), ["Mission Lunch"]),
                    (NSPredicate(format: "self CONTAINS 'lunch union'"), ["Mission Lunch", "Mr. Union"]),
                    (
                        NSPredicate(format: "Name BEGINSWITH 'M' AND self CONTAINS %@ AND Rating > %f", "crayons", 4.0),
                        ["Mission Lunch", "Mr. Union"]
                    ),
                    (
                        NSPredicate(
                            format: "distanceToLocation:fromLocation:(Location,%@) < 10 && SeatingType != 2",
                            ferryBuilding),
                        ["Mission Lunch"]
                    ),
                ]
                for (number, (predicate, expected)) in predicates.enumerated() {
                    try expectEqual(
                        try await names { $0.fetch(predicate) }, expected, "found by predicate \(number)")
                }
            }
        },
    ]
}
