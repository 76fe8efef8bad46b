import RecordModel
import Service
import TestSupport
import Testing

@testable import WebServices

@Suite("The log of requests over HTTP")
struct RequestLogHTTPTests {
    private static let at = "container=\(ConsoleWorld.container)"
    private static let modify = "/database/1/\(ConsoleWorld.container)/development/public/records/modify"

    private static func save(_ name: String, _ text: String) -> String {
        #"{"operations": [{"operationType": "create", "record": {"recordType": "Note", "recordName": "\#(name)", "fields": {"text": {"value": "\#(text)"}}}}]}"#
    }

    private static let schema =
        "DEFINE SCHEMA RECORD TYPE Note (text STRING QUERYABLE, \"___recordID\" REFERENCE QUERYABLE, GRANT READ TO \"_world\");"

    @Test("a request is in the log with what it was about, and without what it carried")
    func logged() async throws {
        let world = try await ConsoleWorld()
        try await world.admin("POST", "schema?\(Self.at)", Self.schema)
        let saved = try await world.token("POST", Self.modify, Self.save("secret-name", "secret value"))
        #expect(saved.status == 200)
        _ = try await world.token("POST", Self.modify, Self.save("secret-name", "secret value"))
        let query =
            #"{"query": {"recordType": "Note", "filterBy": [{"fieldName": "text", "comparator": "EQUALS", "fieldValue": {"value": "secret value"}}]}}"#
        _ = try await world.token(
            "POST", "/database/1/\(ConsoleWorld.container)/development/public/records/query", query)
        _ = try await world.send("POST", Self.modify + "?ckAPIToken=secrettoken", "{}", headers: [])
        let log = try await world.admin("GET", "requests?\(Self.at)&clients=true")
        let requests = log["requests"]?.array ?? []
        #expect(
            requests.map { $0["operation"]?.string } == [
                "records/modify", "records/query", "records/modify", "records/modify",
            ])
        #expect(requests.map { $0["status"] } == [401, 200, 200, 200].map { .integer($0) })
        #expect(
            requests[0]["code"] == .string("AUTHENTICATION_FAILED")
                && requests[0]["refusal"]?["rule"] == .string("credential"))
        #expect(requests[1]["records"] == .integer(1) && requests[1]["recordType"] == .string("Note"))
        #expect(requests[2]["failedItems"] == .integer(1) && requests[2]["itemCode"] == .string("EXISTS"))
        #expect(requests[3]["id"]?.string == saved["x-apple-request-uuid"])
        #expect(requests[3]["zone"] == .string("_defaultZone") && requests[3]["database"] == .string("public"))
        #expect(requests[3]["credential"] == .string("administrator"))
        #expect(!log.serialized().contains(Array("secret".utf8)))
        #expect(log["nodes"]?.array?.map { $0["node"] } == [.integer(1)])
        let page = try await world.admin("GET", "requests?\(Self.at)&clients=true&limit=3")
        let next = try #require(page["next"]?.string)
        let rest = try await world.admin("GET", "requests?\(Self.at)&clients=true&limit=3&after=\(next)")
        #expect(rest["requests"]?.array?.map { $0["id"] } == [requests[3]["id"]] && rest["next"] == nil)
        try await world.node.stop()
    }

    @Test("names of containers that there are not do not count")
    func invented() async throws {
        let world = try await ConsoleWorld()
        for number in 0..<3 {
            _ = try await world.send(
                "POST", "/database/1/iCloud.invented\(number)/development/public/records/query?ckAPIToken=x", "{}",
                headers: [])
        }
        let telemetry = try await world.admin("GET", "telemetry?range=hour")
        #expect(!String(decoding: telemetry.serialized(), as: UTF8.self).contains("iCloud.invented"))
        try await world.node.stop()
    }

    @Test("a node without a log remembers nothing of requests, and answers as ever")
    func off() async throws {
        var settings = ServiceSettings()
        settings.requestLogBytesMax = 0
        let node = try await SingleNode.start(shards: 1, service: settings)
        var request = InProcessService.Request(method: "GET", target: "/admin/1/requests")
        request.headers = [("Authorization", "Bearer \(SingleNode.administratorToken)")]
        _ = try await node.service.answer(request)
        let json = try JSONParser.parse(try await node.service.answer(request).body)
        #expect(json["requests"] == .array([]) && json["nodes"]?.array?.count == 1)
        request.target = "/admin/1/telemetry"
        let telemetry = try JSONParser.parse(try await node.service.answer(request).body)
        #expect(telemetry["total"]?["requests"] == .integer(0))
        try await node.stop()
    }

    @Test("what the edge refuses is in the log with its rule, and counts as of no container")
    func edge() throws {
        let id = EdgeRefusal.newID()
        let entry = RequestEntry(.tooManyConnections(7), id: id, address: "127.0.0.1")
        #expect(entry.id == id && entry.operation == "edge" && entry.status == 503 && entry.container.isEmpty)
        #expect(entry.refusal?.rule == "connections" && entry.refusal?.limit == 7)
        #expect(entry.refusal?.freeAfterMilliseconds == 5_000 && entry.code == .tryAgainLater)
        #expect(RequestEntry(.slowHead("1"), id: id, address: nil).refusal?.rule == "headSpeed")
    }

    @Test("why a request was refused is told as it was then, after the limit is another")
    func refused() async throws {
        let world = try await ConsoleWorld()
        try await world.admin("POST", "schema?\(Self.at)", Self.schema)
        let token = try await world.admin(
            "POST", "tokens", #"{"kind": "api", "container": "\#(ConsoleWorld.container)"}"#)
        let secret = try #require(token["secret"]?.string)
        try await world.admin("PATCH", "limits?\(Self.at)", #"{"requestsPerSecond": 1, "requestsPerSecondMax": 1}"#)
        let path = "/database/1/\(ConsoleWorld.container)/development/public/records/query?ckAPIToken=\(secret)"
        var refused: SignInWorld.Page?
        for _ in 0..<200 where refused == nil {
            var request = InProcessService.Request(method: "POST", target: path)
            request.body = Array(#"{"query": {"recordType": "Note"}}"#.utf8)
            let page = SignInWorld.Page(try await world.node.service.answer(request))
            if page.status == 429 { refused = page }
        }
        let id = try #require(refused?["x-apple-request-uuid"])
        try await world.admin(
            "PATCH", "limits?\(Self.at)", #"{"requestsPerSecond": 1000, "requestsPerSecondMax": 1000}"#)
        let trace = try await world.admin("GET", "requests/trace?id=\(id)")
        let refusal = try #require(trace["request"]?["refusal"])
        #expect(
            refusal["rule"] == .string("requests") && refusal["limit"] == .integer(1) && refusal["used"] == .integer(1))
        #expect(refusal["freeAt"] != nil && refusal["reason"]?.string?.contains("1 requests a second") == true)
        #expect(trace["request"]?["credential"] == token["id"])
        #expect(try await world.token("GET", "requests/trace?id=x").status == 400)
        #expect(
            try await world.token("GET", "requests/trace?id=01900000-0000-7000-8000-000000000000").status == 404)
        let telemetry = try await world.admin("GET", "telemetry?\(Self.at)")
        #expect(telemetry["total"]?["errorsByCode"]?["THROTTLED"] != nil)
        try await world.node.stop()
    }

    @Test("a role for some containers sees the requests of these, in the log, in a trace and in the series")
    func roles() async throws {
        let world = try await ConsoleWorld()
        let other = "iCloud.test.other"
        try await world.admin("POST", "containers", #"{"name": "\#(other)"}"#)
        let viewer = try await world.member("vera", "viewer", containers: #"["\#(ConsoleWorld.container)"]"#)
        for container in [ConsoleWorld.container, other] {
            _ = try await world.token(
                "POST", "/database/1/\(container)/development/public/records/query", #"{"query": {"recordType": "X"}}"#)
        }
        let log = try await world.browse(viewer, "GET", "requests").json
        let seen = Set((log["requests"]?.array ?? []).map { $0["container"]?.string })
        #expect(seen == [ConsoleWorld.container])
        #expect(try await world.browse(viewer, "GET", "requests?container=\(other)").status == 403)
        #expect(try await world.browse(viewer, "GET", "telemetry?container=\(other)").status == 403)
        let telemetry = try await world.browse(viewer, "GET", "telemetry").json
        #expect(telemetry["containers"]?.array?.map { $0["container"] } == [.string(ConsoleWorld.container)])
        let theirs = try await world.admin("GET", "requests?container=\(other)&clients=true")
        let id = try #require(theirs["requests"]?.array?.first?["id"]?.string)
        #expect(try await world.browse(viewer, "GET", "requests/trace?id=\(id)").status == 404)
        #expect(try await world.token("GET", "requests/trace?id=\(id)").status == 200)
        #expect(try await world.browse(viewer, "GET", "requests?failed=x").status == 400)
        #expect(try await world.browse(viewer, "GET", "requests?code=x").status == 400)
        #expect(try await world.browse(viewer, "GET", "requests/watch?after=x").status == 400)
        #expect(try await world.browse(viewer, "GET", "telemetry?range=x").status == 400)
        try await world.node.stop()
    }

    @Test("every node's health has what its machine has")
    func health() async throws {
        let world = try await ConsoleWorld()
        let health = try await world.admin("GET", "cluster/health")
        let node = try #require(health["nodes"]?.array?.first)
        #expect(node["answers"] == .bool(true) && node["ready"] == .bool(true) && node["problem"] == nil)
        #expect(
            node["diskBytes"] != .integer(0) && node["memoryBytes"] != .integer(0) && node["processors"] != .integer(0))
        let expire = try world.node.certificates.map { file in (file.name, try #require(file.expires)) }
        #expect(expire.map(\.0) == ["peer", "peer-ca"] && expire[0].1 < expire[1].1)
        #expect(node["certificateExpires"] == .integer(expire[0].1 * 1_000))
        let metrics = try await world.token("GET", "metrics").text
        for (name, time) in expire {
            let line = "zonekeeper_certificate_expires_timestamp_seconds{file=\"\(name)\"} \(time)\n"
            #expect(metrics.contains(line))
        }
        try await world.node.stop()
    }

    @Test("the marks of a stream survive their text, and others are no marks")
    func marks() {
        let marks = RequestMarks(marks: [1: .init(start: 0x18F3, count: 40), 12: .init(start: .max, count: 0)])
        #expect(marks.text == "1-18f3-40_12-ffffffffffffffff-0")
        #expect(RequestMarks(marks.text) == marks)
        for text in ["", "1", "1-2", "1-x-3", "1-2-3_", "1-2-3-4", "-1-2-3"] { #expect(RequestMarks(text) == nil) }
    }
}
