import CloudKit

extension RestaurantRows {
    static let fetching: [SeedRow] = [
        .run(9, "records(matching:) and reading its match results") { surroundings in
            let made = try await make(3, surroundings)
            let query = CKQuery(recordType: "Restaurant", predicate: NSPredicate(value: true))
            let results = try await CKContainer.default().publicCloudDatabase.records(matching: query)
            var names: [String] = []
            for record in results.matchResults { names.append(try record.1.get().recordID.recordName) }
            try expectEqual(Set(names), Set(made.map(\.recordID.recordName)), "the records")
            try await remove(made)
        },
        .run(10, "records(matching:inZoneWith:desiredKeys:resultsLimit:) and its defaults") { surroundings in
            let made = try await make(3, surroundings)
            let database = CKContainer.default().publicCloudDatabase
            let query = CKQuery(recordType: "Restaurant", predicate: NSPredicate(value: true))
            let page:
                (matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)], queryCursor: CKQueryOperation.Cursor?) =
                    try await database.records(
                        matching: query, inZoneWith: CKRecordZone.ID.default, desiredKeys: ["phone"], resultsLimit: 2)
            try expectEqual(page.matchResults.count, 2, "records of the first page")
            let keys = try page.matchResults.map { try $0.1.get().allKeys() }
            try expectEqual(keys, [["phone"], ["phone"]], "the keys that came")
            let rest = try await database.records(continuingMatchFrom: try need(page.queryCursor, "the cursor"))
            try expectEqual(rest.matchResults.count, 1, "records of the second page")
            try expect(rest.queryCursor == nil, "the second page is the last")
            try await remove(made)
        },
        .run(11, "RestaurantCloudStore.fetchRestaurants") { surroundings in
            let made = try await make(4, surroundings)
            let store = RestaurantCloudStore()
            try await store.fetchRestaurants()
            try expectEqual(Set(store.restaurants.map(\.recordID)), Set(made.map(\.recordID)), "the records")
            try await remove(made)
        },
        .run(12, "object(forKey:) as! String, and record IDs as identities") { surroundings in
            let saved = try await save(sample(surroundings))
            let store = RestaurantCloudStore()
            try await store.fetchRestaurants()
            let byID = Dictionary(grouping: store.restaurants, by: \.recordID)
            let found = try need(byID[saved.recordID]?.first, "the restaurant")
            try expectEqual(found.object(forKey: "name") as! String, sample(surroundings).name, "its name")
            try expectEqual(found.object(forKey: "description") as! String, "A small place.", "its description")
            try expect(found.object(forKey: "image") == nil, "it has no image")
            try await remove([saved])
        },
        .run(14, "CKQueryOperation with desired keys, a priority and both blocks") { surroundings in
            let made = try await make(3, surroundings)
            let store = RestaurantCloudStore()
            try await fetchFirst(store)
            try expectEqual(store.restaurants.count, 3, "the records")
            for record in store.restaurants { try expectEqual(record.allKeys(), ["name"], "the keys that came") }
            try expect(store.cursor == nil, "there is no more")
            try await remove(made)
        },
        .run(15, "a cursor goes on: a hundred records in two pages") { surroundings in
            let made = try await make(100, surroundings)
            let store = RestaurantCloudStore()
            try await fetchFirst(store)
            try expectEqual(store.restaurants.count, 50, "the first page")
            try expect(store.cursor != nil, "there is more")
            try await fetchMore(store)
            try expectEqual(store.restaurants.count, 100, "both pages")
            try expectEqual(Set(store.restaurants.map(\.recordID)), Set(made.map(\.recordID)), "the records")
            try await remove(made)
        },
        .run(16, "the completion closure, and no restaurant twice") { surroundings in
            let made = try await make(5, surroundings)
            let store = RestaurantCloudStore()
            try await fetchFirst(store)
            try await fetchFirst(store)
            try expectEqual(store.restaurants.count, 5, "the records after two fetches")
            try await remove(made)
        },
        .run(21, "sorted by creationDate, the newest first") { surroundings in
            var made: [CKRecord] = []
            for number in 0..<3 { made.append(try await save(sample(surroundings, number: number))) }
            let store = RestaurantCloudStore()
            try await store.fetchRestaurants()
            let dates = store.restaurants.compactMap(\.creationDate)
            try expectEqual(dates.count, 3, "the dates")
            try expectEqual(dates, dates.sorted(by: >), "their order")
            try expectEqual(dates.max(), made[2].creationDate, "the newest")
            try await remove(made)
        },
    ]

    private static func fetchFirst(_ store: RestaurantCloudStore) async throws {
        let error: Error? = await completion { store.fetchRestaurantsWithOperational(completion: $0) }
        if let error { throw error }
    }

    private static func fetchMore(_ store: RestaurantCloudStore) async throws {
        let error: Error? = await completion { store.fetchMoreRestaurants(completion: $0) }
        if let error { throw error }
    }
}
