import Foundation
import RecordModel
import TestSupport
import Testing

extension Conformance {
    /// Each answer is held against the OpenAPI document, as all are (`Home.checked`).
    @Suite("Administration")
    struct AdministrationTests {
        private static let publicKey = """
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQ8eKvbasYv4nph5IV+QoLIYL9kUx
            c6YMzxW0mSiaQebw7A1mLKUaVUNIDwHv/YcswMRQquqlatJz4FRq1rJhgQ==
            -----END PUBLIC KEY-----

            """

        /// Method and path of every route of the document; `OpenAPIRoutesTests` holds the router's table against them.
        private static func routes() throws -> Set<String> {
            guard case .object(let paths)? = Home.contract.document["paths"] else { throw TestFailure("no paths") }
            var documented: Set<String> = []
            for path in paths where path.key.hasPrefix("/admin/") {
                guard case .object(let methods) = path.value else { continue }
                for method in methods { documented.insert("\(method.key.uppercased()) \(path.key)") }
            }
            return documented
        }

        @Test(
            "every route of the document is there; another method of its path is answered with those that it has",
            arguments: [Door.memory])
        func routesAnswer(door: Door) async throws {
            let home = try await Servers.shared.home(for: door)
            let documented = try Self.routes()
            #expect(documented.count >= 40)
            for path in Set(documented.compactMap { $0.split(separator: " ").last.map(String.init) }).sorted() {
                for method in ["GET", "POST", "PATCH", "PUT", "DELETE"] {
                    // Without parameters and a body nothing is changed.
                    let route = String(path.dropFirst("/admin/1/".count))
                    let isKnown = documented.contains("\(method) \(path)")
                    // A stream ends when its client leaves: RequestLogTests has it.
                    if isKnown, route == "requests/watch" { continue }
                    let answer = try await home.adminCall(method, route)
                    #expect((answer.status == 405) != isKnown, "\(method) \(path): \(answer)")
                    #expect(answer.status != 404 || !answer.reason.contains("no administration route"), "\(answer)")
                    guard answer.status == 405 else { continue }
                    let methods = documented.filter { $0.hasSuffix(" \(path)") }
                        .compactMap { $0.split(separator: " ").first }.flatMap { $0 == "GET" ? ["GET", "HEAD"] : [$0] }
                    let allowed = answer.header("Allow")?.split(separator: ", ").sorted()
                    #expect(allowed == methods.sorted(), "\(method) \(path): \(answer)")
                }
            }
        }

        @Test("a path that is none of the document's is not found", arguments: [Door.memory])
        func unknown(door: Door) async throws {
            let home = try await Servers.shared.home(for: door)
            expectFailure(try await home.adminCall("GET", "nothing"), 404, "NOT_FOUND", "no administration route")
        }

        @Test("a switch without a value is refused: nobody may take it for a dry run", arguments: [Door.memory])
        func switches(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            let schema = Array("DEFINE SCHEMA RECORD TYPE Other (text STRING);".utf8)
            for parameter in ["dryRun=", "dryRun", "additive=", "allowDataLoss=", "dryRun=yes"] {
                let answer = try await space.home.adminCall(
                    "POST", "schema?container=\(space.container)&\(parameter)", schema)
                let name = parameter.prefix { $0 != "=" }
                expectFailure(answer, 400, "BAD_REQUEST", "\(name): 'true' or 'false' is expected")
            }
            let shown = try await space.home.adminCall("GET", "schema?container=\(space.container)")
            #expect(!String(decoding: shown.body, as: UTF8.self).contains("Other"))
        }

        @Test(
            "a parameter of a number or of known words is never empty",
            arguments: [
                "audit?log=", "audit?limit=", "audit?after=", "audit?order=", "tokens?kind=", "tokens?limit=",
                "limits/explain?container=CONTAINER&action=",
            ])
        func emptyParameters(path: String) async throws {
            let home = try await Servers.shared.home(for: .memory)
            let path = path.replacing("CONTAINER", with: home.container)
            expectFailure(try await home.adminCall("GET", path), 400, "BAD_REQUEST")
            let known = path.prefix { $0 != "&" }.replacing(/[a-z]*=$/, with: "")
            #expect(try await home.adminCall("GET", String(known)).status == 200)
        }

