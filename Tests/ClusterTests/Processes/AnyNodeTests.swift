import Foundation
import RecordModel
import TestSupport
import Testing

extension ClusterSuites.Shared {
    @Suite("Any node answers for any zone")
    struct AnyNodeTests {
        @Test("a record saved through one node is in the next query through another, each time")
        func readYourWrites() async throws {
            let cluster = try await SharedCluster.tenant()
            let zones = (0..<8).map { "zone-\($0)" }
            let operations = zones.map { #"{"operationType": "create", "zone": {"zoneID": {"zoneName": "\#($0)"}}}"# }
            let made = try await cluster.client.post(
                cluster.path("zones/modify"), #"{"operations": [\#(operations.joined(separator: ","))]}"#, node: 0)
            try #require(made.json["zones"]?.array?.allSatisfy { $0["serverErrorCode"] == nil } == true, "\(made)")
            for number in 0..<Soak.count(250, soak: 1_000) {
                let zone = #""zoneID": {"zoneName": "\#(zones[number % zones.count])"}"#
                let save =
                    #"{\#(zone), "operations": [{"operationType": "create", "record": {"recordType": "Note", "#
                    + #""fields": {"number": {"value": \#(number)}}}}]}"#
                let saved = try await cluster.client.post(cluster.path("records/modify"), save, node: number % 3)
                let name = saved.json["records"]?.array?.first?["recordName"]?.string
                let query =
                    #"{\#(zone), "query": {"recordType": "Note", "filterBy": [{"fieldName": "number", "#
                    + #""comparator": "EQUALS", "fieldValue": {"value": \#(number)}}]}}"#
                // A machine that has other work may be too slow for the time that a query has.
                let found = try await awaitState("the query is answered") {
                    try await cluster.client.post(cluster.path("records/query"), query, node: (number + 1) % 3)
                } until: {
                    $0.json["serverErrorCode"]?.string != "TRY_AGAIN_LATER"
                }
                guard let name, found.json["records"]?.array?.map({ $0["recordName"]?.string }) == [name] else {
                    Issue.record("number \(number): saved \(saved), found \(found)")
                    return
                }
            }
        }
    }
}
