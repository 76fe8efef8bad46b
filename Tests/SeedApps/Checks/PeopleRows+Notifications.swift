import CloudKit

extension PeopleRows {
    static let notifications: [SeedRow] = [
        .run(67, "CloudKit.subscribe: another device's changes are told, not one's own") { surroundings in
            try await fresh(surroundings) { cloud in
                try await cloud.subscribe(recordType: "People")
                let all = try await cloud.database.allSubscriptions()
                let subscription = try need(
                    all.compactMap { $0 as? CKQuerySubscription }.first { $0.recordType == "People" }, "it")
                try await cloud.create(item: Person(firstName: "Own", lastName: "Device"))
                try elsewhere("--name", "other-\(surroundings.run)", "firstName=Other")
                // They are of one zone, so they come in the order of the changes.
                let first = try await told(subscription.subscriptionID).notification
                let change = try need(first as? CKQueryNotification, "a query's notification")
                try expectEqual(change.recordID?.recordName, "other-\(surroundings.run)", "the record that was told of")
                try expectEqual(change.queryNotificationReason, .recordCreated, "the reason")
                try await cloud.database.deleteSubscription(withID: subscription.subscriptionID)
            }
        },
        .run(68, "other devices are told of changes, and this one of theirs") { surroundings in
            try await fresh(surroundings) { cloud in
                let id = "all-\(surroundings.run)"
                try await cloud.database.save(CKDatabaseSubscription(subscriptionID: id))
                try await cloud.create(item: Person(firstName: "Own", lastName: "Device"))
                let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
                defer { try? FileManager.default.removeItem(at: folder) }
                let second = try CommandLineTool.device("told", id, folder: folder)
                let own = try need(
                    Int64(second.output.trimmingCharacters(in: .whitespacesAndNewlines)),
                    "what the second device is told: \(second)")
                try elsewhere("--name", "other-\(surroundings.run)", "firstName=Other")
                let first = try await told(id)
                try expect(first.notification is CKDatabaseNotification, "of the database: \(first)")
                try expect(first.sequence > own, "\(first.sequence) is not what this device did, which is \(own)")
                _ = try await cloud.database.deleteSubscription(withID: id)
            }
        },
    ]

    /// The first notification of a subscription.
    static func told(_ subscription: CKSubscription.ID) async throws -> CKContainer.DeliveredNotification {
        for try await delivered in CKContainer.default().notifications()
        where delivered.notification.subscriptionID == subscription {
            return delivered
        }
        throw CheckFailure("the notifications ended", line: #line, file: #fileID)
    }

    /// Another device of the user changes a person of the layer's zone.
    private static func elsewhere(_ arguments: String...) throws {
        let zone = CloudKit.zone.zoneID.zoneName
        let saved = try CommandLineTool.zonekeeper(
            ["record", "save", "--database", "private", "--zone", zone, "--type", "People"] + arguments)
        try expectEqual(saved.status, 0, "another device's change: \(saved)")
    }
}
