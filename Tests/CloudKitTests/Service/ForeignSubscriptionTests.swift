import Foundation
import TestSupport
import Testing

@testable import CloudKit

@Suite("Subscriptions of other programs")
struct ForeignSubscriptionTests {
    private static func subscription(_ id: String, _ filter: String) -> String {
        """
        {"subscriptionID": "\(id)", "subscriptionType": "query", "firesOn": ["create"],
         "query": {"recordType": "Note", "filterBy": [\(filter)]}}
        """
    }

    /// One that has a form here, one that has none, and one to the whole database.
    private static let list = """
        {"subscriptions": [
            \(subscription(
                "known", #"{"comparator": "GREATER_THAN", "fieldName": "n", "fieldValue": {"value": 5}}"#)),
            \(subscription("odd", #"{"comparator": "LATER", "fieldName": "n", "fieldValue": {"value": 5}}"#)),
            {"subscriptionID": "all", "subscriptionType": "database"}]}
        """

    private func database(_ body: (CKDatabase) async throws -> Void) async throws {
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer(body: Self.list)
        } _: { server in
            let configuration = ZonekeeperConfiguration(
                urls: [server.url], container: "c", apiToken: "a", webAuthToken: UUID().uuidString, patience: .zero)
            try await body(CKContainer(configuration: configuration).privateCloudDatabase)
        }
    }

    @Test("One without a form here is passed over in a list, and an error of its own where it is asked for")
    func listed() async throws {
        try await database { database in
            let all = try await database.allSubscriptions()
            #expect(all.map(\.subscriptionID) == ["known", "all"])
            let known = try #require(all.first as? CKQuerySubscription)
            let expected = CKQuerySubscription(
                recordType: "Note", predicate: NSPredicate(format: "n > 5"), subscriptionID: "known",
                options: .firesOnRecordCreation)
            #expect(known == expected)
            let named = try await database.subscriptions(for: ["known", "odd", "all"])
            #expect(named["odd"]?.code == .invalidArguments && named["known"]?.code == nil)
            let operation = CKFetchSubscriptionsOperation.fetchAllSubscriptionsOperation()
            let log = Log<String>()
            operation.perSubscriptionResultBlock = { id, result in log.add("\(id) \(result.code == nil)") }
            operation.fetchSubscriptionsResultBlock = { log.add("end \($0.code == nil)") }
            await run(operation, on: database)
            #expect(log.all == ["known true", "odd false", "all true", "end true"])
        }
    }

    @Test("It does not keep a sync engine from finding the subscription to the database")
    func subscribed() async throws {
        try await database { database in
            let isNew = try await database.service.subscriptions.subscribe(as: nil)
            #expect(!isNew)
        }
    }
}
