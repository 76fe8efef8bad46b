import Directory
import RecordModel
import TestSupport
import Testing

@testable import Service
@testable import WebServices

@Suite("Jobs: counting, exporting and deleting all matches", .serialized)
struct JobTests {
    private static let schema = """
        DEFINE SCHEMA RECORD TYPE Note (
            "___recordID" REFERENCE QUERYABLE, text STRING QUERYABLE, number INT64 QUERYABLE SORTABLE,
            target REFERENCE,
            GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world"
        );
        """
    private static let container = ConsoleWorld.container

    /// A node with notes in the public database.
    private struct Scene {
        let world: ConsoleWorld

        init(notes: Int = 250, _ change: (inout ServiceSettings) -> Void = { _ in }) async throws {
            var settings = ServiceSettings()
            change(&settings)
            world = try await ConsoleWorld(service: settings)
            try await world.admin("POST", "schema?container=\(container)", schema)
            try await save(0..<notes)
        }

        static func path(_ action: String, _ database: String = "public") -> String {
            "/database/1/\(container)/development/\(database)/\(action)"
        }

        func save(_ numbers: Range<Int>) async throws {
            for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 200) {
                let operations = (start..<min(start + 200, numbers.upperBound)).map { number in
                    #"{"operationType": "create", "record": {"recordType": "Note", "recordName": "n\#(number)", "#
                        + #""fields": {"text": {"value": "\#(number % 2 == 0 ? "even" : "odd")"}, "#
                        + #""number": {"value": \#(number)}}}}"#
                }
                let page = try await world.token(
                    "POST", Self.path("records/modify"),
                    #"{"operations": [\#(operations.joined(separator: ","))]}"#)
                #expect(page.status == 200 && !page.text.contains("serverErrorCode"), "\(page)")
            }
        }

        static func input(_ filter: String? = nil, more: String = "", environment: String = "development") -> String {
            let filters =
                filter.map {
                    #", "filterBy": [{"fieldName": "text", "comparator": "EQUALS", "fieldValue": {"value": "\#($0)"}}]"#
                } ?? ""
            return #"{"container": "\#(container)", "environment": "\#(environment)"\#(more), "#
                + #""query": {"recordType": "Note"\#(filters)}}"#
        }

        /// A job at its end.
        func done(_ kind: String, _ body: String) async throws -> JSONValue {
            try await followed(try await world.admin("POST", "jobs/\(kind)", body))
        }

        func followed(_ job: JSONValue) async throws -> JSONValue {
            var job = job
            while job["state"]?.string == "running" {
                job = try await world.admin("GET", "jobs/state?id=\(job["id"]?.string ?? "")&wait=true")
            }
            return job
        }

        func result(_ job: JSONValue, _ more: String = "") async throws -> SignInWorld.Page {
            try await world.token("GET", "jobs/result?id=\(job["id"]?.string ?? "")\(more)")
        }
    }

    @Test("all matches are counted over pages, exported whole or in parts, and deleted; the rest stays")
    func whole() async throws {
        let scene = try await Scene()
        let counted = try await scene.done("count", Scene.input())
        #expect(
            counted["state"]?.string == "done" && counted["records"] == .integer(250) && counted["node"] == .integer(1),
            "\(counted)")
        let exported = try await scene.done("export", Scene.input("even", more: #", "format": "csv""#))
        #expect(exported["records"] == .integer(125) && exported["filters"] == .integer(1), "\(exported)")
        let file = try await scene.result(exported)
        let lines = file.text.split(separator: "\r\n")
        #expect(lines.first == "recordName,number,target,text" && lines.count == 126)
        #expect(lines.contains("n248,248,,even") && file["content-type"] == "text/csv; charset=UTF-8")
        #expect(file["content-disposition"] == "attachment; filename=\"Note.csv\"")
        #expect(exported["bytes"] == .integer(Int64(file.text.utf8.count)))
        let parts = [
            try await scene.result(exported, "&length=100").text,
            try await scene.result(exported, "&offset=100").text,
        ]
        #expect(parts[0].utf8.count == 100 && parts.joined() == file.text)
        #expect(try await scene.result(exported, "&offset=999999").status == 400)
        #expect(try await scene.result(counted).status == 404)
        let array = try await scene.result(try await scene.done("export", Scene.input("even"))).json.array
        #expect(array?.count == 125 && array?.allSatisfy { $0["fields"]?["text"]?["value"]?.string == "even" } == true)
        let deleted = try await scene.done("delete", Scene.input("even"))
        #expect(
            deleted["state"]?.string == "done" && deleted["records"] == .integer(125) && deleted["left"] == .integer(0),
            "\(deleted)")
        #expect(try await scene.done("count", Scene.input())["records"] == .integer(125))
        #expect(try await scene.done("count", Scene.input("even"))["records"] == .integer(0))
        try await scene.world.node.stop()
    }