        @Test(
            "an administrator's own token works on every node until it is removed, and the audit log names them",
            arguments: Door.allCases)
        func namedAdministrators(door: Door) async throws {
            let home = try await Servers.shared.home(for: door)
            let name = "grace\(Home.unique())"
            let made = try await home.admin("POST", "tokens", ["kind": "administrator", "name": .string(name)])
            let secret = try #require(made["secret"]?.string)
            func send(_ method: String, _ path: String, _ body: JSONValue) async throws -> Answer {
                var call = Call(method, path)
                call.headers = [("Authorization", "Bearer \(secret)")]
                call.body = body.serialized()
                return try await home.checked(call)
            }
            let user = "user\(Home.unique())"
            #expect(try await send("POST", "/admin/1/users", ["name": .string(user)]).status == 200)
            let records = "/database/1/\(home.container)/development/public/records/lookup"
            #expect(try await send("POST", records, ["records": []]).status == 200)
            let listed = try await home.admin("GET", "tokens?kind=administrator")["tokens"]?.array ?? []
            #expect(listed.contains { $0["name"]?.string == name && $0["container"] == nil && $0["secret"] == nil })
            let again = try await home.adminCall(
                "POST", "tokens", (["kind": "administrator", "name": .string(name)] as JSONValue).serialized())
            expectFailure(again, 409, "EXISTS", "administrator list")
            for wrong in ["", "two words", "a/b", String(repeating: "a", count: 65)] {
                let answer = try await home.adminCall(
                    "POST", "tokens", (["kind": "administrator", "name": .string(wrong)] as JSONValue).serialized())
                expectFailure(answer, 400, "BAD_REQUEST", "name: ")
            }
            var audit: [JSONValue] = []
            while true {
                // Other cases write to the log of this cluster, too.
                let after = audit.last?["sequence"]?.integer ?? 0
                let page = try await home.admin("GET", "audit?limit=1000&after=\(after)")["records"]?.array ?? []
                audit += page
                if page.isEmpty { break }
            }
            #expect(
                audit.contains {
                    $0["actor"]?.string == "administrator \(name)" && $0["action"] == "user.create"
                        && $0["subject"]?.string?.contains(user) == true
                })
            #expect(!audit.contains { $0.text.contains(secret) })
            // Nor does the token speak for a user of a container, or name one.
            let space = try await Space(in: home)
            var call = space.changed { $0.session = secret }.request("zones/list", method: "GET")
            expectFailure(try await space.send(call), 421, "AUTHENTICATION_REQUIRED")
            call.query = [("ckAPIToken", secret)]
            expectFailure(try await space.send(call), 401, "AUTHENTICATION_FAILED")

            _ = try await home.admin("DELETE", "tokens?id=\(made["id"]?.string ?? "")")
            for _ in 0..<3 {
                expectFailure(
                    try await send("POST", "/admin/1/users", ["name": "x"]), 401, "AUTHENTICATION_FAILED")
            }
        }

        @Test("usage tells of both environments' databases, of one user's, by zone, and counted anew")
        func usage() async throws {
            let space = try await Space.own(.memory, schema: Schemas.standard)
            try await space.save("a", ["title": ["value": "text"]])
            try await space.newZone("work").save("b")
            try await space.inPublic.save("p")
            let other = try await space.otherUser()
            try await other.save("c")
            let at = "usage?container=\(space.container)"
            let all = try await space.home.admin("GET", at)
            let databases = all["databases"]?.array ?? []
            #expect(databases.map { $0["scope"]?.string ?? "" } == ["public", "private", "private"])
            #expect(all["next"] == nil && all["environment"] == "development")
            #expect(databases.allSatisfy { $0["zones"] == [] && $0["recount"] == nil && $0["warning"] == nil })
            let production = try await space.home.admin("GET", at + "&environment=production")
            #expect(production["environment"] == "production")

            let user = try await Self.name(of: space)
            let own = try await space.home.admin("GET", at + "&user=\(user)&verify=true")["databases"]?.array ?? []
            #expect(own.count == 1 && own.first?["userRecordName"]?.string == space.user)
            let zones = own.first?["zones"]?.array ?? []
            #expect(zones.map { $0["name"]?.string ?? "" } == ["_defaultZone", "work"])
            for counted in own + zones {
                #expect(counted["recount"]?["isEqual"] == true)
                #expect(counted["recount"]?["bytes"] == counted["bytes"])
                #expect(counted["recount"]?["records"] == counted["records"])
            }
            let listed = try await space.home.admin("GET", at + "&user=\(user)&zones=true")["databases"]?.array?.first
            #expect(listed?["zones"]?.array?.count == 2 && listed?["recount"] == nil)

            let nobody = try await space.home.makeUser()
            #expect(try await space.home.admin("GET", at + "&user=\(nobody.name)")["databases"] == [])
            let later = try await space.home.admin("GET", at + "&after=public/_public")["databases"]?.array ?? []
            #expect(later.map { $0["scope"]?.string ?? "" } == ["private", "private"])
            let rest = try await space.home.admin(
                "GET", at + "&zones=true&user=\(user)&after=private/\(space.user)/_defaultZone")
            #expect(rest["databases"]?.array?.first?["zones"]?.array?.count == 1)
            for wrong in ["&after=somewhere", "&after=here/x", "&verify=yes", "&environment=test"] {
                expectFailure(try await space.home.adminCall("GET", at + wrong), 400, "BAD_REQUEST")
            }
            for missing in ["&user=nobody-here", "x"] {
                expectFailure(try await space.home.adminCall("GET", at + missing), 404, "NOT_FOUND")
            }
        }

