import RecordModel
import TestSupport
import Testing

extension Conformance {
    /// Each answer is held against the OpenAPI document, as all are (`Home.checked`).
    @Suite("Administrators")
    struct AdministratorTests {
        @Test("an administrator is made, changed and removed, comes by a link, and sets a password")
        func life() async throws {
            let home = try await Servers.shared.home(for: .memory)
            let (name, password) = ("ada\(Home.unique())", "correct horse battery")
            let made = try await home.admin(
                "POST", "administrators",
                ["name": .string(name), "role": "viewer", "containers": [.string(home.container)]])
            #expect(made["role"] == "viewer" && made["hasPassword"] == false)
            let changed = try await home.admin("PATCH", "administrators?name=\(name)", ["role": "developer"])
            #expect(changed["role"] == "developer" && changed["containers"] == [.string(home.container)])

            let link = try await home.admin("POST", "console/links")
            let first = try await Page(home, ["link": try #require(link["secret"])])
            let again = Call("POST", "/admin/1/console/sign-in", ["link": try #require(link["secret"])])
            #expect(try await home.checked(again).status == 401)
            // The link is of the nodes' token, so a name comes with the password.
            let own = "\(name).own"
            let named = try await first.send(
                "POST", "console/password", ["name": .string(own), "password": .string(password)])
            #expect(named.status == 200 && named.json["name"]?.string == own)

            let second = try await Page(home, ["name": .string(own), "password": .string(password)])
            #expect(try await second.send("GET", "console/me").json["role"] == "admin")
            let token = try await second.send("POST", "console/token", ["label": "laptop"])
            #expect(token.status == 200 && token.json["secret"]?.string?.isEmpty == false)
            #expect(try await second.send("DELETE", "console/token").status == 200)
            #expect(try await second.send("POST", "console/sign-out", [:]).status == 200)
            #expect(try await second.send("GET", "console/me").status == 401)
            for name in [name, own] { _ = try await home.admin("DELETE", "administrators?name=\(name)") }
            let left = try await home.admin("GET", "administrators")["administrators"]?.array ?? []
            #expect(!left.contains { $0["name"]?.string?.hasPrefix(name) == true })
        }

        /// A page of the console that is signed in.
        private struct Page {
            let home: Home
            let headers: [(String, String)]

            init(_ home: Home, _ credentials: JSONValue) async throws {
                let answer = try await home.checked(Call("POST", "/admin/1/console/sign-in", credentials))
                try #require(answer.status == 200, "\(answer)")
                let cookie = try #require(answer.header("Set-Cookie")?.split(separator: ";").first)
                let token = try #require(answer.json["csrfToken"]?.string)
                self.home = home
                headers = [("Cookie", String(cookie)), ("X-Zonekeeper-CSRF", token)]
            }

            func send(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> Answer {
                var call = Call(method, "/admin/1/\(path)", body)
                call.headers += headers
                return try await home.checked(call)
            }
        }
    }
}

extension Call {
    /// A request of a page of the server in memory.
    fileprivate init(_ method: String, _ path: String, _ body: JSONValue?) {
        self.init(method, path)
        headers = [("Origin", "https://localhost"), ("Sec-Fetch-Site", "same-origin")]
        self.body = body?.serialized() ?? []
    }
}
