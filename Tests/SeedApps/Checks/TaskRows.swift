import CloudKit

/// The to-do list, seed 004.
enum TaskRows {
    static let rows: [SeedRow] =
        list + [
            .run(81, "quotas and rates have CloudKit's figures") { _ in
                let limits = try CommandLineTool.zonekeeper("limits", "show", "--json")
                for figure in ["requestsPerSecond", "assetBytes", "databaseBytes", "transferBytesPerMonth"] {
                    try expect(limits.output.contains(figure), "\(figure) in \(limits)")
                }
            },
            .run(82, "CKContainer(identifier:)") { surroundings in
                let container = CKContainer(identifier: surroundings.ada.container)
                try expectEqual(container.containerIdentifier, surroundings.ada.container, "its name")
            },
            .console(84, "the six sections of the console"),
            .console(85, "a task made in the console"),
            .run(92, "without a connection: networkUnavailable, soon") { surroundings in
                var offline = surroundings.ada
                // Discards what is sent to it nowhere: nothing listens on port 9 here.
                offline.urls = ["https://127.0.0.1:9"]
                offline.patience = .zero
                let began = ContinuousClock.now
                try await surroundings.acting(as: offline) {
                    let database = CKContainer.default().publicCloudDatabase
                    let error = try await expectFailure(
                        .networkUnavailable, .networkFailure, of: "a read without a network"
                    ) {
                        try await database.record(for: CKRecord.ID(recordName: "x"))
                    }
                    try expect(
                        error.localizedDescription.contains("127.0.0.1:9"), "it says: \(error.localizedDescription)")
                }
                try expect(began.duration(to: .now) < .seconds(10), "it took \(began.duration(to: .now))")
            },
            .run(93, "a user's private records are nobody else's") { surroundings in
                let record = FastingRows.day(93).record
                try await CloudKitService().save(record)
                let seen = try await surroundings.acting(as: surroundings.bob) {
                    try await CloudKitService().fetchFastingRecords(in: FastingRows.year)
                }
                try expectEqual(seen, [], "what another user finds")
                try await CKContainer.default().privateCloudDatabase.deleteRecord(withID: record.recordID)
            },
            .run(94, "only users write to the public list") { surroundings in
                try await surroundings.acting(as: surroundings.nobody) {
                    let service = TaskCloudService(containerIdentifier: surroundings.ada.container)
                    let (record, error) = await add("Not mine", to: service)
                    try expect(record == nil && error == .addingError, "a visitor's task")
                }
            },
            .run(95, "a record has 1 MB, an asset may have more") { surroundings in
                let database = CKContainer.default().publicCloudDatabase
                let task = CKRecord(recordType: "Task")
                task["title"] = String(repeating: "x", count: 1_100_000)
                try await expectFailure(.limitExceeded, of: "a record of 1.1 MB") { try await database.save(task) }
                let restaurant = CKRecord(recordType: "Restaurant")
                // Readers of pictures stop at its end.
                let large = surroundings.picture + Data(count: 1_100_000)
                try await surroundings.withPictureFile { file in
                    try large.write(to: file)
                    restaurant["image"] = CKAsset(fileURL: file)
                    try await database.save(restaurant)
                }
                let found = try await database.record(for: restaurant.recordID)["image"] as? CKAsset
                let url = try need(found?.fileURL, "the image")
                try expectEqual(try Data(contentsOf: url), large, "the image's bytes")
                try await RestaurantRows.remove([restaurant])
            },
            .run(96, "records of Core Data's mirroring are records like others") { surroundings in
                let database = CKContainer.default().publicCloudDatabase
                let entry = CKRecord(
                    recordType: "CD_Entry", recordID: CKRecord.ID(recordName: "entry-\(surroundings.run)"))
                entry["CD_entityName"] = "Entry"
                entry["CD_title"] = "From Core Data"
                try await database.save(entry)
                let query = CKQuery(recordType: "CD_Entry", predicate: NSPredicate(format: "CD_entityName == 'Entry'"))
                let found = try await database.records(matching: query).matchResults.map {
                    try $0.1.get()["CD_title"] as? String
                }
                try expectEqual(found, ["From Core Data"], "the entries")
                try await database.deleteRecord(withID: entry.recordID)
            },
        ]

    static func add(
        _ title: String, to service: TaskCloudService, at seconds: Double = 0
    ) async -> (CKRecord?, FetchError) {
        await completion { done in
            service.addTask(title, at: Date(timeIntervalSince1970: 1_767_225_600 + seconds)) { done(($0, $1)) }
        }
    }

    static func fetch(_ service: TaskCloudService) async -> ([CKRecord]?, FetchError) {
        await completion { done in service.fetchTasks { done(($0, $1)) } }
    }
}
