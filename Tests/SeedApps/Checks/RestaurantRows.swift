import CloudKit

/// The restaurants' app, seed 000.
enum RestaurantRows {
    static let rows: [SeedRow] =
        fetching + saving + [
            .run(1, "CKContainer.default() is the container of the environment") { surroundings in
                let name = try need(ProcessInfo.processInfo.environment["ZONEKEEPER_CONTAINER"], "the variable")
                try expectEqual(CKContainer.default().containerIdentifier, name, "the default container")
            },
            .run(2, "a container has a public, a private and a shared database; its name is taken once") {
                surroundings in
                let container = CKContainer.default()
                let databases = [
                    container.publicCloudDatabase, container.privateCloudDatabase, container.sharedCloudDatabase,
                ]
                try expectEqual(databases.map(\.databaseScope), [.public, .private, .shared], "the scopes")
                let again = try CommandLineTool.zonekeeper("container", "create", surroundings.ada.container)
                try expect(again.status == 1 && again.errors.contains("EXISTS"), "made twice: \(again)")
            },
            .console(3, "the list of containers, development and production"),
            .console(4, "a record type made in the console"),
            .console(5, "the system fields of a new type"),
            .console(6, "records made in the console"),
            .run(7, "a query without its index says so") { _ in
                let query = CKQuery(recordType: "Unindexed", predicate: NSPredicate(value: true))
                let error = try await expectFailure(.invalidArguments, of: "a query without an index") {
                    try await CKContainer.default().publicCloudDatabase.records(matching: query)
                }
                try expect(
                    error.localizedDescription.contains("is not marked queryable"),
                    "it says: \(error.localizedDescription)")
            },
            .console(8, "an index made in the console"),
            .run(13, "the image of a restaurant is a file to read") { surroundings in
                let image = surroundings.picture
                let saved = try await save(sample(surroundings, image: image))
                let fetched = try await CKContainer.default().publicCloudDatabase.record(for: saved.recordID)
                let url = try need(RestaurantCloudStore().getImageURL(restaurant: fetched), "the image")
                try expectEqual(try Data(contentsOf: url), image, "the image's bytes")
                try await remove([saved])
            },
            .console(19, "a role's rights ticked in the console"),
            .run(23, "an asset keeps its data, not its file's name") { surroundings in
                let saved = try await save(sample(surroundings, image: surroundings.picture))
                let fetched = try await CKContainer.default().publicCloudDatabase.record(for: saved.recordID)
                let url = try need(RestaurantCloudStore().getImageURL(restaurant: fetched), "the image")
                try expectEqual(try Data(contentsOf: url), surroundings.picture, "the image's bytes")
                let sent = try need(RestaurantCloudStore().getImageURL(restaurant: saved), "the file that was sent")
                try expect(url.lastPathComponent != sent.lastPathComponent, "the name is another")
                try await remove([saved])
            },
            .run(24, "quotas grow with the users, and what is used is shown") { surroundings in
                let limits = try CommandLineTool.zonekeeper("limits", "show", "--json")
                try expect(limits.output.contains("databaseBytesPerUser"), "limits: \(limits)")
                let usage = try CommandLineTool.zonekeeper("usage", "--json")
                try expect(usage.status == 0 && usage.output.contains("bytes"), "usage: \(usage)")
            },
        ]

    static func sample(_ surroundings: Surroundings, number: Int = 0, image: Data? = nil) -> Restaurant {
        Restaurant(
            name: "Café \(number) \(surroundings.run)", type: "Café", location: "Hong Kong", phone: "555-01\(number)",
            description: "A small place.", image: image)
    }

    static func save(_ restaurant: Restaurant) async throws -> CKRecord {
        let result: Result<CKRecord, Error> = await completion { done in
            RestaurantCloudStore().saveRecordToCloud(restaurant: restaurant, completion: done)
        }
        return try result.get()
    }

    /// Some restaurants, with names in the order of their numbers.
    static func make(_ count: Int, _ surroundings: Surroundings) async throws -> [CKRecord] {
        let records = (0..<count).map { number in
            let record = CKRecord(recordType: "Restaurant")
            record["name"] = sample(surroundings, number: number).name
            record["type"] = "Café"
            record["phone"] = "555"
            return record
        }
        for start in stride(from: 0, to: count, by: 100) {
            let some = Array(records[start..<min(start + 100, count)])
            let (saved, _) = try await CKContainer.default().publicCloudDatabase.modifyRecords(
                saving: some, deleting: [], atomically: false)
            for result in saved.values { _ = try result.get() }
        }
        return records
    }

    static func remove(_ records: [CKRecord]) async throws {
        for start in stride(from: 0, to: records.count, by: 100) {
            let some = records[start..<min(start + 100, records.count)].map(\.recordID)
            let (_, deleted) = try await CKContainer.default().publicCloudDatabase.modifyRecords(
                saving: [], deleting: some, atomically: false)
            for result in deleted.values { try result.get() }
        }
    }
}
