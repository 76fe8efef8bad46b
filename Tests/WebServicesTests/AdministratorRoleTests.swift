import Directory
import RecordModel
import Service
import TestSupport
import Testing

@testable import WebServices

@Suite("Roles of administrators", .serialized)
struct AdministratorRoleTests {
    /// A request that is judged as one for development of the container, and does nothing where it is let through.
    private func request(_ route: AdminRoute) -> (path: String, body: String) {
        let at = "container=\(ConsoleWorld.container)"
        switch route.permission?.subject {
        case .body, .newToken:
            return (route.path, #"{"kind": "api", "container": "\#(ConsoleWorld.container)", "origins": 1}"#)
        // Parameters that no operation takes to its end.
        default: return ("\(route.path)?\(at)&limit=x&group=x&kind=x&dryRun=x&expectedVersion=x", "[]")
        }
    }

    @Test("every role against every operation: it is let through if, and only if, the table says so")
    func everyOperation() async throws {
        let world = try await ConsoleWorld()
        let token = try await world.admin(
            "POST", "tokens", #"{"kind": "api", "container": "\#(ConsoleWorld.container)"}"#)
        for role in AdministratorRole.allCases {
            let browser = try await world.member("member-\(role.rawValue)", role.rawValue)
            for route in AdminRoute.all where !route.path.hasPrefix("console/") {
                var (path, body) = request(route)
                if case .oldToken? = route.permission?.subject {
                    guard role < .developer else { continue }
                    path += "&id=\(token["id"]?.string ?? "")"
                }
                let page = try await world.browse(browser, route.method, path, body)
                let needed = try #require(route.permission?.role)
                if role < needed {
                    #expect(page.status == 403 && page.json["leastRole"]?.string == needed.rawValue, "\(path): \(page)")
                } else {
                    #expect(page.status != 401 && page.status != 403, "\(role) \(route.method) \(path): \(page)")
                }
            }
        }
        try await world.node.stop()
    }

    @Test("a developer changes development, and nothing of production or for others")
    func developer() async throws {
        let world = try await ConsoleWorld()
        let at = "container=\(ConsoleWorld.container)"
        let viewer = try await world.member("vera", "viewer")
        let developer = try await world.member("dan", "developer")
        let schema = "DEFINE SCHEMA RECORD TYPE Note (text STRING, GRANT READ TO \"_world\");"
        #expect(try await world.browse(viewer, "POST", "schema?\(at)", schema).status == 403)
        #expect(try await world.browse(developer, "POST", "schema?\(at)", schema).status == 200)
        #expect(try await world.browse(developer, "POST", "schema?\(at)&environment=production", schema).status == 403)
        #expect(try await world.browse(developer, "POST", "schema/deploy?\(at)").status == 403)
        func kind(_ kind: String, _ more: String = "") -> String {
            #"{"kind": "\#(kind)", "container": "\#(ConsoleWorld.container)", "name": "x"\#(more)}"#
        }
        let made = try await world.browse(developer, "POST", "tokens", kind("api"))
        #expect(made.status == 200)
        for body in [kind("api", #", "environment": "production""#), kind("session"), kind("administrator")] {
            #expect(try await world.browse(developer, "POST", "tokens", body).status == 403)
        }
        // Two containers in one request: the one that is used counts.
        let elsewhere = #"{"kind": "api", "container": "\#(ConsoleWorld.container)", "environment": "production"}"#
        #expect(
            try await world.browse(developer, "POST", "tokens?\(at)&environment=development", elsewhere).status == 403)
        let id = made.json["id"]?.string ?? ""
        #expect(try await world.browse(viewer, "DELETE", "tokens?id=\(id)").status == 403)
        #expect(try await world.browse(developer, "DELETE", "tokens?id=\(id)").status == 200)
        // Public data.
        let save =
            #"{"operations": [{"operationType": "create", "record": {"recordType": "Note", "fields": {}}}]}"#
        func modify(_ environment: String) -> String {
            "/database/1/\(ConsoleWorld.container)/\(environment)/public/records/modify"
        }
        #expect(try await world.browse(viewer, "POST", modify("development"), save).status == 403)
        #expect(try await world.browse(developer, "POST", modify("development"), save).status == 200)
        #expect(try await world.browse(developer, "POST", modify("production"), save).status == 403)
        let users = "/database/1/\(ConsoleWorld.container)/development/public/users/discover"
        #expect(try await world.browse(developer, "POST", users, "{}").status == 403)
        try await world.node.stop()
    }

    @Test(
        "a node is added only with a URL that clients can reach it by",
        arguments: [
            "db4", "http://db4.example.com:24000", "https://", "https://u:p@db4.example.com",
            "https://db4.example.com:0", "https://db4.example.com/", "https://db4.example.com?x",
            "https://" + String(repeating: "d", count: 300),
        ])
    func clientURL(url: String) async throws {
        let world = try await ConsoleWorld()
        for (path, old) in [("cluster/nodes", ""), ("cluster/replace", #""old": 1, "#)] {
            let page = try await world.token(
                "POST", path, #"{\#(old)"id": 4, "peerHost": "db4", "peerPort": 24100, "clientURL": "\#(url)"}"#)
            #expect(page.status == 400 && page.json["reason"]?.string?.hasPrefix("clientURL: ") == true, "\(page)")
        }
        try await world.node.stop()
    }

    @Test("a role for some containers does not tell which users exist; one for the cluster does")
    func userNames() async throws {
        let world = try await ConsoleWorld()
        try await world.admin("POST", "users", #"{"name": "ada"}"#)
        let viewer = try await world.member("vera", "viewer", containers: #"["\#(ConsoleWorld.container)"]"#)
        for path in ["usage?container=\(ConsoleWorld.container)", "limits/explain?container=\(ConsoleWorld.container)"]
        {
            for name in ["ada", "nobody"] {
                let page = try await world.browse(
                    viewer, "GET", "\(path)&action=records/modify&database=private&user=\(name)")
                #expect(page.status == 200, "\(path): \(page)")
                #expect(page.json["databases"]?.array ?? [] == [])
            }
            let page = try await world.token("GET", "\(path)&action=records/modify&database=private&user=nobody")
            #expect(page.status == 404, "\(path): \(page)")
        }
        try await world.node.stop()
    }

    @Test("a developer of some containers is answered alike of users without anything there and of none at all")
    func userNamesForDevelopers() async throws {
        let world = try await ConsoleWorld()
        try await world.admin("POST", "users", #"{"name": "ada"}"#)
        let place = "container=\(ConsoleWorld.container)"
        let developer = try await world.member("dora", "developer", containers: #"["\#(ConsoleWorld.container)"]"#)
        for (method, path, status) in [
            ("GET", "subscriptions?\(place)&user=", 200), ("GET", "tokens?\(place)&user=", 200),
            ("DELETE", "subscriptions?\(place)&id=s&database=private&user=", 404),
            ("DELETE", "roles/members?\(place)&role=Moderator&user=", 404),
        ] {
            let known = try await world.browse(developer, method, path + "ada")
            let unknown = try await world.browse(developer, method, path + "nobody")
            #expect(known.status == status && unknown.status == status, "\(path): \(known) \(unknown)")
            func told(_ page: SignInWorld.Page, _ name: String) -> [JSONValue?] {
                [
                    page.json["subscribers"], page.json["tokens"],
                    (page.json["reason"]?.string).map { .string($0.replacing(name, with: "X")) },
                ]
            }
            #expect(told(known, "ada") == told(unknown, "nobody"))
            #expect(try await world.token(method, path + "nobody").status == 404)
        }
        try await world.node.stop()
    }

    @Test("a role for some containers holds in no other, and not in the cluster")
    func someContainers() async throws {
        let world = try await ConsoleWorld()
        let other = "iCloud.test.other"
        try await world.admin("POST", "containers", #"{"name": "\#(other)"}"#)
        let browser = try await world.member("carl", "admin", containers: #"["\#(ConsoleWorld.container)"]"#)
        #expect(try await world.browse(browser, "GET", "schema?container=\(ConsoleWorld.container)").status == 200)
        #expect(try await world.browse(browser, "GET", "schema?container=\(other)").status == 403)
        #expect(try await world.browse(browser, "GET", "tokens").status == 403)
        #expect(try await world.browse(browser, "GET", "tokens?container=\(ConsoleWorld.container)").status == 200)
        #expect(try await world.browse(browser, "GET", "administrators").status == 403)
        #expect(try await world.browse(browser, "GET", "users").status == 403)
        let names = try await world.browse(browser, "GET", "containers").json["containers"]?.array
        #expect(names?.map { $0["name"]?.string } == [ConsoleWorld.container])
        let key = #"{"kind": "api", "container": "\#(other)"}"#
        #expect(
            try await world.browse(browser, "POST", "tokens?container=\(ConsoleWorld.container)", key).status == 403)
        let query = "/database/1/\(other)/development/public/records/query"
        #expect(try await world.browse(browser, "POST", query, #"{"query": {"recordType": "X"}}"#).status == 403)
        // Only what they did themselves.
        for query in ["", "?limit=1", "?limit=1&order=newest"] {
            let page = try await world.browse(browser, "GET", "audit\(query)").json
            let actors = page["records"]?.array?.map { $0["actor"]?.string }
            #expect(actors.map { Set($0) } == ["administrator carl (console)"], "\(query): \(page)")
        }
        try await world.node.stop()
    }

    @Test("a token has the role of its name; removing the name ends token and sessions; tokens without one are admins'")
    func names() async throws {
        let world = try await ConsoleWorld()
        let made = try await world.admin("POST", "tokens", #"{"kind": "administrator", "name": "grace"}"#)
        let secret = try #require(made["secret"]?.string)
        let name = #"{"name": "iCloud.test.grace"}"#
        #expect(try await world.token("POST", "containers", name, secret: secret).status == 200)
        let team = try await world.admin("GET", "administrators")["administrators"]?.array
        #expect(team?.first?["name"]?.string == "grace" && team?.first?["role"]?.string == "admin")
        try await world.admin("PATCH", "administrators?name=grace", #"{"role": "viewer"}"#)
        let browser = try world.signedIn(try await world.signIn(link: try await world.link(secret)))
        #expect(try await world.browse(browser, "GET", "console/me").json["role"]?.string == "viewer")
        #expect(try await world.token("POST", "containers", name, secret: secret).status == 403)
        #expect(try await world.token("GET", "containers", secret: secret).status == 200)
        try await world.admin("PATCH", "administrators?name=grace", #"{"role": "developer"}"#)
        #expect(try await world.browse(browser, "GET", "console/me").json["role"]?.string == "developer")
        try await world.admin("DELETE", "administrators?name=grace")
        #expect(try await world.browse(browser, "GET", "console/me").status == 401)
        #expect(try await world.token("GET", "containers", secret: secret).status == 401)
        for (method, body, status) in [
            ("POST", #"{"name": "grace", "role": "king"}"#, 400), ("POST", #"{"name": "a b", "role": "admin"}"#, 400),
            ("POST", #"{"name": "x", "role": "admin", "containers": []}"#, 400), ("POST", "{}", 400),
            ("POST", #"{"name": "grace"}"#, 400),
        ] { #expect(try await world.token(method, "administrators", body).status == status, "\(body)") }
        #expect(try await world.token("PATCH", "administrators?name=none", #"{"role": "admin"}"#).status == 404)
        #expect(try await world.token("DELETE", "administrators?name=none").status == 404)
        try await world.node.stop()
    }

    @Test("dangerous operations ask for a sign-in of the last 15 minutes; a token is as good as ever")
    func fresh() throws {
        let session = ConsoleSession(id: "s", secret: "x", began: 1_000, expires: 100_000_000, lastUsed: 1_000)
        let console = AdministratorAccess(name: "a", role: .admin, session: session)
        let need = AdministratorNeed(.admin, .cluster, isDangerous: true)
        let end = 1_000 + ConsoleSession.freshMilliseconds
        #expect(throws: Never.self) { try console.require(need, container: nil, environment: nil, now: end - 1) }
        let failure = #expect(throws: RequestFailure.self) {
            try console.require(need, container: nil, environment: nil, now: end)
        }
        #expect(failure?.details == .freshSignIn && failure?.status == 403)
        var harmless = need
        harmless.isDangerous = false
        #expect(throws: Never.self) { try console.require(harmless, container: nil, environment: nil, now: end) }
        let token = AdministratorAccess(name: "a", role: .admin)
        #expect(throws: Never.self) { try token.require(need, container: nil, environment: nil, now: end) }
        let dangerous = AdminRoute.all.filter { $0.permission?.isDangerous == true }.map { "\($0.method) \($0.path)" }
        for route in [
            "POST schema/deploy", "POST schema/reset", "POST keys", "DELETE keys", "POST containers/keys",
            "POST administrators", "PATCH administrators", "DELETE administrators", "PATCH limits",
            "POST cluster/nodes", "DELETE cluster/nodes", "POST cluster/replace", "POST cluster/leaders",
        ] { #expect(dangerous.contains(route), "\(route)") }
        // What these would do is seen without.
        let dry = AdminRoute.all.filter { $0.permission?.hasDryRun == true }.map(\.path)
        #expect(dry == ["schema/deploy", "schema/reset"])
        #expect(AdminRoute.all.allSatisfy { $0.method != "GET" || $0.permission?.isDangerous == false })
    }
}