    @Test("a deletion that is cancelled leaves what it has not come to")
    func cancelled() async throws {
        let scene = try await Scene(notes: 450) { $0.concurrentRequestsMax = 1 }
        let service = scene.world.node.recordService
        @Sendable func hold() async throws {
            try await service.gate.takePlace(
                container: Self.container, in: service.directory, on: service.node)
        }
        func waiting(_ count: Int) async throws {
            try await awaitTrue("\(count) wait for the only place") { service.gate.load.waiting == count }
        }
        try await hold()
        let job = try await scene.world.admin("POST", "jobs/delete", Scene.input())
        // The first page, and the first of its deletions.
        for _ in 0..<2 {
            try await waiting(1)
            async let next: Void = hold()
            try await waiting(2)
            service.gate.leave(container: Self.container)
            try await next
        }
        try await waiting(1)
        let id = try #require(job["id"]?.string)
        #expect(try await scene.world.admin("DELETE", "jobs?id=\(id)")["state"]?.string == "running")
        let ended = try await scene.followed(job)
        #expect(
            ended["state"]?.string == "cancelled" && ended["records"] == .integer(100) && ended["problem"] == nil,
            "\(ended)")
        service.gate.leave(container: Self.container)
        #expect(try await scene.done("count", Scene.input())["records"] == .integer(350))
        try await scene.world.node.stop()
    }

    @Test("a result may be as large as the bound; a larger one fails, says what to do, and is not kept")
    func bound() async throws {
        let lines = (0..<250).filter { $0 % 2 == 0 }.map { "n\($0),\($0),,even\r\n" }
        let bytes = ("recordName,number,target,text\r\n" + lines.joined()).utf8.count
        let scene = try await Scene { $0.jobResultBytesMax = bytes }
        let csv = #", "format": "csv""#
        let largest = try await scene.done("export", Scene.input("even", more: csv))
        #expect(largest["state"]?.string == "done" && largest["bytes"] == .integer(Int64(bytes)), "\(largest)")
        let larger = try await scene.done("export", Scene.input(more: csv))
        #expect(larger["state"]?.string == "failed" && larger["problem"]?["code"]?.string == "BAD_REQUEST", "\(larger)")
        #expect(larger["problem"]?["reason"]?.string?.contains("export less of it with a filter") == true)
        #expect(try await scene.result(larger).status == 404)
        #expect(try await scene.result(largest).text.utf8.count == bytes)
        try await scene.world.node.stop()
    }

    @Test("a job of an administrator who has a token only goes on as long as that token does")
    func right() async throws {
        let scene = try await Scene(notes: 0)
        let service = scene.world.node.recordService
        let job = Self.deletion(in: .public)
        let right = JobRight(access: AdministratorAccess(name: "ci", role: .admin), acting: nil)
        let made = try await scene.world.admin("POST", "tokens", #"{"kind": "administrator", "name": "ci"}"#)
        _ = try await right.admitted(by: service, to: job, writes: true)
        try await scene.world.admin("DELETE", "tokens?id=\(made["id"]?.string ?? "")")
        let failure = await #expect(throws: RequestFailure.self) {
            try await right.admitted(by: service, to: job, writes: true)
        }
        #expect(failure?.error.code == .accessDenied)
        try await scene.world.node.stop()
    }

    private static func deletion(in database: Scope) -> Job {
        Job(
            id: JobID(node: 1, uuid: UUIDv7(milliseconds: 1, random: (0, 1))), kind: .delete,
            container: container, environment: .development, database: database, zone: "_defaultZone",
            recordType: "Note", filters: 0, by: "ci")
    }

    @Test("a job of who acts as a user ends with its container, and goes on once that is restored")
    func containerEnds() async throws {
        let world = try await Scene(notes: 0).world
        try await world.admin("POST", "users", #"{"name": "ada"}"#)
        let made = try await world.admin("POST", "tokens", #"{"kind": "administrator", "name": "ci"}"#)
        let begun = try await world.token(
            "POST", "act-as",
            #"{"container": "\#(Self.container)", "user": "ada", "reason": "ticket 7", "write": true}"#,
            secret: made["secret"]?.string ?? "")
        let access = AdministratorAccess(name: "ci", role: .admin)
        let right = JobRight(
            access: access, acting: ActingCredential(id: begun.json["id"]?.string ?? "", access: access))
        let (service, job) = (world.node.recordService, Self.deletion(in: .private))
        _ = try await right.admitted(by: service, to: job, writes: true)
        try await world.admin("DELETE", "containers?name=\(Self.container)&confirm=\(Self.container)")
        let failure = await #expect(throws: RequestFailure.self) {
            try await right.admitted(by: service, to: job, writes: true)
        }
        #expect(failure?.error.code == .notFound)
        try await world.admin("POST", "containers/restore?name=\(Self.container)")
        _ = try await right.admitted(by: service, to: job, writes: true)
        try await world.node.stop()
    }

    @Test("jobs are listed, the newest first, forgotten when they are deleted, and the audit log tells of them")
    func kept() async throws {
        let scene = try await Scene(notes: 3)
        let first = try await scene.done("count", Scene.input("odd"))
        let second = try await scene.done("delete", Scene.input("odd"))
        let at = "jobs?container=\(Self.container)"
        func listed() async throws -> [JSONValue?] {
            try await scene.world.admin("GET", at)["jobs"]?.array?.map { $0["id"] } ?? []
        }
        #expect(try await listed() == [second["id"], first["id"]])
        #expect(try await scene.world.admin("GET", "\(at)&environment=production")["jobs"]?.array?.isEmpty == true)
        let id = try #require(first["id"]?.string)
        #expect(try await scene.world.admin("DELETE", "jobs?id=\(id)")["state"]?.string == "done")
        #expect(try await listed() == [second["id"]])
        #expect(try await scene.world.token("GET", "jobs/state?id=\(id)").status == 404)
        #expect(try await scene.world.token("GET", "jobs/state?id=7").status == 400)
        // The end is told once the work is done.
        var events: [JSONValue] = []
        while !events.contains(where: {
            $0["action"]?.string == "job.end" && $0["subject"]?.string?.hasPrefix("1 of") == true
        }) {
            events = try await scene.world.admin("GET", "audit?order=newest")["records"]?.array ?? []
        }
        for action in ["job.count", "job.delete", "job.cancel"] {
            let event = events.first { $0["action"]?.string == action }
            #expect(event?["outcome"]?.string == "done", "\(action)")
            #expect(event?["subject"]?.string?.contains("matches of 1 filter of type Note") == true)
            #expect(event?["subject"]?.string?.contains("odd") == false, "a filter's value")
        }
        try await scene.world.node.stop()
    }

    @Test("what the schema does not allow, or is no query, begins nothing")
    func refused() async throws {
        let scene = try await Scene(notes: 0)
        let unindexed = Scene.input().replacing(
            #""recordType": "Note""#,
            with: #""recordType": "Note", "filterBy": [{"fieldName": "target", "comparator": "EQUALS", "#
                + #""fieldValue": {"value": {"recordName": "x"}}}]"#)
        for (body, word) in [
            ("{}", "query"), (Scene.input(more: #", "format": "xml""#), "csv"),
            (Scene.input().replacing("Note", with: "Other"), "record type not found"), (unindexed, "QUERYABLE"),
            (Scene.input(more: #", "zoneID": {"zoneName": "mine"}"#), "_defaultZone"),
        ] {
            let page = try await scene.world.token("POST", "jobs/export", body)
            #expect(page.status == 400 && page.text.contains(word), "\(body): \(page)")
        }
        #expect(
            try await scene.world.token("POST", "jobs/count", Scene.input(more: #", "format": "csv""#)).status == 400)
        let shared = try await scene.world.token("POST", "jobs/count", Scene.input(more: #", "database": "shared""#))
        #expect(shared.status == 501)
        let elsewhere = Scene.input().replacing(Self.container, with: "iCloud.test.nowhere")
        #expect(try await scene.world.token("POST", "jobs/count", elsewhere).status == 404)
        #expect(try await scene.world.admin("GET", "jobs")["jobs"]?.array?.isEmpty == true)
        try await scene.world.node.stop()
    }

    @Test("a viewer counts and exports, a developer deletes in development, and only an admin in production")
    func roles() async throws {
        let scene = try await Scene(notes: 3)
        let world = scene.world
        let viewer = try await world.member("vera", "viewer")
        let developer = try await world.member("dan", "developer")
        let production = Scene.input(environment: "production")
        func status(_ browser: ConsoleWorld.Browser, _ kind: String, _ body: String) async throws -> Int {
            try await world.browse(browser, "POST", "jobs/\(kind)", body).status
        }
        #expect(try await status(viewer, "delete", Scene.input()) == 403)
        #expect(try await status(developer, "delete", production) == 403)
        // Private data is nobody's but its user's.
        #expect(try await status(developer, "count", Scene.input(more: #", "database": "private""#)) == 403)
        let counted = try await world.browse(viewer, "POST", "jobs/count", Scene.input())
        #expect(counted.status == 200, "\(counted)")
        let exported = try await world.browse(viewer, "POST", "jobs/export", Scene.input())
        #expect(exported.status == 200)
        _ = try await scene.followed(exported.json)
        let id = try #require(exported.json["id"]?.string)
        #expect(try await world.browse(viewer, "GET", "jobs/result?id=\(id)").json.array?.count == 3)
        #expect(try await world.browse(developer, "DELETE", "jobs?id=\(id)").status == 403)
        #expect(try await world.browse(viewer, "DELETE", "jobs?id=\(id)").status == 200)
        try await world.admin("POST", "containers", #"{"name": "iCloud.test.other"}"#)
        let carl = try await world.member("carl", "admin", containers: #"["iCloud.test.other"]"#)
        let other = try #require(counted.json["id"]?.string)
        #expect(try await world.browse(carl, "GET", "jobs/state?id=\(other)").status == 404)
        #expect(try await world.browse(carl, "GET", "jobs").json["jobs"]?.array?.isEmpty == true)
        #expect(try await world.browse(carl, "GET", "jobs?container=\(Self.container)").status == 403)
        #expect(try await status(carl, "count", Scene.input()) == 403)
        #expect(try await status(developer, "delete", Scene.input()) == 200)
        try await world.node.stop()
    }

    @Test("a job of an earlier start of its node, or of a node that left, is told as lost")
    func lost() async throws {
        let scene = try await Scene(notes: 0)
        let counted = try await scene.done("count", Scene.input())
        let id = try #require(JobID(counted["id"]?.string ?? ""))
        let earlier = JobID(node: 1, uuid: UUIDv7(milliseconds: id.uuid.milliseconds - 86_400_000, random: (1, 2)))
        for (id, word) in [(earlier, "started anew"), (JobID(node: 9, uuid: id.uuid), "no member")] {
            let job = try await scene.world.admin("GET", "jobs/state?id=\(id.text)")
            #expect(
                job["state"]?.string == "lost" && job["problem"]?["reason"]?.string?.contains(word) == true, "\(job)")
            #expect(try await scene.world.token("GET", "jobs/result?id=\(id.text)").status == 404)
            #expect(try await scene.world.admin("DELETE", "jobs?id=\(id.text)")["state"]?.string == "lost")
        }
        let never = JobID(node: 1, uuid: UUIDv7(milliseconds: id.uuid.milliseconds, random: (3, 4)))
        #expect(try await scene.world.token("GET", "jobs/state?id=\(never.text)").status == 404)
        try await scene.world.node.stop()
    }

    @Test("a record that others need is left and told of; the others go")
    func left() async throws {
        let scene = try await Scene(notes: 4)
        let save =
            #"{"operations": [{"operationType": "create", "record": {"recordType": "Note", "recordName": "keeper", "#
            + #""fields": {"text": {"value": "kept"}, "#
            + #""target": {"value": {"recordName": "n0", "action": "VALIDATE"}}}}}]}"#
        let saved = try await scene.world.token("POST", Scene.path("records/modify"), save)
        #expect(saved.status == 200 && !saved.text.contains("serverErrorCode"), "\(saved)")
        let job = try await scene.done("delete", Scene.input("even"))
        #expect(job["state"]?.string == "done" && job["records"] == .integer(1) && job["left"] == .integer(1), "\(job)")
        #expect(job["problem"]?["reason"]?.string?.hasPrefix("n0: ") == true, "\(job)")
        #expect(try await scene.done("count", Scene.input())["records"] == .integer(4))
        try await scene.world.node.stop()
    }

    /// An export of the private data of ada, as whom maria acts; it is done.
    private struct PrivateExport {
        let world: ConsoleWorld
        let browser: ConsoleWorld.Browser
        let begun: JSONValue
        private(set) var id = ""
        private(set) var state: JSONValue = .null

        static let input = Scene.input(more: #", "database": "private""#)

        init() async throws {
            world = try await Scene(notes: 0).world
            try await world.admin("POST", "users", #"{"name": "ada"}"#)
            browser = try await world.member("maria", "admin")
            begun = try await world.browse(
                browser, "POST", "act-as",
                #"{"container": "\#(container)", "user": "ada", "reason": "ticket 7", "write": true}"#
            ).json
            let save =
                #"{"operations": [{"operationType": "create", "record": {"recordType": "Note", "recordName": "mine", "#
                + #""fields": {"text": {"value": "private"}}}}]}"#
            #expect(try await act(Scene.path("records/modify", "private"), save).status == 200)
            let exported = try await act("/admin/1/jobs/export", Self.input)
            #expect(exported.status == 200 && exported.json["user"] == begun["userRecordName"], "\(exported)")
            id = try #require(exported.json["id"]?.string)
            state = exported.json
            while state["state"]?.string == "running" {
                state = try await world.browse(browser, "GET", "jobs/state?id=\(id)&wait=true").json
            }
        }

        func act(_ path: String, _ body: String) async throws -> SignInWorld.Page {
            var headers = [("X-Zonekeeper-Act-As", begun["id"]?.string ?? ""), ("Origin", ConsoleWorld.origin)]
            if let cookie = browser.cookie { headers.append(("Cookie", cookie)) }
            if let csrf = browser.csrf { headers.append(("X-Zonekeeper-CSRF", csrf)) }
            headers.append(("Sec-Fetch-Site", "same-origin"))
            return try await world.send("POST", path, body, headers: headers)
        }
    }

    @Test("as a user an administrator counts and exports private data while that lasts, and sees no result afterwards")
    func acting() async throws {
        let export = try await PrivateExport()
        let (world, browser, job) = (export.world, export.browser, export.id)
        #expect(export.state["records"] == .integer(1), "\(export.state)")
        #expect(try await world.browse(browser, "GET", "jobs/result?id=\(job)").text.contains("private"))
        let id = export.begun["id"]?.string ?? ""
        #expect(try await world.browse(browser, "DELETE", "act-as?id=\(id)").status == 200)
        #expect(try await world.browse(browser, "GET", "jobs/result?id=\(job)").status == 403)
        #expect(try await export.act("/admin/1/jobs/count", PrivateExport.input).status == 403)
        try await world.node.stop()
    }

    @Test(
        "of another's job on private data an admin sees that there is one, and ends it; it is one's own by any way in")
    func others() async throws {
        let export = try await PrivateExport()
        let (world, job) = (export.world, export.id)
        let seen = try await world.admin("GET", "jobs/state?id=\(job)")
        #expect(seen["by"]?.string == "administrator maria (console)" && seen["user"] == export.begun["userRecordName"])
        #expect(seen["recordType"] == nil && seen["zone"] == nil && seen["filters"] == nil, "\(seen)")
        let listed = try await world.admin("GET", "jobs")["jobs"]?.array
        #expect(listed?.count == 1 && listed?.first?["id"]?.string == job && listed?.first?["recordType"] == nil)
        #expect(try await world.token("GET", "jobs/result?id=\(job)").status == 404)
        let developer = try await world.member("dan", "developer")
        for method in ["GET jobs/state", "GET jobs/result", "DELETE jobs"].map({ $0.split(separator: " ") }) {
            let page = try await world.browse(developer, String(method[0]), "\(method[1])?id=\(job)")
            #expect(page.status == 404, "\(method): \(page)")
        }
        #expect(try await world.browse(developer, "GET", "jobs").json["jobs"]?.array?.isEmpty == true)
        // By her token it is maria's own, too, but for the result.
        let made = try await world.admin("POST", "tokens", #"{"kind": "administrator", "name": "maria"}"#)
        let secret = try #require(made["secret"]?.string)
        let own = try await world.token("GET", "jobs/state?id=\(job)", secret: secret)
        #expect(own.json["recordType"]?.string == "Note" && own.json["zone"]?.string == "_defaultZone", "\(own)")
        #expect(try await world.token("GET", "jobs/result?id=\(job)", secret: secret).status == 404)
        let ended = try await world.admin("DELETE", "jobs?id=\(job)")
        #expect(ended["state"]?.string == "done" && ended["recordType"] == nil, "\(ended)")
        #expect(try await world.token("GET", "jobs/state?id=\(job)").status == 404)
        try await world.node.stop()
    }

    @Test("a viewer ends by a token what they began in the console")
    func ownName() async throws {
        let scene = try await Scene(notes: 3)
        let viewer = try await scene.world.member("vera", "viewer")
        let counted = try await scene.world.browse(viewer, "POST", "jobs/count", Scene.input())
        let made = try await scene.world.admin("POST", "tokens", #"{"kind": "administrator", "name": "vera"}"#)
        let (id, secret) = (counted.json["id"]?.string ?? "", made["secret"]?.string ?? "")
        #expect(try await scene.world.token("DELETE", "jobs?id=\(id)", secret: secret).status == 200)
        try await scene.world.node.stop()
    }

    @Test("a job ends with its administrator's role, and says so")
    func roleEnds() async throws {
        let scene = try await Scene(notes: 600)
        let browser = try await scene.world.member("dan", "developer")
        let begun = try await scene.world.browse(browser, "POST", "jobs/count", Scene.input())
        #expect(begun.status == 200)
        try await scene.world.admin("DELETE", "administrators?name=dan")
        let job = try await scene.followed(begun.json)
        // It may have been done before.
        if job["state"]?.string != "done" { #expect(job["problem"]?["code"]?.string == "ACCESS_DENIED", "\(job)") }
        try await scene.world.node.stop()
    }
}
