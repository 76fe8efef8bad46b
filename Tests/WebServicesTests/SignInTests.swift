import Admission
import Directory
import RecordModel
import TestSupport
import Testing

@testable import Service
@testable import WebServices

@Suite("Signing in", .serialized)
struct SignInTests {
    private let signer = SessionSigner(clusterKey: (0..<32).map { UInt8($0) })

    @Test("a program signs a user in and out; the audit log tells of it, without the password")
    func programs() async throws {
        let world = try await SignInWorld()
        let done = try await world.signIn("ada", SignInWorld.password)
        #expect(done.status == 200, "\(done)")
        let token = try #require(done.json["ckWebAuthToken"]?.string)
        let session = try #require(signer.open(token))
        #expect(done.json["userRecordName"]?.string?.hasPrefix("_") == true)
        guard case .integer(let expires)? = done.json["expires"] else { throw TestFailure("no expires") }
        #expect(expires - session.issued == SignIn.lifetimeMilliseconds.short)
        let listed = try await world.admin("GET", "tokens?kind=sign-in")["tokens"]?.array
        #expect(listed?.map { $0["id"]?.string } == [session.sessionID] && listed?.first?["user"]?.string == "ada")
        #expect(try await world.admin("GET", "tokens?kind=sign-in&user=ada")["tokens"]?.array == listed)
        _ = try await world.admin("POST", "users", #"{"name": "nobody-else"}"#)
        #expect(try await world.admin("GET", "tokens?user=nobody-else")["tokens"]?.array == [])
        let query = "ckAPIToken=\(world.apiToken.secret)&ckWebAuthToken=\(token)"
        for _ in 0..<2 {
            let out = try await world.postJSON("/sign-out?\(query)", "")
            #expect(out.status == 200 && out.json["signedOut"] == .bool(true), "\(out)")
        }
        #expect(try await world.admin("GET", "tokens?kind=sign-in")["tokens"]?.array == [])
        let audit = try await world.admin("GET", "audit")
        let actors = audit["records"]?.array?.compactMap { $0["actor"]?.string } ?? []
        #expect(actors.contains("user ada") && actors.contains("administrator"))
        #expect(!String(decoding: audit.serialized(), as: UTF8.self).contains(SignInWorld.password))
        for (body, status) in [
            ("", 400), ("[]", 400), (#"{"apiToken": "x", "name": "ada", "password": "y"}"#, 401),
            (#"{"apiToken": "\#(world.apiToken.secret)", "name": "ada"}"#, 400),
        ] { #expect(try await world.postJSON("/sign-in", body).status == status, "\(body)") }
        #expect(try await world.postJSON("/sign-out?ckAPIToken=x&ckWebAuthToken=y", "").status == 401)
        #expect(try await world.get("/sign-out").status == 405)
        try await world.node.stop()
    }

    @Test("the audit log tells of 60 sign-ins and sign-outs of a user in an hour, and of the others by their number")
    func budget() async throws {
        let world = try await SignInWorld()
        let service = world.node.recordService
        // In the next hour: the one that is over a moment later is no other one.
        let origin = AuditOrigin(actor: "user ada", requestID: "", address: "", time: service.now + 3_600_000)
        for _ in 0..<59 { #expect(service.audit.tells(origin, in: SignInWorld.container)) }
        for _ in 0..<2 {
            let token = try await world.signIn("ada", SignInWorld.password).json["ckWebAuthToken"]?.string
            let query = "ckAPIToken=\(world.apiToken.secret)&ckWebAuthToken=\(try #require(token))"
            #expect(try await world.postJSON("/sign-out?\(query)", "").status == 200)
        }
        #expect(try await world.admin("GET", "tokens?kind=sign-in")["tokens"]?.array == [])
        await service.audit.stop(service)
        let records = try await world.admin("GET", "audit")["records"]?.array
        let told = records?.filter { $0["actor"]?.string == "user ada" }
        #expect(told?.map { $0["action"]?.string } == ["session.begin", "sessions"], "\(told ?? [])")
        #expect(told?.last?["count"] == .integer(3))
        try await world.node.stop()
    }

    @Test("nobody is told to have signed out whose session goes on: an app of another container does not end it")
    func otherContainer() async throws {
        let world = try await SignInWorld()
        _ = try await world.admin("POST", "containers", #"{"name": "iCloud.test.other"}"#)
        let made = try await world.admin("POST", "tokens", #"{"kind": "api", "container": "iCloud.test.other"}"#)
        let other = try #require(made["secret"]?.string)
        let token = try #require(
            try await world.signIn("ada", SignInWorld.password).json["ckWebAuthToken"]?.string)
        for (apiToken, status, left) in [(other, 401, 1), (world.apiToken.secret, 200, 0)] {
            let out = try await world.postJSON("/sign-out?ckAPIToken=\(apiToken)&ckWebAuthToken=\(token)", "")
            #expect(out.status == status, "\(out)")
            #expect(try await world.admin("GET", "tokens?kind=sign-in")["tokens"]?.array?.count == left)
        }
        try await world.node.stop()
    }

    @Test("signing out of what never was a session writes nothing to the directory's log")
    func unknownSession() async throws {
        let world = try await SignInWorld()
        func written() async throws -> JSONValue? {
            let groups = try await world.admin("GET", "status")["replicas"]?.array
            return groups?.first { $0["group"] == .integer(0) }?["commitIndex"]
        }
        let path = "/sign-out?ckAPIToken=\(world.apiToken.secret)&ckWebAuthToken="
        let before = try #require(try await written())
        for text in ["y", String(repeating: "0f", count: 32), world.apiToken.secret] {
            let out = try await world.postJSON(path + text, "")
            #expect(out.status == 200 && out.json["signedOut"] == .bool(true), "\(out)")
        }
        #expect(try await written() == before)
        // One that ended a moment ago is another matter: no node may rely on it once the answer is there.
        let token = signer.token(sessionID: "5ec2e75ec2e75ec2", issued: 1)
        #expect(try await world.postJSON(path + token, "").status == 200)
        #expect(try await written() != before)
        try await world.node.stop()
    }

    @Test("wrong passwords and unknown names are refused alike, and lock alike; an administrator's reset unlocks")
    func lockout() async throws {
        let world = try await SignInWorld()
        var answers: [String: [String]] = [:]
        for name in ["ada", "nobody"] {
            for attempt in 0..<5 {
                let page = try await world.signIn(name, "wrong \(name) \(attempt)")
                #expect(page.status == 401 && page.code == "AUTHENTICATION_FAILED", "\(page)")
                answers[name, default: []].append(page.json["reason"]?.string ?? "")
            }
            // Each further one that is looked at locks for twice as long, so that also on a slow machine some attempts
            // come while it is locked. The right password does not help then, nor is it looked at.
            var locked: SignInWorld.Page?
            for attempt in 0..<20 where locked == nil {
                let wrong = try await world.signIn(name, "wrong \(name) again \(attempt)")
                #expect(wrong.status == 401 || wrong.status == 429, "\(wrong)")
                guard wrong.status == 429 else { continue }
                let page = try await world.signIn(name, name == "ada" ? SignInWorld.password : "whatever it is")
                if page.status == 429 { locked = page }
            }
            #expect(locked?.code == "THROTTLED" && locked?["retry-after"] != nil, "\(name)")
            #expect(locked?.json["reason"]?.string?.contains("try again in") == true)
        }
        #expect(answers["ada"] == answers["nobody"])
        for log in ["changes", "requests"] {
            let page = try await world.admin("GET", "audit?limit=1000&log=\(log)")
            let audit = String(decoding: page.serialized(), as: UTF8.self)
            #expect(audit.contains("sign-in.fail") == (log == "requests"))
            #expect(!audit.contains("nobody") && !audit.contains("wrong ada"))
        }
        func locked() async throws -> JSONValue? {
            let users = try await world.admin("GET", "users")["users"]?.array ?? []
            return users.first { $0["name"] == .string("ada") }?["lockedUntil"]
        }
        // The last failure may have locked for some seconds only: one more, and it is for longer.
        for _ in 0..<8 where try await locked() == nil { _ = try await world.signIn("ada", "wrong ada") }
        #expect(try await world.admin("POST", "users/unlock?name=ada")["unlocked"] == .bool(true))
        #expect(try await locked() == nil)
        #expect(try await world.signIn("ada", "wrong ada").status == 401, "none of the failures counts any more")
        _ = try await world.admin("POST", "users/password?name=ada", #"{"password": "another one"}"#)
        #expect(try await world.signIn("ada", "another one").status == 200)
        #expect(try await world.signIn("ada", SignInWorld.password).status == 401)
        // Its sessions end with a password, unless told not to.
        _ = try await world.admin("POST", "users/password?name=ada", #"{"password": null, "endSessions": false}"#)
        #expect(try await world.admin("GET", "tokens?kind=sign-in")["tokens"]?.array?.count == 1)
        #expect(try await world.signIn("ada", "another one").status == 401)
        _ = try await world.admin("POST", "users/password?name=ada", #"{"password": null}"#)
        #expect(try await world.admin("GET", "tokens?kind=sign-in")["tokens"]?.array == [])
        try await world.node.stop()
    }

    @Test("others who guess cannot lock out a browser that signed in before")
    func knownBrowser() async throws {
        let world = try await SignInWorld()
        let fields = [("ticket", world.ticket()), ("name", "ada"), ("password", SignInWorld.password)]
        let first = try await world.post("/sign-in", fields)
        let known = try #require(
            first.headers.first { $0.value.hasPrefix(KnownBrowser.cookieName) }?.value.prefix { $0 != ";" })
        for attempt in 0..<5 {
            #expect(try await world.signIn("ada", "wrong \(attempt) of others").status == 401)
        }
        var locked: SignInWorld.Page?
        for attempt in 0..<6 where locked == nil {
            #expect(try await world.signIn("ada", "wrong again \(attempt)").status == 401)
            let page = try await world.post("/sign-in", fields)
            if page.status == 429 { locked = page }
        }
        #expect(locked != nil)
        let done = try await world.post("/sign-in", fields, cookie: "\(SignInWorld.cookie); \(known)")
        #expect(done.status == 200, "\(done)")
        try await world.node.stop()
    }

    @Test("a page that shows what was wrong names the request, as the answer's header does")
    func requestNames() async throws {
        let world = try await SignInWorld()
        for page in [
            try await world.get("/sign-in?ticket=none"), try await world.get("/sign-up?ticket=\(world.ticket())"),
            try await world.post("/sign-in", [("ticket", world.ticket()), ("name", "ada"), ("password", "wrong")]),
            try await world.post(
                "/sign-in", [("ticket", world.ticket()), ("name", String(repeating: "x", count: 65_536))]),
        ] {
            let id = try #require(page["x-apple-request-uuid"])
            #expect(page.status >= 400 && page.text.contains(id), "\(page)")
        }
        try await world.node.stop()
    }

    @Test("the page signs in with its form and tells the page that opened it; without its cookie it does not")
    func popup() async throws {
        let world = try await SignInWorld(token: #""origins": ["https://app.example/"]"#)
        let ticket = world.ticket()
        let page = try await world.get("/sign-in?ticket=\(ticket)")
        #expect(page.status == 200 && page["content-type"] == "text/html; charset=UTF-8", "\(page)")
        #expect(page.text.contains(SignInWorld.container) && page["content-security-policy"] != nil)
        let cookie = try #require(page["set-cookie"]?.split(separator: ";").first?.split(separator: "=").last)
        #expect(page.text.contains("name=\"check\" value=\"\(cookie)\""))
        // A browser that has the cookie keeps it.
        #expect(
            try await world.get("/sign-in?ticket=\(ticket)", cookie: SignInWorld.cookie).text.contains(
                SignInWorld.cookie))
        let fields = [
            ("ticket", ticket), ("name", "ada"), ("password", SignInWorld.password), ("keepSignedIn", "true"),
        ]
        let done = try await world.post("/sign-in", fields)
        #expect(done.status == 200 && done.text.contains(#"var targets = ["https://app.example"];"#), "\(done)")
        #expect(done.text.contains("ckSession") && done["cache-control"] == "no-store")
        let token = try #require(done.text.split(separator: "\"ckWebAuthToken\":\"").last?.split(separator: "\"").first)
        #expect(signer.open(String(token)) != nil)
        let session = try await world.admin("GET", "tokens?kind=sign-in")["tokens"]?.array?.first
        guard case .integer(let expires)? = session?["expires"], case .integer(let created)? = session?["created"]
        else {
            throw TestFailure("no session")
        }
        #expect(expires - created == SignIn.lifetimeMilliseconds.kept)
        let asked = world.ticket(asker: "https://evil.example")
        let stolen = try await world.post(
            "/sign-in", [("ticket", asked), ("name", "ada"), ("password", SignInWorld.password)])
        #expect(stolen.status == 200 && stolen.text.contains("var targets = [];"), "\(stolen)")
        for wrong in [
            try await world.post("/sign-in", fields, cookie: nil),
            try await world.post("/sign-in", fields, check: String(repeating: "00", count: 16)),
            try await world.post("/sign-in", fields, origin: "https://evil.example"),
            try await world.post("/sign-in", fields, origin: "null"),
        ] { #expect(wrong.status == 400 && !wrong.text.contains("ckWebAuthToken"), "\(wrong)") }
        let refused = try await world.post("/sign-in", [("ticket", ticket), ("name", "a\"da"), ("password", "wrong")])
        #expect(refused.status == 401 && refused.text.contains("a&quot;da") && refused.text.contains("not right"))
        let cancelled = try await world.post("/sign-in", [("ticket", ticket), ("cancel", "true")])
        #expect(cancelled.status == 200 && cancelled.text.contains("errorMessage"), "\(cancelled)")
        // The origin list holds for programs in browsers, too.
        let body = #"{"apiToken": "\#(world.apiToken.secret)", "name": "ada", "password": "x"}"#
        #expect(try await world.postJSON("/sign-in", body, origin: "https://evil.example").status == 401)
        try await world.node.stop()
    }

    @Test(
        "a callback URL is sent the token; a link that is forged, old, or of a revoked token shows why it does not work"
    )
    func callback() async throws {
        let world = try await SignInWorld(token: #""callbackURL": "https://app.example/in?x=1""#)
        let fields = [("ticket", world.ticket()), ("name", "ada"), ("password", SignInWorld.password)]
        let page = try await world.get("/sign-in?ticket=\(world.ticket())")
        #expect(page["content-security-policy"]?.contains("form-action 'self' https://app.example") == true)
        let done = try await world.post("/sign-in", fields)
        let place = try #require(done["location"])
        #expect(done.status == 303 && place.hasPrefix("https://app.example/in?x=1&ckWebAuthToken="), "\(done)")
        #expect(signer.open(String(place.split(separator: "ckWebAuthToken=")[1])) != nil)
        let cancelled = try await world.post("/sign-in", [("ticket", world.ticket()), ("cancel", "true")])
        #expect(cancelled["location"]?.hasPrefix("https://app.example/in?x=1&errorMessage=") == true)
        for bad in [
            "", world.ticket(expires: 1), world.ticket(key: 1), world.ticket(tokenID: "none"), "zkt1_AAAA",
            String(world.ticket().dropLast()),
        ] {
            let page = try await world.get("/sign-in?ticket=\(bad)")
            #expect(page.status == 400 && page["content-type"]?.hasPrefix("text/html") == true, "\(page)")
        }
        _ = try await world.admin("DELETE", "tokens?id=\(world.apiToken.id)")
        #expect(try await world.post("/sign-in", fields).status == 400)
        try await world.node.stop()
    }

    @Test("an account is made only where sign-up is open, once for each name, with a good password")
    func signUp() async throws {
        let world = try await SignInWorld()
        let ticket = world.ticket()
        func make(_ name: String, _ password: String, _ repeated: String? = nil) async throws -> SignInWorld.Page {
            try await world.post(
                "/sign-up",
                [("ticket", ticket), ("name", name), ("password", password), ("repeated", repeated ?? password)])
        }
        #expect(try await world.get("/sign-up?ticket=\(ticket)").status == 403)
        #expect(try await make("grace", "a good one").status == 403)
        #expect(try await world.admin("GET", "sign-up")["open"] == .bool(false))
        #expect(!(try await world.get("/sign-in?ticket=\(ticket)").text.contains("/sign-up?")))
        _ = try await world.admin("PATCH", "sign-up", #"{"open": true}"#)
        #expect(try await world.get("/sign-up?ticket=\(ticket)").status == 200)
        #expect(try await world.get("/sign-in?ticket=\(ticket)").text.contains("/sign-up?"))
        for (name, password, repeated, status) in [
            ("grace", "short", "short", 400), ("grace", "a good one", "another", 400),
            ("", "a good one", "a good one", 400),
            ("ada", "a good one", "a good one", 409), ("x\ny", "a good one", "a good one", 400),
        ] {
            let page = try await make(name, password, repeated)
            #expect(page.status == status && page.text.contains("role=\"alert\""), "\(page)")
        }
        let done = try await make(" grace ", "a good one")
        #expect(done.status == 200 && done.text.contains("ckWebAuthToken"), "\(done)")
        #expect(try await world.signIn("grace", "a good one").status == 200)
        let users = try await world.admin("GET", "users")["users"]?.array?.compactMap { $0["name"]?.string }
        #expect(users == ["ada", "grace"])
        try await world.node.stop()
    }
}
