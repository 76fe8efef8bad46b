import RecordModel
import TestSupport
import Testing

extension Conformance {
    /// Every answer of every other case is held against the document too (`Home.checked`).
    @Suite("The OpenAPI document")
    struct OpenAPITests {
        @Test("it is served, and is the one that answers are held against", arguments: Door.allCases)
        func served(door: Door) async throws {
            let space = try await Space(door)
            let answer = try await space.send(Call("GET", "/openapi.json"))
            #expect(answer.status == 200 && answer.json == Home.contract.document)
            #expect(answer.json["openapi"] == "3.1.0")
        }

        @Test("every $ref resolves")
        func references() { #expect(JSONSchema(root: Home.contract.document).danglingReferences() == []) }

        @Test("names of operations are unique, and every path parameter is declared")
        func operations() throws {
            guard case .object(let paths)? = Home.contract.document["paths"] else { throw TestFailure("no paths") }
            var names: Set<String> = []
            for path in paths {
                guard case .object(let methods) = path.value else { continue }
                for method in methods {
                    let name = try #require(method.value["operationId"]?.string)
                    #expect(names.insert(name).inserted, "\(name) twice")
                    let declared = (method.value["parameters"]?.array ?? [])
                        .compactMap(Home.contract.resolved).filter { $0["in"] == "path" }
                    let needed = path.key.split(separator: "/").filter { $0.hasPrefix("{") }.map {
                        String($0.dropFirst().dropLast())
                    }
                    #expect(declared.compactMap { $0["name"]?.string } == needed, "\(path.key)")
                }
            }
            #expect(names.count > 50)
        }

        @Test("the checker sees an unknown member, a missing one and a wrong type")
        func checker() {
            func faults(_ body: String) -> [String] {
                Home.contract.faults(
                    method: "GET", path: "/health/live", status: 200, type: "application/json", body: Array(body.utf8))
            }
            #expect(faults(#"{"live": true}"#) == [])
            #expect(!faults(#"{"live": true, "more": 1}"#).isEmpty)
            #expect(!faults("{}").isEmpty)
            #expect(!faults(#"{"live": 1}"#).isEmpty)
            #expect(!faults("[]").isEmpty)
        }

        @Test("health and administration answer as the document says", arguments: Door.allCases)
        func administration(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            let home = space.home
            let at = "container=\(home.container)"
            for path in ["/health/live", "/health/ready"] {
                #expect(try await home.checked(Call("GET", path)).status == 200)
            }
            for path in [
                "containers", "users", "tokens", "status", "leader?\(at)", "schema?\(at)", "schema/state?\(at)",
                "metrics",
            ] { #expect(try await home.adminCall("GET", path).status == 200, "\(path)") }
            _ = try await home.admin("POST", "containers/keys?\(at)")
            let validity = try await home.adminText(
                "POST", "schema/validate", [("container", home.container)], Schemas.standard)
            #expect(validity.json["valid"] == true)
            let user = try await home.makeUser(["email": .string("x\(Home.unique())@example.com")])
            _ = try await home.admin("PATCH", "users?name=\(user.name)", ["givenName": "Grace", "discoverable": true])
            let token = try await home.admin(
                "POST", "tokens", ["kind": "session", "container": .string(home.container), "user": .string(user.name)])
            _ = try await home.admin("DELETE", "tokens?id=\(token["id"]?.string ?? "")")
            _ = try await home.admin("DELETE", "users?name=\(user.name)")
            _ = try await home.admin("POST", "state-hash?group=0")
            _ = try await home.admin("GET", "state-hash?group=0")
        }

        @Test("administration needs the administrator's token", arguments: Door.allCases)
        func closed(door: Door) async throws {
            let home = try await Servers.shared.home(for: door)
            expectFailure(try await home.checked(Call("GET", "/admin/1/users")), 401, "AUTHENTICATION_FAILED")
        }

        @Test(
            "administration's faults have codes and reasons",
            arguments: Door.cases([
                ("GET", "schema", 400), ("GET", "schema?container=none", 404), ("POST", "containers", 400),
                ("DELETE", "users?name=nobody", 404), ("PATCH", "users?name=nobody", 400), ("POST", "tokens", 400),
                ("GET", "state-hash?group=999", 400), ("POST", "schema/validate", 400),
                ("POST", "containers/keys?container=none", 404),
            ]))
        func faults(door: Door, example: (method: String, path: String, status: Int)) async throws {
            let home = try await Servers.shared.home(for: door)
            let answer = try await home.adminCall(example.method, example.path)
            #expect(answer.status == example.status, "\(answer)")
            #expect(answer.code != nil && !answer.reason.isEmpty)
        }

        @Test("preferences answer as the document says", arguments: Door.allCases)
        func preferences(door: Door) async throws {
            let space = try await Space(door)
            func kv(_ action: String, _ body: JSONValue) async throws -> Answer {
                var call = space.request("", body)
                call.path = "/kv/1/\(space.container)/development/\(action)"
                return try await space.send(call)
            }
            let writes: JSONValue = [
                ["key": "a", "value": ["value": ["x", ["value": 1, "type": "TIMESTAMP"]], "type": "ARRAY"]],
                ["key": "b", "value": ["value": ["k": 0.5], "type": "DICTIONARY"]], ["key": "c", "value": true],
                ["key": "d", "value": .null],
            ]
            let set = try await kv("set", ["writes": writes, "device": "phone"])
            #expect(set.status == 200, "\(set)")
            #expect(try await kv("get", ["keys": ["a", "b", "none"]]).items("values").count == 2)
            #expect(try await kv("list", [:]).items("values").count == 3)
            let changes = try await kv("changes", [:])
            #expect(try changes.items("changes").count >= 3)
            let stale = try await kv(
                "set",
                [
                    "writes": [
                        ["key": "none", "value": 1, "version": set.json["values"]?.array?.first?["version"] ?? .null]
                    ]
                ])
            expectFailure(stale, 409, "CONFLICT")
            #expect(try await kv("watch", [:]).items("changes").count >= 3)
            #expect(try await kv("usage", [:]).json["keys"] == 3)
            var usage = space.request("", method: "GET")
            usage.path = "/kv/1/\(space.container)/development/usage"
            #expect(try await space.send(usage).json["limits"]?["keyBytes"] == 64)
        }
    }
}
