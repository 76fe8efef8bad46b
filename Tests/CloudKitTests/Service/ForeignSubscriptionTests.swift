import CoreLocation
import Foundation
import RecordModel
import ServiceClient
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

    /// A database of a server that answers everything with a list.
    private func database(
        _ list: String = list, distances: ZonekeeperConfiguration.DistanceUnit = .kilometres,
        _ body: (CKDatabase, ScriptedServer) async throws -> Void
    ) async throws {
        try await ScriptedServer.running { _, _ in
            ScriptedAnswer(body: list)
        } _: { server in
            let configuration = ZonekeeperConfiguration(
                urls: [server.url], container: "c", apiToken: "a", webAuthToken: UUID().uuidString,
                distanceUnit: distances, patience: .zero)
            try await body(CKContainer(configuration: configuration).privateCloudDatabase, server)
        }
    }

    @Test("One without a form here is passed over in a list, and an error of its own where it is asked for")
    func listed() async throws {
        try await database { database, _ in
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
        try await database { database, _ in
            let isNew = try await database.service.subscriptions.subscribe(as: nil)
            #expect(!isNew)
        }
    }

    @Test(
        "A radius is in the configured unit: in what is saved, as in queries, and in what is read",
        arguments: [(ZonekeeperConfiguration.DistanceUnit.metres, 5.0), (.kilometres, 5_000)])
    func radius(unit: ZonekeeperConfiguration.DistanceUnit, metres: Double) async throws {
        let near = #""comparator": "NEAR", "fieldName": "place", "distance": \#(metres)"#
        let place = #""fieldValue": {"value": {"latitude": 1, "longitude": 2}, "type": "LOCATION"}"#
        let list = #"{"subscriptions": [\#(Self.subscription("near", "{\(near), \(place)}"))]}"#
        try await database(list, distances: unit) { database, server in
            let expected = CKQuerySubscription(
                recordType: "Note",
                predicate: NSPredicate(
                    format: "distanceToLocation:fromLocation:(place, %@) < %f",
                    CLLocation(latitude: 1, longitude: 2), 5.0),
                subscriptionID: "near", options: .firesOnRecordCreation)
            #expect(try await database.allSubscriptions() == [expected])
            #expect(try await database.subscription(for: "near") == expected)
            try await database.save(expected)
            let request = try #require(server.requests.last { $0.path.hasSuffix("subscriptions/modify") })
            let operation = try #require(JSONParser.parse(request.body)["operations"]?.array?.first)
            let filters = operation["subscription"]?["query"]?["filterBy"]
            #expect(filters?.array?.first?["distance"] == .number(metres))
            let query = CKQuery(recordType: "Note", predicate: expected.predicate)
            #expect(try database.service.call(query, in: nil)?.query["filterBy"] == filters)
        }
    }
}
