import RecordModel
import TestSupport
import Testing

@testable import WebServices

@Suite("Administrators who act as users", .serialized)
struct ActingTests {
    private static let schema = """
        DEFINE SCHEMA RECORD TYPE Note (
            "___recordID" REFERENCE QUERYABLE, text STRING QUERYABLE, secret ENCRYPTED STRING,
            GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world"
        );
        """

    /// A node with a user ada, who has a private record with an encrypted value.
    private struct Scene {
        let world: ConsoleWorld
        private let api: String
        private let session: String

        init() async throws {
            let world = try await ConsoleWorld()
            self.world = world
            let container = ConsoleWorld.container
            try await world.admin("POST", "schema?container=\(container)", schema)
            try await world.admin("POST", "users", #"{"name": "ada"}"#)
            func secret(_ body: String) async throws -> String {
                try #require(try await world.admin("POST", "tokens", body)["secret"]?.string)
            }
            api = try await secret(#"{"kind": "api", "container": "\#(container)"}"#)
            session = try await secret(#"{"kind": "session", "container": "\#(container)", "user": "ada"}"#)
            let saved = try await asUser("records/modify", Self.save("n", "hello", #", "secret": {"value": "x7"}"#))
            #expect(saved.status == 200, "\(saved)")
        }

        /// A request of the user's own app.
        func asUser(_ action: String, _ body: String) async throws -> SignInWorld.Page {
            try await world.send(
                "POST", "\(path(action))?ckAPIToken=\(api)&ckWebAuthToken=\(session)", body, headers: [])
        }

        static func save(_ name: String, _ text: String, _ more: String = "") -> String {
            #"{"operations": [{"operationType": "forceUpdate", "record": {"recordType": "Note", "recordName": "\#(name)", "#
                + #""fields": {"text": {"value": "\#(text)"}\#(more)}}}]}"#
        }

        func path(_ action: String, _ database: String = "private", _ environment: String = "development") -> String {
            "/database/1/\(ConsoleWorld.container)/\(environment)/\(database)/\(action)"
        }

        func kv(_ action: String) -> String { "/kv/1/\(ConsoleWorld.container)/development/\(action)" }

        func begin(
            _ browser: ConsoleWorld.Browser, write: Bool = false, environment: String = "development"
        ) async throws -> SignInWorld.Page {
            try await world.browse(
                browser, "POST", "act-as",
                #"{"container": "\#(ConsoleWorld.container)", "environment": "\#(environment)", "user": "ada", "#
                    + #""reason": "ticket 7", "write": \#(write)}"#)
        }

        /// A request that names a time as a user.
        func act(
            _ browser: ConsoleWorld.Browser, _ id: String, _ path: String, _ body: String = "{}"
        ) async throws -> SignInWorld.Page {
            var headers = [("X-Zonekeeper-Act-As", id), ("Origin", ConsoleWorld.origin)]
            if let cookie = browser.cookie { headers.append(("Cookie", cookie)) }
            if let csrf = browser.csrf { headers.append(("X-Zonekeeper-CSRF", csrf)) }
            return try await world.send("POST", path, body, headers: headers)
        }
    }

    private static let query = #"{"query": {"recordType": "Note"}}"#
    private static let set = #"{"writes": [{"key": "theme", "value": "dark"}]}"#

    @Test("an admin sees a user's private data and preferences, changes nothing, and no encrypted value is shown")
    func reads() async throws {
        let scene = try await Scene()
        let browser = try await scene.world.member("maria", "admin")
        #expect(try await scene.world.browse(browser, "POST", scene.path("records/query"), Self.query).status == 403)
        let begun = try await scene.begin(browser)
        #expect(begun.status == 200 && begun.json["user"]?.string == "ada", "\(begun)")
        #expect(begun.json["write"] == .bool(false) && begun.json["administrator"]?.string == "maria")
        let id = try #require(begun.json["id"]?.string)
        let found = try await scene.act(browser, id, scene.path("records/query"), Self.query)
        let record = found.json["records"]?.array?.first
        #expect(record?["recordName"]?.string == "n", "\(found)")
        #expect(record?["fields"]?["text"]?["value"]?.string == "hello" && record?["fields"]?["secret"] == nil)
        for action in ["records/lookup", "records/changes", "changes/zone"] {
            let body =
                action == "records/lookup"
                ? #"{"records": [{"recordName": "n"}]}"# : #"{"zones": [{"zoneID": {"zoneName": "_defaultZone"}}]}"#
            let page = try await scene.act(browser, id, scene.path(action), body)
            #expect(!page.text.contains("x7"), "\(action): \(page)")
        }
        // The user's own app sees it.
        #expect(try await scene.asUser("records/query", Self.query).text.contains("x7"))
        let caller = try await scene.act(browser, id, scene.path("users/caller", "public"))
        #expect(caller.json["userRecordName"]?.string == begun.json["userRecordName"]?.string)
        #expect(try await scene.act(browser, id, scene.kv("list")).status == 200)
        for (path, body) in [
            (scene.path("records/modify"), Scene.save("n", "bye")), (scene.kv("set"), Self.set),
            (scene.path("zones/modify"), #"{"operations": []}"#), (scene.path("records/modify", "public"), "{}"),
            (scene.path("assets/upload"), "{}"),
            ("/device/1/\(ConsoleWorld.container)/development/tokens/create", "{}"),
        ] {
            let page = try await scene.act(browser, id, path, body)
            #expect(page.status == 403 && page.text.contains("read only"), "\(path): \(page)")
        }
        #expect(try await scene.asUser("records/query", Self.query).text.contains("hello"))
        try await scene.world.node.stop()
    }

    @Test("who asked to write writes as the user; a conflict shows no encrypted value")
    func writes() async throws {
        let scene = try await Scene()
        let browser = try await scene.world.member("maria", "admin")
        let begun = try await scene.begin(browser, write: true)
        let id = try #require(begun.json["id"]?.string)
        let saved = try await scene.act(browser, id, scene.path("records/modify"), Scene.save("n", "new"))
        #expect(saved.status == 200 && !saved.text.contains("x7"), "\(saved)")
        let user = begun.json["userRecordName"]?.string
        #expect(saved.json["records"]?.array?.first?["modified"]?["userRecordName"]?.string == user)
        let stale =
            #"{"operations": [{"operationType": "update", "record": {"recordType": "Note", "recordName": "n", "#
            + #""recordChangeTag": "0", "fields": {"text": {"value": "late"}}}}]}"#
        let conflict = try await scene.act(browser, id, scene.path("records/modify"), stale)
        #expect(conflict.text.contains("serverErrorCode") && !conflict.text.contains("x7"), "\(conflict)")
        #expect(try await scene.act(browser, id, scene.kv("set"), Self.set).status == 200)
        let zone =
            #"{"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": "my-zone"}}}]}"#
        #expect(try await scene.act(browser, id, scene.path("zones/modify"), zone).status == 200)
        #expect(try await scene.asUser("records/query", Self.query).text.contains("new"))
        // What was hidden is still there.
        #expect(try await scene.asUser("records/query", Self.query).text.contains("x7"))
        try await scene.world.node.stop()
    }

    @Test("Stop ends it at once, and so do signing out and the limit; it is nobody else's, and elsewhere nothing")
    func ends() async throws {
        let scene = try await Scene()
        let world = scene.world
        let (browser, other) = (try await world.member("maria", "admin"), try await world.member("otto", "admin"))
        func status(_ browser: ConsoleWorld.Browser, _ id: String, _ path: String? = nil) async throws -> Int {
            try await scene.act(browser, id, path ?? scene.path("records/query"), Self.query).status
        }
        func began(_ browser: ConsoleWorld.Browser) async throws -> String {
            try #require(try await scene.begin(browser).json["id"]?.string)
        }
        let first = try await began(browser)
        #expect(try await status(browser, first) == 200)
        #expect(try await status(other, first) == 403, "another administrator")
        #expect(try await status(ConsoleWorld.Browser(), first) == 400, "nobody")
        #expect(try await status(browser, "0123456789abcdef") == 403)
        #expect(try await status(browser, first, scene.path("records/query", "private", "production")) == 403)
        // Another browser of the same administrator began nothing.
        let second = try world.signedIn(try await world.signIn("maria"))
        #expect(try await status(second, first) == 403)
        let listed = try await world.browse(browser, "GET", "act-as").json["acting"]?.array
        #expect(listed?.map { $0["own"] } == [.bool(true)])
        #expect(try await world.browse(browser, "DELETE", "act-as?id=\(first)").status == 200)
        #expect(try await status(browser, first) == 403)
        #expect(try await world.browse(browser, "DELETE", "act-as?id=\(first)").status == 404)
        // A new one takes the place of the last; an admin of the cluster ends those of others.
        let (third, fourth) = (try await began(browser), try await began(browser))
        #expect(try await status(browser, third) == 403)
        #expect(try await status(browser, fourth) == 200)
        try await world.admin("PATCH", "limits?container=\(ConsoleWorld.container)", #"{"actAsMinutes": 0}"#)
        #expect(try await status(browser, fourth) == 403)
        #expect(try await scene.begin(browser).status == 403)
        try await world.admin("PATCH", "limits?container=\(ConsoleWorld.container)", #"{"actAsMinutes": null}"#)
        #expect(try await status(browser, fourth) == 200)
        #expect(try await world.browse(other, "DELETE", "act-as?id=\(fourth)").status == 200)
        #expect(try await status(browser, fourth) == 403)
        let fifth = try await began(browser)
        #expect(try await world.browse(browser, "POST", "console/sign-out").status == 200)
        let left = try await world.admin("GET", "act-as")["acting"]?.array
        #expect(left?.contains { $0["id"]?.string == fifth } == false)
        try await world.node.stop()
    }

    @Test("production is off until the limit is set; only an admin of the container is let in, with a reason")
    func refused() async throws {
        let scene = try await Scene()
        let world = scene.world
        let browser = try await world.member("maria", "admin")
        let off = try await scene.begin(browser, environment: "production")
        #expect(off.status == 403 && off.text.contains("actAsProductionMinutes"), "\(off)")
        try await world.admin("PATCH", "limits", #"{"actAsProductionMinutes": 5}"#)
        let on = try await scene.begin(browser, environment: "production")
        guard case .integer(let expires)? = on.json["expires"], case .integer(let began)? = on.json["began"] else {
            Issue.record("\(on)")
            return
        }
        #expect(expires - began == 5 * 60_000)
        let elsewhere = try await world.member("eve", "admin", containers: #"["iCloud.test.other"]"#)
        for other in [elsewhere, try await world.member("dan", "developer")] {
            #expect(try await scene.begin(other).status == 403)
        }
        let place = #""container": "\#(ConsoleWorld.container)""#
        for (body, status) in [
            (#"{\#(place), "user": "ada"}"#, 400), (#"{\#(place), "user": "ada", "reason": " "}"#, 400),
            (#"{\#(place), "user": "nobody", "reason": "r"}"#, 404), (#"{"user": "ada", "reason": "r"}"#, 400),
            (#"{\#(place), "user": "ada", "reason": "r", "minutes": 16}"#, 400),
            (#"{\#(place), "user": "ada", "reason": "r", "write": 1}"#, 400),
        ] { #expect(try await world.browse(browser, "POST", "act-as", body).status == status, "\(body)") }
        try await world.node.stop()
    }

    @Test("it has a rate of its own, and the audit log names both")
    func rateAndAudit() async throws {
        let scene = try await Scene()
        let world = scene.world
        let browser = try await world.member("maria", "admin")
        try await world.admin(
            "PATCH", "limits?container=\(ConsoleWorld.container)", #"{"actAsRequestsPerSecond": 1}"#)
        let id = try #require(try await scene.begin(browser).json["id"]?.string)
        var statuses: [Int] = []
        for _ in 0..<40 where statuses.last != 429 {
            let page = try await scene.act(browser, id, scene.path("records/query"), Self.query)
            #expect(page["ratelimit-policy"] == "\"acting\";q=1;w=1")
            statuses.append(page.status)
        }
        #expect(statuses.first == 200 && statuses.last == 429, "\(statuses)")
        // The container's own requests go on.
        #expect(try await scene.asUser("records/query", Self.query).status == 200)
        #expect(try await world.browse(browser, "DELETE", "act-as?id=\(id)").status == 200)
        let records = try await world.admin("GET", "audit")["records"]?.array ?? []
        for action in ["act-as.begin", "act-as.end"] {
            let record = records.first { $0["action"]?.string == action }
            #expect(record?["actor"]?.string == "administrator maria (console)")
            let subject = record?["subject"]?.string ?? ""
            #expect(subject.contains("as user ada") && subject.contains("ticket 7"), "\(subject)")
        }
        try await world.node.stop()
    }

    @Test("an administrator's token acts, too, and a client's request cannot name a time as a user")
    func tokens() async throws {
        let scene = try await Scene()
        let world = scene.world
        let place = #""container": "\#(ConsoleWorld.container)""#
        let begun = try await world.admin("POST", "act-as", #"{\#(place), "user": "ada", "reason": "r"}"#)
        #expect(begun["administrator"]?.string == "administrator")
        let id = try #require(begun["id"]?.string)
        func query(_ headers: [(String, String)], _ parameters: String = "") async throws -> Int {
            try await world.send(
                "POST", scene.path("records/query") + parameters, Self.query,
                headers: headers + [("X-Zonekeeper-Act-As", id)]
            ).status
        }
        let bearer = ("Authorization", "Bearer \(SingleNode.administratorToken)")
        #expect(try await query([bearer]) == 200)
        #expect(try await query([("Authorization", "Bearer wrong")]) == 401)
        #expect(try await query([]) == 400)
        let api = try await world.admin("POST", "tokens", #"{"kind": "api", \#(place)}"#)
        #expect(try await query([], "?ckAPIToken=\(api["secret"]?.string ?? "")") == 400)
        try await world.node.stop()
    }

    @Test("a session in the console makes its administrator a token, once; nobody else's")
    func personalToken() async throws {
        let world = try await ConsoleWorld()
        let browser = try await world.member("dan", "developer")
        let made = try await world.browse(browser, "POST", "console/token", #"{"label": "laptop"}"#)
        let secret = try #require(made.json["secret"]?.string)
        #expect(try await world.token("GET", "console/me", secret: secret).json["role"]?.string == "developer")
        #expect(try await world.token("GET", "users", secret: secret).status == 403)
        #expect(try await world.browse(browser, "POST", "console/token", "{}").status == 409)
        #expect(try await world.token("POST", "console/token", "{}").status == 400)
        let listed = try await world.admin("GET", "tokens?kind=administrator")["tokens"]?.array?.first
        #expect(listed?["maker"]?.string == "administrator dan (console)" && listed?["label"]?.string == "laptop")
        // Its owner and the team see it, and by itself it is revoked.
        #expect(try await world.browse(browser, "GET", "console/me").json["token"]?["label"]?.string == "laptop")
        let team = try await world.admin("GET", "administrators")["administrators"]?.array
        #expect(team?.first?["token"]?["id"] == listed?["id"])
        #expect(try await world.token("DELETE", "console/token", secret: secret).status == 200)
        #expect(try await world.token("GET", "console/me", secret: secret).status == 401)
        let me = try await world.browse(browser, "GET", "console/me")
        #expect(me.status == 200 && me.json["token"] == nil)
        #expect(try await world.browse(browser, "DELETE", "console/token").status == 404)
        try await world.node.stop()
    }
}
