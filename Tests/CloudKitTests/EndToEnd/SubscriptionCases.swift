import Foundation
import RecordModel
import TestSupport
import Testing

@testable import CloudKit

extension EndToEnd {
    @Suite("Subscriptions and notifications")
    struct SubscriptionCases {
        private static func query() -> CKQuerySubscription {
            let query = CKQuerySubscription(
                recordType: "Note", predicate: NSPredicate(format: "number > 5"), subscriptionID: "query",
                options: [.firesOnRecordCreation, .firesOnRecordDeletion])
            query.notificationInfo = CKSubscription.NotificationInfo(alertBody: "new", desiredKeys: ["number"])
            return query
        }

        @Test("What was saved is fetched as it was: of all kinds, one by one and all together")
        func kept() async throws {
            let (database, zone) = try await Cloud.zone()
            let of = CKRecordZoneSubscription(zoneID: zone, subscriptionID: "zone")
            of.recordType = "Note"
            let all = CKDatabaseSubscription(subscriptionID: "database")
            let results = try await database.modifySubscriptions(saving: [of, all, Self.query()], deleting: ["none"])
            #expect(results.saveResults.count == 3 && results.saveResults.values.allSatisfy { $0.code == nil })
            #expect(results.deleteResults["none"]?.code == .unknownItem)
            #expect(try await database.allSubscriptions().map(\.subscriptionID) == ["database", "query", "zone"])
            #expect(try await database.subscription(for: "zone") == of)
            let query = try #require(try await database.subscription(for: "query") as? CKQuerySubscription)
            #expect(query == Self.query())
            #expect(query.notificationInfo == Self.query().notificationInfo)
            try await database.deleteSubscription(withID: "query")
            #expect(await failure { try await database.subscription(for: "query") }?.code == .unknownItem)
            let operation = CKFetchSubscriptionsOperation.fetchAllSubscriptionsOperation()
            let found = Log<String>()
            operation.perSubscriptionResultBlock = { id, _ in found.add(id) }
            await run(operation, on: database)
            #expect(found.all == ["database", "zone"])
        }

        @Test("9. Equal content under another ID is rejected with the ID of the other one")
        func duplicate() async throws {
            let (database, _) = try await Cloud.zone()
            try await database.save(CKDatabaseSubscription(subscriptionID: "first"))
            try await database.save(CKDatabaseSubscription(subscriptionID: "first"))
            let error = await failure { try await database.save(CKDatabaseSubscription(subscriptionID: "second")) }
            #expect(error?.code == .serverRejectedRequest)
            #expect(error?.localizedDescription.contains("subscription is duplicate of 'first'") == true)
            #expect(try await database.allSubscriptions().map(\.subscriptionID) == ["first"])
        }

        @Test("Notifications of what other devices change come in order; a token goes on after the one it is of")
        func delivered() async throws {
            let (container, phone) = try await Phone.new()
            let database = container.privateCloudDatabase
            let zone = try await database.save(CKRecordZone(zoneName: "zone")).zoneID
            try await database.save(Self.query())
            try await database.save(CKRecordZoneSubscription(zoneID: zone, subscriptionID: "zone"))
            // This process is not told of what it does itself.
            try await database.save(note(7, in: zone))
            try await phone.save(8)
            try await phone.save(3)
            var told: [CKContainer.DeliveredNotification] = []
            for try await delivered in container.notifications() {
                told.append(delivered)
                if told.count == 3 { break }
            }
            let kinds = told.map(\.notification.subscriptionID)
            #expect(Set(kinds[..<2]) == ["query", "zone"] && kinds[2] == "zone")
            let query = try #require(told.compactMap { $0.notification as? CKQueryNotification }.first)
            #expect(query.recordID?.recordName == "phone-8" && query.queryNotificationReason == .recordCreated)
            #expect(query.recordFields?["number"].map { "\($0)" } == "8" && query.alertBody == "new")
            #expect(query.databaseScope == .private)
            // They are found among what was fetched.
            let name = CKRecord.ID(recordName: "phone-8", zoneID: zone)
            let record = try await database.record(for: name)
            #expect(query.recordID == record.recordID)
            #expect((told[2].notification as? CKRecordZoneNotification)?.recordZoneID == zone)
            #expect(told.map(\.sequence) == told.map(\.sequence).sorted())
            let token = try #require(told.last?.token)
            try await phone.save(9)
            var next = container.notifications(since: token).makeAsyncIterator()
            let first = try #require(try await next.next())
            #expect(first.sequence > told[2].sequence)
            #expect(CKNotification(fromRemoteNotificationDictionary: first.userInfo)?.notificationType == .recordZone)
        }