        /// The account's name: users of spaces are known by their record names.
        private static func name(of space: Space) async throws -> String {
            let usage = try await space.home.admin("GET", "usage?container=\(space.container)")
            let database = usage["databases"]?.array?.first { $0["userRecordName"]?.string == space.user }
            return try #require(database?["user"]?.string)
        }

        @Test("what comes near a quota is said, and what is full is called full")
        func warnings() async throws {
            let space = try await Space.own(.memory, schema: Schemas.standard)
            for name in ["a", "b", "c", "d"] { try await space.save(name) }
            func warning(_ limits: JSONValue) async throws -> String? {
                _ = try await space.home.admin("PATCH", "limits?container=\(space.container)", limits)
                let usage = try await space.home.admin("GET", "usage?container=\(space.container)")
                return usage["databases"]?.array?.first { $0["scope"] == "private" }?["warning"]?.string
            }
            #expect(try await warning(["userRecords": 100]) == nil)
            #expect(try await warning(["userRecords": 5]) == "80 % or more of the records that are allowed are used")
            #expect(try await warning(["userRecords": 4]) == "all records that are allowed are used")
            #expect(
                try await warning(["userRecords": 5, "userBytes": 1])
                    == "all bytes that are allowed are used; 80 % or more of the records that are allowed are used")
        }

        @Test("an explanation names the rules that a request meets, and refuses actions that there are not")
        func explain() async throws {
            let space = try await Space.own(.memory, schema: Schemas.standard)
            try await space.save("a")
            let user = try await Self.name(of: space)
            let at = "limits/explain?container=\(space.container)"
            func names(_ more: String) async throws -> [String] {
                try await space.home.admin("GET", at + more)["rules"]?.array?.compactMap { $0["name"]?.string } ?? []
            }
            #expect(try await names("").contains("databaseBytes"))
            #expect(try await names("&action=records/query").contains("recordsPerPage"))
            #expect(try await names("&action=kv/set").contains("storeBytes"))
            #expect(try await names("&database=private&user=\(user)").contains("userBytes"))
            _ = try await space.home.admin(
                "PATCH", "limits?container=\(space.container)", ["userRecords": 1])
            let full = try await space.home.admin("GET", at + "&database=private&user=\(user)")
            let rule = full["rules"]?.array?.first { $0["name"] == "userRecords" }
            #expect(rule?["used"] == 1 && rule?["remaining"] == 0 && rule?["fires"] == true)
            #expect(full["verdict"]?.string?.hasPrefix("refused by userRecords") == true)
            for wrong in ["&action=records/modfy", "&action=kv/none", "&database=private", "&database=other"] {
                expectFailure(try await space.home.adminCall("GET", at + wrong), 400, "BAD_REQUEST")
            }
        }

        @Test("an explanation of an upload judges transfer, and what the user has uploaded and not saved")
        func explainUpload() async throws {
            let own = try await Space.own(.memory, schema: Schemas.standard)
            try await own.save("a")
            let (user, space) = (try await Self.name(of: own), own.inPublic)
            let limits = "limits?container=\(space.container)"
            func explained() async throws -> (verdict: String, rules: [String: JSONValue]) {
                let answer = try await space.home.admin(
                    "GET", "limits/explain?container=\(space.container)&action=assets/upload&user=\(user)")
                let rules = try #require(answer["rules"]?.array).map { ($0["name"]?.string ?? "", $0) }
                return (answer["verdict"]?.string ?? "", Dictionary(uniqueKeysWithValues: rules))
            }
            let url = try await space.uploadURL()
            #expect(try await space.send("POST", url: url, [1, 2, 3]).status == 200)
            let free = try await explained()
            #expect(free.verdict == "allowed")
            // The smallest file counts for 64 KiB.
            #expect(free.rules["unsavedAssetBytes"]?["used"] == 65_536)
            #expect(free.rules["userUploads"]?["limit"] == 16 && free.rules["userUploads"]?["used"] == 0)
            #expect(free.rules["containerUploads"]?["limit"] == 32)
            _ = try await space.home.admin("PATCH", limits, ["unsavedAssetBytes": 131_071])
            #expect(try await explained().verdict.hasPrefix("refused by unsavedAssetBytes"))
            expectFailure(try await space.send("POST", url: url, [1]), 413, "QUOTA_EXCEEDED", "unsavedAssetBytes")
            _ = try await space.home.admin(
                "PATCH", limits, ["unsavedAssetBytes": .null, "transferBytesPerMonth": 3, "transferBytesPerUser": 0])
            let full = try await explained()
            #expect(full.verdict.hasPrefix("refused by transferBytesPerMonth"))
            #expect(full.rules["transferBytesPerMonth"]?["fires"] == true)
            let refused = try await space.call(
                "assets/upload", ["tokens": [["recordType": "Item", "fieldName": "file"]]])
            expectFailure(refused, 413, "QUOTA_EXCEEDED", "in a month")
        }

        @Test("tokens are listed by kind and container, and users by name, page after page")
        func pages() async throws {
            let home = try await Home.make(.memory)
            let users = [try await home.makeUser(), try await home.makeUser(), try await home.makeUser()].map(\.name)
            func pages(_ list: String, _ key: String) async throws -> [[JSONValue]] {
                var pages: [[JSONValue]] = []
                var after = ""
                repeat {
                    let place = after.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
                    let page = try await home.admin("GET", "\(list)&after=\(place)")
                    pages.append(page[key]?.array ?? [])
                    after = page["next"]?.string ?? ""
                } while !after.isEmpty && pages.count < 1_000
                return pages
            }
            let tokens = "tokens?container=\(home.container)"
            let all = try await pages(tokens, "tokens")
            #expect(all.count == 1 && all.joined().count == 5)
            let one = try await pages(tokens + "&limit=2", "tokens")
            #expect(one.map(\.count) == [2, 2, 1])
            #expect(Array(one.joined()) == Array(all.joined()))
            #expect(try await pages(tokens + "&kind=api", "tokens").joined().count == 2)
            #expect(try await pages(tokens + "&kind=session,sign-in&limit=1", "tokens").map(\.count) == [1, 1, 1])
            let names = try await pages("users?limit=3", "users").joined().compactMap { $0["name"]?.string }
            #expect(names == names.sorted() && Set(users).isSubset(of: names))
            for wrong in ["tokens?kind=apis", "tokens?after=x", "tokens?limit=0", "users?limit=x"] {
                expectFailure(try await home.adminCall("GET", wrong), 400, "BAD_REQUEST")
            }
        }

        @Test("passwords are set at once and later, however long hashing them takes")
        func passwords() async throws {
            let home = try await Servers.shared.home(for: .memory)
            let user = try await home.makeUser(["password": "correct horse"])
            let path = "users/password?name=\(user.name)"
            #expect(try await home.admin("POST", path, ["password": "battery staple"])["hasPassword"] == true)
            #expect(try await home.admin("POST", path, ["password": .null])["hasPassword"] == false)
            #expect(try await home.admin("POST", "users/unlock?name=\(user.name)")["unlocked"] == true)
            let short = try await home.adminCall("POST", path, JSONValue.object([.init("password", "x")]).serialized())
            expectFailure(short, 400, "BAD_REQUEST")
        }

        @Test("keys, roles, limits, the audit log and sign-up answer as the document says")
        func access() async throws {
            let home = try await Home.make(
                .memory, schema: "DEFINE SCHEMA CREATE ROLE Editor; RECORD TYPE Note ( text STRING );")
            let user = try await home.makeUser()
            let place: JSONValue = ["container": .string(home.container), "user": .string(user.name)]
            let key = try await home.admin("POST", "keys", place.with(["publicKey": .string(Self.publicKey)]))
            _ = try await home.admin("GET", "keys")
            _ = try await home.admin("DELETE", "keys?id=\(key["id"]?.string ?? "")")
            #expect(try await home.admin("POST", "roles/members", place.with(["role": "Editor"]))["member"] == true)
            let roles = try await home.admin("GET", "roles?container=\(home.container)")
            #expect(roles["roles"]?.array?.first?["members"] == .strings([user.name]))
            let may = try await home.admin("GET", "roles/explain?container=\(home.container)&user=\(user.name)")
            #expect(may["roles"] == .strings(["Editor", "_icloud", "_world"]) && may["user"] == .string(user.name))
            let all = try await home.admin("GET", "roles/explain?container=\(home.container)")
            #expect(all["roles"] == .strings(["_world"]) && all["user"] == nil)
            #expect(
                try await home.adminCall("GET", "roles/explain?container=\(home.container)&user=nobody").status == 404)
            _ = try await home.admin(
                "DELETE", "roles/members?container=\(home.container)&role=Editor&user=\(user.name)")
            let limits = "limits?container=\(home.container)"
            _ = try await home.admin("PATCH", limits, ["requestsPerSecond": 50])
            #expect(try await home.admin("GET", limits)["effective"]?["requestsPerSecond"] == 50)
            _ = try await home.admin("GET", "limits")
            #expect(try await home.admin("GET", "audit?limit=2")["records"]?.array?.count == 2)
            let table = try await home.adminCall("GET", "audit/export?order=newest&containing=limits.set")
            #expect(table.status == 200 && table.text.hasPrefix("sequence,time,actor,action,"), "\(table)")
            #expect(!table.text.contains("container.create"))
            let lines = try await home.adminCall("GET", "audit/export?format=lines")
            #expect(lines.text.contains(#""action":"container.create""#), "\(lines)")
            expectFailure(try await home.adminCall("GET", "audit/export?format=xml"), 400, "BAD_REQUEST")
            func audit(_ query: String) async throws -> (page: JSONValue, numbers: [Int64]) {
                let page = try await home.admin("GET", "audit?\(query)")
                return (page, page["records"]?.array?.compactMap { $0["sequence"]?.integer } ?? [])
            }
            let newest = try await audit("order=newest&limit=2&containing=\(home.container.uppercased())")
            #expect(newest.numbers.count == 2 && newest.numbers[0] > newest.numbers[1])
            #expect(newest.page["examined"]?["firstBroken"] == nil && newest.page["moreComing"] == true)
            let cursor = try #require(newest.page["cursor"]?.integer)
            let next = try await audit("order=newest&before=\(cursor)&containing=\(home.container)")
            #expect(next.numbers.allSatisfy { $0 < newest.numbers[1] } && !next.numbers.isEmpty)
            let actions = try await audit("actor=administrator&action=limits.set&containing=\(home.container)")
            #expect(actions.page["records"]?.array?.map { $0["action"] } == ["limits.set"])
            expectFailure(try await home.adminCall("GET", "audit?before=3"), 400, "BAD_REQUEST", "before: ")
            let isOpen = try await home.admin("GET", "sign-up")["open"] ?? .null
            #expect(try await home.admin("PATCH", "sign-up", ["open": isOpen])["open"] == isOpen)
        }

        @Test("a provider keeps what a change leaves out, and a user may be made known to it")
        func providers() async throws {
            let home = try await Servers.shared.home(for: .memory)
            let name = "provider\(Home.unique())"
            let issuer = "https://\(name).example.com"
            let provider: JSONValue = ["name": .string(name), "issuer": .string(issuer), "clientID": "c"]
            #expect(try await home.admin("POST", "providers", provider)["allowsSignUp"] == false)
            #expect(
                try await home.admin("POST", "providers", provider.with(["allowsSignUp": true]))["allowsSignUp"] == true
            )
            #expect(try await home.admin("POST", "providers", provider)["allowsSignUp"] == true)
            let open = try await home.admin("POST", "providers", provider.with(["clientSecret": .null]))
            #expect(open["hasSecret"] == false && open["allowsSignUp"] == true)
            #expect(try await home.admin("GET", "providers")["providers"]?.array?.isEmpty == false)
            let identity: JSONValue = ["issuer": .string(issuer), "subject": "ada"]
            let user = try await home.makeUser(["identity": identity])
            let path = "users?name=\(user.name)"
            #expect(try await home.admin("PATCH", path, ["identity": .null])["identity"] == nil)
            #expect(try await home.admin("PATCH", path, ["identity": identity])["identity"] == identity)
            _ = try await home.admin("DELETE", "providers?name=\(name)")
        }
    }
}
