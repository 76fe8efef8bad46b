import RecordModel
import TestSupport
import Testing

extension Conformance {
    @Suite("The log of requests")
    struct RequestLogTests {
        @Test(
            "the log, one request, the series and the nodes' health answer as the document says",
            arguments: Door.allCases)
        func answers(door: Door) async throws {
            let space = try await Space(door)
            let home = space.home
            let at = "container=\(home.container)"
            try await space.save("a", ["count": ["value": 1]])
            let page = try await home.admin("GET", "requests?\(at)&operation=records/modify&limit=1")
            let id = try #require(page["requests"]?.array?.first?["id"]?.string)
            let way = try await home.admin("GET", "requests/trace?id=\(id)")
            #expect(way["request"]?["operation"] == "records/modify" && way["request"]?["status"] == 200)
            #expect(way["request"]?["user"]?.string?.isEmpty == false)
            let series = try await home.admin("GET", "telemetry?\(at)&range=day")
            #expect(series["total"]?["requests"] != 0 && series["points"]?.array?.isEmpty == false)
            let days = try await home.admin("GET", "usage/days?\(at)")
            #expect(days["stepSeconds"] == 86_400 && days["limitBytes"] != nil)
            let types = try await home.admin("GET", "usage?\(at)&types=true")
            let counted = types["databases"]?.array?.flatMap { $0["types"]?.array ?? [] } ?? []
            #expect(counted.contains { ($0["records"]?.integer ?? 0) > 0 })
            for kind in ["databases", "zones", "types", "days"] {
                let file = try await home.adminCall("GET", "usage/export?\(at)&of=\(kind)")
                #expect(file.status == 200 && file.text.hasPrefix("environment,"), "\(file)")
            }
            let lines = try await home.adminCall("GET", "usage/export?\(at)&format=lines")
            #expect(lines.text.contains(#"{"environment":"development","scope":"private","#), "\(lines)")
            expectFailure(try await home.adminCall("GET", "usage/export?\(at)&of=audit"), 400, "BAD_REQUEST")
            expectFailure(try await home.adminCall("GET", "usage/export?\(at)&format=json"), 400, "BAD_REQUEST")
            let alerts = try await home.admin("GET", "alerts?\(at)")
            #expect(alerts["rules"]?.array?.isEmpty == false && alerts["nodes"]?.array?.isEmpty == false)
            let health = try await home.admin("GET", "cluster/health")
            #expect(health["nodes"]?.array?.allSatisfy { $0["answers"] == true } == true)
        }

        @Test("a stream tells of nodes, then of each request as it is answered, and goes on from an event's id")
        func stream() async throws {
            let space = try await Space(.memory)
            var call = Call("GET", "/admin/1/requests/watch")
            call.query = [("container", space.home.container), ("user", space.user), ("operation", "records/modify")]
            call.headers = [("Authorization", "Bearer \(space.home.service.administratorToken)")]
            let stream = try await MemoryStream(call, of: space.home.service)
            let faults = Home.contract.faults(
                method: "GET", path: call.path, status: stream.answer.status,
                type: stream.answer.headers.first { $0.0.lowercased() == "content-type" }?.1 ?? "", body: [])
            #expect(faults.isEmpty)
            let nodes = try #require(await stream.next())
            #expect(nodes.name == "nodes")
            try await space.save("a", ["count": ["value": 1]])
            let first = try #require(await stream.next())
            let told = first.json
            #expect(first.name == "requests" && told["requests"]?.array?.count == 1 && told["skipped"] == 0)
            stream.close()
            // What is answered between two streams is not lost.
            try await space.save("b", ["count": ["value": 1]])
            call.headers.append(("Last-Event-ID", try #require(first.id)))
            let again = try await MemoryStream(call, of: space.home.service)
            var event = await again.next()
            while let other = event, other.name != "requests" { event = await again.next() }
            let missed = try #require(event).json
            #expect(missed["requests"]?.array?.count == 1)
            #expect(missed["requests"]?.array?.first?["id"] != told["requests"]?.array?.first?["id"])
            again.close()
        }
    }
}
