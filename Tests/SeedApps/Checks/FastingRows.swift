import CloudKit

/// The fasting service, seed 001.
enum FastingRows {
    static let rows: [SeedRow] = [
        .run(26, "CloudKitService.checkAccountStatus") { surroundings in
            try expectEqual(try await CloudKitService().checkAccountStatus(), .available, "with a session")
            try expectEqual(await CloudKitService().accountStatus(), .available, "as the screen asks")
            let status = try await surroundings.acting(as: surroundings.nobody) {
                try await CloudKitService().checkAccountStatus()
            }
            try expectEqual(status, .noAccount, "without a session")
        },
        .run(27, "the record type Fasting takes its three fields, and nothing of another type") { _ in
            let record = day(1).record
            record["goal"] = "sixteen hours"
            try await expectFailure(.invalidArguments, .serverRejectedRequest, of: "text in a number's field") {
                try await CloudKitService().save(record)
            }
        },
        .run(28, "Fasting.record, through subscripts") { _ in
            let record = day(1).record
            try expectEqual(record.recordType, "Fasting", "the type")
            try expectEqual(record.allKeys().sorted(), ["end", "goal", "start"], "the keys")
            try expectEqual(record["goal"] as? Double, 16 * 3600, "the goal")
            try expectEqual(record["start"] as? Date, day(1).start, "the start")
        },
        .run(29, "a save whose result is not used; every user has a private database") { surroundings in
            try await CloudKitService().save(day(1).record)
            let others = try await surroundings.acting(as: surroundings.bob) {
                try await CloudKitService().fetchFastingRecords(in: year)
            }
            try expectEqual(others, [], "what another user has")
            try await forget()
        },
        .console(30, "the indexes of the fields, in the console"),
        .run(31, "Fasting.init?(from:) reads what was saved") { _ in
            let record = day(1).record
            try await CloudKitService().save(record)
            let fetched = try await CKContainer.default().privateCloudDatabase.record(for: record.recordID)
            try expectEqual(Fasting(from: fetched), day(1), "the fasting")
            let goal = fetched["goal"] as? TimeInterval
            try expectEqual(goal, 57600, "the goal")
            try expect(Fasting(from: CKRecord(recordType: "Fasting")) == nil, "an empty record is no fasting")
            try await forget()
        },
        .run(32, "fetchFastingRecords(in:): two dates in a format, sorted by the end") { _ in
            for number in [5, 2, 9, 3] { try await CloudKitService().save(day(number).record) }
            let interval = DateInterval(start: day(2).start, end: day(5).end)
            let found = try await CloudKitService().fetchFastingRecords(in: interval)
            try expectEqual(found, [day(2), day(3), day(5)], "the fastings of four days")
            let shorter = DateInterval(
                start: day(2).start.addingTimeInterval(1), end: day(5).end.addingTimeInterval(-1))
            let inner = try await CloudKitService().fetchFastingRecords(in: shorter)
            try expectEqual(inner, [day(3)], "a second less at both ends")
            try await forget()
        },
        .run(33, "two clients of a user see the same, another user does not") { surroundings in
            let first = CKContainer(identifier: surroundings.ada.container).privateCloudDatabase
            let second = CKContainer(identifier: surroundings.ada.container).privateCloudDatabase
            let saved = try await first.save(day(1).record)
            let seen = try await second.record(for: saved.recordID)
            try expectEqual(Fasting(from: seen), day(1), "what the second client reads")
            try await surroundings.acting(as: surroundings.bob) {
                let other = CKContainer(identifier: surroundings.bob.container).privateCloudDatabase
                try await expectFailure(.unknownItem, of: "another user's read") {
                    try await other.record(for: saved.recordID)
                }
            }
            try await forget()
        },
        .pending(34, on: .sharing, "the shared database lists what others share") { _ in
            let zones = try await CKContainer.default().sharedCloudDatabase.allRecordZones()
            try expectEqual(zones.count, 0, "nobody shares")
        },
        .console(35, "a deploy to production in the console"),
    ]

    /// Sixteen hours without food, from noon of a day of January 2026.
    static func day(_ number: Int) -> Fasting {
        let start = Date(timeIntervalSince1970: 1_767_225_600 + Double(number) * 86400 + 43200)
        return Fasting(start: start, end: start.addingTimeInterval(16 * 3600), goal: 16 * 3600)
    }

    static let year = DateInterval(start: Date(timeIntervalSince1970: 1_767_225_600), duration: 366 * 86400)

    private static func forget() async throws {
        let database = CKContainer.default().privateCloudDatabase
        let query = CKQuery(recordType: "Fasting", predicate: NSPredicate(value: true))
        let found = try await database.records(matching: query).matchResults.map(\.0)
        _ = try await database.modifyRecords(saving: [], deleting: found, atomically: false)
    }
}
