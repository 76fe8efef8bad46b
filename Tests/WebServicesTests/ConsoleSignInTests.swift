import Directory
import RecordModel
import Service
import TestSupport
import Testing

@testable import WebServices

@Suite("Signing in to the console", .serialized)
struct ConsoleSignInTests {
    @Test("a link of the nodes' token makes the first administrator, and works once")
    func firstAdministrator() async throws {
        let world = try await ConsoleWorld()
        let link = try await world.link()
        let page = try await world.signIn(link: link)
        var browser = try world.signedIn(page)
        #expect(page.json["name"] == .null && page.json["role"]?.string == "admin" && page.json["containers"] == .null)
        #expect(page.json["needsPassword"] == .bool(true))
        let cookie = try #require(page["set-cookie"])
        #expect(cookie.hasPrefix("__Host-zk-console-"))
        for part in ["Path=/", "Secure", "HttpOnly", "SameSite=Strict"] { #expect(cookie.contains("; \(part)")) }
        #expect(!cookie.lowercased().contains("domain="))
        #expect(try await world.signIn(link: link).status == 401)
        #expect(try await world.signIn(link: "guessed").status == 401)
        // The secret of the session is no other token, and the link no session.
        #expect(try await world.token("GET", "containers", secret: link).status == 401)
        let named = try await world.browse(
            browser, "POST", "console/password", #"{"name": "grace", "password": "\#(ConsoleWorld.password)"}"#)
        #expect(named.status == 200 && named.json["name"]?.string == "grace")
        #expect(named.json["needsPassword"] == .bool(false))
        let team = try await world.admin("GET", "administrators")["administrators"]?.array
        #expect(team?.map { $0["name"]?.string } == ["grace"] && team?.first?["hasPassword"] == .bool(true))
        #expect(team?.first?["role"]?.string == "admin" && team?.first?["lastUsed"]?.isNull == false)
        let me = try await world.browse(browser, "GET", "console/me")
        #expect(me.status == 200 && me.json["name"]?.string == "grace" && me.json["csrfToken"]?.string == browser.csrf)
        // Signing in again takes the place of the session.
        let old = browser
        browser = try world.signedIn(try await world.signIn("grace", ConsoleWorld.password, browser))
        #expect(try await world.browse(old, "GET", "console/me").status == 401)
        #expect(try await world.browse(browser, "GET", "console/me").status == 200)
        let actors = try await world.admin("GET", "audit")["records"]?.array?.map { record in
            "\(record["actor"]?.string ?? "") \(record["action"]?.string ?? "")"
        }
        #expect(actors?.contains("administrator (console) console.sign-in") == true)
        #expect(actors?.contains("administrator grace (console) console.sign-in") == true)
        let out = try await world.browse(browser, "POST", "console/sign-out")
        #expect(out.status == 200 && out["set-cookie"]?.contains("Max-Age=0") == true)
        #expect(try await world.browse(browser, "GET", "console/me").status == 401)
        try await world.node.stop()
    }

    @Test("a request with the cookie comes from a page of this server, and says the session's token to change anything")
    func forged() async throws {
        let world = try await ConsoleWorld()
        let browser = try world.signedIn(try await world.signIn(link: try await world.link()))
        let create = #"{"name": "iCloud.test.forged"}"#
        func status(_ change: (inout ConsoleWorld.Browser) -> Void, _ method: String = "POST") async throws -> Int {
            var forged = browser
            change(&forged)
            let page = try await world.browse(forged, method, "containers", method == "POST" ? create : "")
            // Nobody elsewhere may read an answer that a cookie brought about, refused or not.
            #expect(page["access-control-allow-origin"] == nil)
            return page.status
        }
        #expect(try await status { $0.csrf = nil } == 403)
        #expect(try await status { $0.csrf = String(repeating: "0", count: 64) } == 403)
        #expect(try await status { $0.origin = nil } == 403)
        // Another port of the host is the same site to a browser.
        #expect(try await status { $0.origin = "https://localhost:3000" } == 403)
        #expect(try await status { $0.origin = "null" } == 403)
        #expect(try await status { $0.site = "same-site" } == 403)
        #expect(try await status { $0.site = "cross-site" } == 403)
        #expect(try await status({ $0.site = "same-site" }, "GET") == 403)
        #expect(try await status({ $0.origin = "https://evil.example" }, "GET") == 403)
        #expect(try await status({ ($0.csrf, $0.origin, $0.site) = (nil, nil, "none") }, "GET") == 200)
        #expect(try await status { $0.site = nil } == 200)
        // Nobody is signed in as somebody else by a page elsewhere.
        for origin in ["https://evil.example", "https://localhost:3000", nil] {
            let page = try await world.signIn(
                link: try await world.link(), ConsoleWorld.Browser(origin: origin, site: nil))
            #expect(page.status == 403 && page["set-cookie"] == nil && page["access-control-allow-origin"] == nil)
        }
        // Data of the public database go by the same rules.
        let query = "/database/1/\(ConsoleWorld.container)/development/public/records/query"
        let body = #"{"query": {"recordType": "Users"}}"#
        var other = browser
        other.csrf = nil
        #expect(try await world.browse(other, "POST", query, body).status == 403)
        let answer = try await world.browse(browser, "POST", query, body)
        #expect(answer.status != 401 && answer.status != 403 && answer["access-control-allow-origin"] == nil)
        let preferences = "/kv/1/\(ConsoleWorld.container)/development/list"
        #expect(try await world.browse(browser, "POST", preferences, "{}").status == 403)
        let own = "/database/1/\(ConsoleWorld.container)/development/private/zones/list"
        #expect(try await world.browse(browser, "POST", own, "{}").status == 403)
        try await world.node.stop()
    }

    @Test("the cookie of another cluster on the host has another name, and opens nothing under this one's")
    func otherCluster() async throws {
        let (world, other) = (try await ConsoleWorld(), try await ConsoleWorld())
        let browser = try world.signedIn(try await world.signIn(link: try await world.link()))
        var stranger = try other.signedIn(try await other.signIn(link: try await other.link()))
        let sides = try [browser, stranger].map { try #require($0.cookie).split(separator: "=", maxSplits: 1) }
        #expect(sides[0][0] != sides[1][0])
        // As the browser sends it to every port: it means nothing here, and does not disturb.
        #expect(try await world.browse(stranger, "GET", "console/me").status == 401)
        let both = ConsoleWorld.Browser(cookie: "\(stranger.cookie ?? ""); \(browser.cookie ?? "")")
        #expect(try await world.browse(both, "GET", "console/me").status == 200)
        stranger.cookie = "\(sides[0][0])=\(sides[1][1])"
        #expect(try await world.browse(stranger, "GET", "console/me").status == 401)
        try await world.node.stop()
        try await other.node.stop()
    }

    @Test("a session ends when nothing is asked for, and is renewed while something is")
    func idle() async throws {
        let world = try await ConsoleWorld()
        let browser = try world.signedIn(try await world.signIn(link: try await world.link()))
        let secret = try #require(world.node.clusterSecret)
        let sides = try #require(browser.cookie).split(separator: "=", maxSplits: 1)
        let cookie = try #require(ConsoleCookie(String(sides[1]), secret))
        func age(_ milliseconds: Int64) -> ConsoleWorld.Browser {
            var old = cookie
            old.lastUsed -= milliseconds
            let text = old.header(secret).value.split(separator: ";")[0]
            return ConsoleWorld.Browser(cookie: String(text), csrf: browser.csrf)
        }
        #expect(try await world.browse(browser, "GET", "console/me")["set-cookie"] == nil)
        let renewed = try await world.browse(age(20 * 60_000), "GET", "console/me")
        #expect(renewed.status == 200 && renewed["set-cookie"] != nil)
        let idleExpires = try #require(renewed.json["idleExpires"])
        guard case .integer(let time) = idleExpires else { throw TestFailure("\(idleExpires)") }
        #expect(time >= cookie.lastUsed + ConsoleSession.idleMilliseconds)
        #expect(try await world.browse(age(31 * 60_000), "GET", "console/me").status == 401)
        try await world.node.stop()
    }

    @Test("others who guess keep an administrator out of no browser that signed in before; guesses from there lock it")
    func knownBrowser() async throws {
        let world = try await ConsoleWorld()
        _ = try await world.member("grace", "viewer")
        let first = try await world.signIn("grace")
        let cookie = first.headers.map(\.value).first { $0.hasPrefix(KnownBrowser.administratorCookieName + "=") }
        let known = ConsoleWorld.Browser(cookie: String(try #require(cookie).prefix { $0 != ";" }))
        // Each wrong one doubles the time for which the name is locked, so one of them comes while it is.
        func lock(_ browser: ConsoleWorld.Browser) async throws {
            while try await world.signIn("grace", "wrong", browser).status != 429 {}
        }
        try await lock(ConsoleWorld.Browser())
        #expect(try await world.signIn("grace", ConsoleWorld.password, known).status == 200)
        try await lock(known)
        try await world.node.stop()
    }

    @Test("wrong passwords lock a name, whether it is an administrator's or not")
    func lockout() async throws {
        let world = try await ConsoleWorld()
        _ = try await world.member("grace", "viewer")
        for name in ["grace", "nobody"] {
            for attempt in 0...Lockout.failuresFree {
                #expect(try await world.signIn(name, "wrong \(attempt)").status == 401)
            }
            #expect(try await world.signIn(name).status == 429)
        }
        try await world.node.stop()
    }
}
