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
            #expect(told.map(\.sequence) == told.map(\.sequence).sorted())
            let token = try #require(told.last?.token)
            try await phone.save(9)
            var next = container.notifications(since: token).makeAsyncIterator()
            let first = try #require(try await next.next())
            #expect(first.sequence > told[2].sequence)
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
        let name = "twice\(CloudNode.unique())"
        _ = try await node.client.admin("POST", "users", #"{"name": "\#(name)"}"#)
        func session() async throws -> String {
            let token = try await node.client.admin(
                "POST", "tokens", #"{"kind": "session", "container": "\#(node.container)", "user": "\#(name)"}"#)
            return try #require(token["secret"]?.string)
        }
        var configuration = node.configuration
        configuration.webAuthToken = try await session()
        return (CKContainer(configuration: configuration), Phone(node: node, secret: try await session()))
    }

    func save(_ number: Int) async throws {
        let body = """
            {"zoneID": {"zoneName": "zone"}, "operations": [{"operationType": "forceUpdate", "record": {
                "recordName": "phone-\(number)", "recordType": "Note", "fields": {"number": {"value": \(number)}}}}]}
            """
        let path = "/database/1/\(node.container)/development/private/records/modify"
        let api = try #require(node.configuration.apiToken)
        let answer = try await node.client.post(
            path, body, node: 0, query: "ckAPIToken=\(api)&clientId=phone&ckWebAuthToken=\(secret)")
        try #require(answer.status == 200 && !"\(answer)".contains("serverErrorCode"), "\(answer)")
    }
}
