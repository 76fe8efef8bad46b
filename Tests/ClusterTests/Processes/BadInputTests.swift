import Foundation
import RecordModel
import TestSupport
import Testing

extension ClusterSuites.Shared {
    @Suite("Bad input gets its proper error, and nothing is half done")
    struct BadInputTests {
        /// A request to `records/modify` or another action, and what must come back.
        private struct Case {
            var what: String
            var action = "records/modify"
            var body: String
            var status = 200
            var code: String
            /// Part of the reason.
            var reason = ""
        }

        private static func operation(
            _ kind: String = "create", name: String = "x", fields: String = "{}", more: String = ""
        ) -> String {
            #"{"operationType": "\#(kind)", "record": {"recordName": "\#(name)", "recordType": "Note"\#(more), "fields": \#(fields)}}"#
        }

        private static func modify(_ operations: [String], zone: String? = nil) -> String {
            let zoneID = zone.map { #""zoneID": {"zoneName": "\#($0)"}, "# } ?? ""
            return #"{\#(zoneID)"operations": [\#(operations.joined(separator: ","))]}"#
        }

        private static var cases: [Case] {
            let long = String(repeating: "n", count: 256)
            let megabyte = String(repeating: "x", count: 1_048_576)
            return [
                Case(what: "no JSON", body: "{", status: 400, code: "BAD_REQUEST", reason: "JSON"),
                Case(what: "an array", body: "[]", status: 400, code: "BAD_REQUEST"),
                Case(what: "nothing", body: "", status: 400, code: "BAD_REQUEST"),
                Case(what: "no UTF-8 escape", body: #"{"operations": "\ud800"}"#, status: 400, code: "BAD_REQUEST"),
                Case(
                    what: "operations of another type", body: #"{"operations": 3}"#, status: 400, code: "BAD_REQUEST",
                    reason: "operations"),
                Case(
                    what: "an unknown operation", body: modify([operation("explode")]), status: 400,
                    code: "BAD_REQUEST", reason: "operationType"),
                Case(
                    what: "deep nesting", body: String(repeating: "[", count: 10_000), status: 400, code: "BAD_REQUEST"),
                Case(
                    what: "more than 200 operations", body: modify((0..<201).map { operation(name: "n\($0)") }),
                    status: 400,
                    code: "BAD_REQUEST", reason: "200"),
                Case(
                    what: "a long name", body: modify([operation(name: long)]), status: 400, code: "BAD_REQUEST",
                    reason: "255"),
                Case(
                    what: "one record twice", body: modify([operation(), operation()]), status: 400, code: "BAD_REQUEST"
                ),
                Case(
                    what: "an unknown zone", body: modify([operation()], zone: "nowhere"), status: 404,
                    code: "ZONE_NOT_FOUND"),
                Case(
                    what: "a wrong value", body: modify([operation(fields: #"{"number": {"value": "many"}}"#)]),
                    code: "BAD_REQUEST", reason: "number"),
                Case(
                    what: "an unknown field type",
                    body: modify([operation(fields: #"{"number": {"value": 1, "type": "HUGE"}}"#)]),
                    code: "BAD_REQUEST", reason: "HUGE"),
                Case(
                    what: "a record over 1 MB",
                    body: modify([operation(fields: #"{"text": {"value": "\#(megabyte)"}}"#)]),
                    code: "BAD_REQUEST", reason: "1048576"),
                Case(
                    what: "an update without a tag", body: modify([operation("update", name: "there")]), status: 400,
                    code: "BAD_REQUEST", reason: "recordChangeTag"),
                Case(
                    what: "a stale tag",
                    body: modify([operation("update", name: "there", more: #", "recordChangeTag": "1.zzz""#)]),
                    code: "CONFLICT",
                    reason: "client oplock error updating record"),
                Case(
                    what: "a create of what is there", body: modify([operation(name: "there")]), code: "EXISTS",
                    reason: "record to insert already exists"),
                Case(
                    what: "an unindexed field", action: "records/query",
                    body:
                        #"{"query": {"recordType": "Note", "filterBy": [{"fieldName": "body", "comparator": "EQUALS", "#
                        + #""fieldValue": {"value": "AAAA"}}]}}"#, status: 400, code: "BAD_REQUEST",
                    reason: "not marked queryable"),
                Case(
                    what: "a made-up marker", action: "records/query",
                    body: #"{"query": {"recordType": "Note"}, "continuationMarker": "bm90IG91cnM="}"#, status: 400,
                    code: "BAD_REQUEST", reason: "continuationMarker"),
                Case(
                    what: "a feature to come", action: "records/accept", body: "{}", status: 501, code: "BAD_REQUEST",
                    reason: "not built"),
            ]
        }

        @Test("requests")
        func requests() async throws {
            let cluster = try await SharedCluster.tenant()
            let there = try await cluster.client.post(
                cluster.path("records/modify"), Self.modify([Self.operation(name: "there")]), node: 0)
            try #require(there.json["records"]?.array?.first?["recordChangeTag"] != nil, "\(there)")
            for example in Self.cases {
                let answer = try await cluster.client.post(cluster.path(example.action), example.body, node: 0)
                let error = answer.status == 200 ? answer.json["records"]?.array?.first : answer.json
                #expect(answer.status == example.status, "\(example.what): \(answer)")
                #expect(error?["serverErrorCode"]?.string == example.code, "\(example.what): \(answer)")
                #expect(
                    error?["reason"]?.string?.contains(example.reason) == true || example.reason.isEmpty,
                    "\(example.what): \(answer)")
            }
            // Nothing of all this was saved.
            let left = try await cluster.client.post(
                cluster.path("records/query"), #"{"query": {"recordType": "Note"}}"#, node: 0)
            #expect(left.json["records"]?.array?.map { $0["recordName"]?.string } == ["there"])
        }

        @Test("a body of 100 MB is refused without being taken in")
        func hugeBody() async throws {
            let cluster = try await SharedCluster.tenant()
            let body = [UInt8](repeating: UInt8(ascii: " "), count: 100 << 20)
            // The server may end the connection before everything is sent, which the client sees as an error.
            let answer = try? await cluster.client.send(
                "POST", cluster.path("records/modify") + "?" + cluster.client.query, body: body, node: 0)
            #expect(answer == nil || answer?.status == 413, "\(String(describing: answer))")
            try await awaitTrue("the node goes on serving") {
                try await cluster.client.get("/health/ready", node: 0).status == 200
            }
        }

        @Test("a batch in a custom zone happens wholly or not at all")
        func atomicBatch() async throws {
            let cluster = try await SharedCluster.tenant()
            _ = try await cluster.client.post(
                cluster.path("zones/modify"),
                #"{"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": "z"}}}]}"#, node: 0)
            _ = try await cluster.client.post(
                cluster.path("records/modify"), Self.modify([Self.operation(name: "a")], zone: "z"), node: 0)
            let batch = Self.modify(
                [Self.operation(name: "b"), Self.operation(name: "a"), Self.operation(name: "c")], zone: "z")
            let answer = try await cluster.client.post(cluster.path("records/modify"), batch, node: 0)
            #expect(answer.status == 400)
            #expect(answer.json["serverErrorCode"]?.string == "ATOMIC_ERROR")
            #expect(
                answer.json["records"]?.array?.map { $0["serverErrorCode"]?.string } == [
                    "ATOMIC_ERROR", "EXISTS", "ATOMIC_ERROR",
                ])
            let left = try await cluster.client.post(
                cluster.path("records/query"), #"{"zoneID": {"zoneName": "z"}, "query": {"recordType": "Note"}}"#,
                node: 0)
            #expect(left.json["records"]?.array?.map { $0["recordName"]?.string } == ["a"])
        }

        @Test("nothing is open by default")
        func closed() async throws {
            let cluster = try await SharedCluster.tenant()
            let body = Self.modify([Self.operation()])
            let api = cluster.client.query.split(separator: "&").first.map(String.init) ?? ""
            for (query, database, status) in [
                ("", "public", 401), ("ckAPIToken=guess", "public", 401), (api, "private", 421),
                ("\(api)&ckWebAuthToken=guess", "private", 421),
            ] {
                let answer = try await cluster.client.post(
                    cluster.path("records/modify", database: database), body, node: 0, query: query)
                #expect(answer.status == status, "\(query) \(database): \(answer)")
            }
            // Anonymous callers read public data where the schema lets them, and create nothing.
            let anonymous = try await cluster.client.post(
                cluster.path("records/modify", database: "public"), body, node: 0, query: api)
            #expect(
                anonymous.json["records"]?.array?.first?["serverErrorCode"]?.string == "ACCESS_DENIED", "\(anonymous)")
            for path in ["/admin/1/status", "/admin/1/metrics", "/admin/1/tokens"] {
                #expect(try await cluster.client.get(path, node: 0).status == 401)
            }
        }

        @Test("a repeated request with the same key is applied once; another body under it is refused")
        func idempotency() async throws {
            let cluster = try await SharedCluster.tenant()
            let milliseconds = String(UInt64(Date().timeIntervalSince1970 * 1_000), radix: 16)
            let time = String(repeating: "0", count: 12 - milliseconds.count) + milliseconds
            let key = "\(time.prefix(8))-\(time.suffix(4))-7000-8000-000000000001"
            let body = Self.modify([Self.operation(name: "once", fields: #"{"number": {"value": 1}}"#)])
            let path = cluster.path("records/modify")
            let headers = [("Idempotency-Key", key)]
            let first = try await cluster.client.post(path, body, node: 0, headers: headers)
            let second = try await cluster.client.post(path, body, node: 0, headers: headers)
            #expect(first.json == second.json)
            #expect(first.json["records"]?.array?.first?["recordChangeTag"] != nil, "\(first)")
            let other = try await cluster.client.post(
                path, Self.modify([Self.operation(name: "twice")]), node: 0, headers: headers)
            #expect(other.status == 400 && other.json["serverErrorCode"]?.string == "BAD_REQUEST", "\(other)")
        }
    }
}