        @Test("A query that another program made is read as a predicate, and saved again as it was")
        func foreign() async throws {
            let (container, phone) = try await Phone.new()
            let database = container.privateCloudDatabase
            let filter = #"{"comparator": "IN", "fieldName": "number", "fieldValue": {"value": [5]}}"#
            try await phone.subscribe("web", filter)
            let query = try #require(try await database.allSubscriptions().first as? CKQuerySubscription)
            let expected = CKQuerySubscription(
                recordType: "Note", predicate: NSPredicate(format: "number IN {5}"), subscriptionID: "web",
                options: .firesOnRecordCreation)
            #expect(query == expected)
            try await database.save(query)
            #expect(try await database.subscription(for: "web") == expected)
            let isNew = try await database.service.subscriptions.subscribe(as: "engine")
            #expect(isNew)
        }

        @Test("Readers of one user share a connection, and none misses or repeats anything when it is cut")
        func readers() async throws {
            let (one, other, relay) = try await Cloud.devicesWithRelay()
            try await finishing {
                let zone = try await one.privateCloudDatabase.save(CKRecordZone(zoneName: "zone")).zoneID
                try await one.privateCloudDatabase.save(
                    CKRecordZoneSubscription(zoneID: zone, subscriptionID: "zone"))
                func save(_ number: Int) async throws {
                    try await one.privateCloudDatabase.save(note(number, in: zone))
                }
                try await save(0)
                var early = other.notifications().makeAsyncIterator()
                var heard: [Int64] = [try #require(try await early.next()).sequence]
                // This one begins in the past, beside the connection.
                var late = other.notifications().makeAsyncIterator()
                try await save(1)
                var heardLate: [Int64] = []
                while heardLate.count < 2 { heardLate.append(try #require(try await late.next()).sequence) }
                relay.cut(true)
                try await save(2)
                relay.cut(false)
                try await save(3)
                while heard.count < 4 { heard.append(try #require(try await early.next()).sequence) }
                while heardLate.count < 4 { heardLate.append(try #require(try await late.next()).sequence) }
                #expect(heard == heardLate)
                #expect(heard == (0..<4).map { heard[0] + $0 })
            } with: {
                relay.close()
            }
        }
    }
}

/// Another device of a user.
private struct Phone {
    let node: CloudNode
    private let secret: String

    /// A new user's container, and the user's other device.
    static func new() async throws -> (container: CKContainer, phone: Phone) {
        let node = try await Cloud.shared.node()
        let sessions = try await node.sessions(2).map(\.configuration)
        let secret = try #require(sessions[1].webAuthToken)
        return (CKContainer(configuration: sessions[0]), Phone(node: node, secret: secret))
    }

    func subscribe(_ id: String, _ filter: String) async throws {
        try await post(
            "subscriptions/modify",
            """
            {"operations": [{"operationType": "create", "subscription": {
                "subscriptionID": "\(id)", "subscriptionType": "query", "firesOn": ["create"],
                "query": {"recordType": "Note", "filterBy": [\(filter)]}}}]}
            """)
    }

    func save(_ number: Int) async throws {
        let body = """
            {"zoneID": {"zoneName": "zone"}, "operations": [{"operationType": "forceUpdate", "record": {
                "recordName": "phone-\(number)", "recordType": "Note", "fields": {"number": {"value": \(number)}}}}]}
            """
        try await post("records/modify", body)
    }

    private func post(_ action: String, _ body: String) async throws {
        let path = "/database/1/\(node.container)/development/private/\(action)"
        let api = try #require(node.configuration.apiToken)
        let answer = try await node.client.post(
            path, body, node: 0, query: "ckAPIToken=\(api)&clientId=phone&ckWebAuthToken=\(secret)")
        try #require(answer.status == 200 && !"\(answer)".contains("serverErrorCode"), "\(answer)")
    }
}
