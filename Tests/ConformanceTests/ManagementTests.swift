import RecordModel
import TestSupport
import Testing

extension Conformance {
    /// Each answer is held against the OpenAPI document, as all are (`Home.checked`).
    @Suite("What a team manages")
    struct ManagementTests {
        @Test("an administrator acts as a user over HTTPS as in memory, and stops", arguments: Door.allCases)
        func acting(door: Door) async throws {
            let home = try await Home.make(door, schema: Schemas.standard)
            let (name, _, recordName) = try await home.makeUser()
            let begun = try await home.admin(
                "POST", "act-as",
                [
                    "container": .string(home.container), "user": .string(name), "reason": "a ticket", "write": true,
                    "minutes": 5,
                ])
            #expect(begun["userRecordName"]?.string == recordName && begun["own"] == true)
            let id = try #require(begun["id"]?.string)
            func send(_ path: String, _ body: String = "{}") async throws -> Answer {
                var call = Call("POST", path)
                call.headers = [
                    ("Authorization", "Bearer \(home.service.administratorToken)"), ("X-Zonekeeper-Act-As", id),
                ]
                call.body = Array(body.utf8)
                return try await home.checked(call)
            }
            let database = "/database/1/\(home.container)/development"
            let caller = try await send("\(database)/private/users/caller")
            #expect(caller.json["userRecordName"]?.string == recordName)
            let save =
                #"{"operations": [{"operationType": "create", "record": {"recordType": "Item", "recordName": "a", "fields": {}}}]}"#
            #expect(try await send("\(database)/private/records/modify", save).items("records").count == 1)
            let store = "/kv/1/\(home.container)/development"
            #expect(try await send("\(store)/set", #"{"writes": [{"key": "k", "value": 1}]}"#).status == 200)
            #expect(try await send("\(store)/list").items("values").count == 1)
            #expect(try await send("\(store)/watch", #"{"timeout": 0}"#).items("changes").count == 1)
            let listed = try await home.admin("GET", "act-as")["acting"]?.array ?? []
            #expect(listed.contains { $0["id"]?.string == id })
            _ = try await home.admin("DELETE", "act-as?id=\(id)")
            expectFailure(try await send("\(database)/private/users/caller"), 403, "ACCESS_DENIED")
            expectFailure(try await send("\(store)/list"), 403, "ACCESS_DENIED")
            #expect(try await home.adminCall("DELETE", "act-as?id=\(id)").status == 404)
        }

        @Test("a container is hidden and has a note, and says so in the list", arguments: Door.allCases)
        func containers(door: Door) async throws {
            let home = try await Home.make(door)
            func listed() async throws -> JSONValue? {
                try await home.admin("GET", "containers")["containers"]?.array?
                    .first { $0["name"]?.string == home.container }
            }
            #expect(try await listed()?["hidden"] == false)
            let name = JSONValue.string(home.container)
            _ = try await home.admin("PATCH", "containers", ["name": name, "hidden": true])
            let described = try await home.admin("PATCH", "containers", ["name": name, "note": "old"])
            #expect(described["hidden"] == true && described["note"] == "old")
            #expect(try await listed()?["hidden"] == true)
            #expect(try await listed()?["note"] == "old")
            for (body, status): (JSONValue, Int) in [
                (["name": name, "note": "a\nb"], 400), (["name": name, "hidden": 1], 400), ([:], 400),
                (["name": name, "note": .string(String(repeating: "x", count: 201))], 400),
                (["name": "iCloud.none", "hidden": true], 404),
            ] {
                #expect(try await home.adminCall("PATCH", "containers", body.serialized()).status == status, "\(body)")
            }
            _ = try await home.admin("PATCH", "containers", ["name": name, "hidden": false, "note": ""])
            #expect(try await listed()?["note"] == nil)
        }

        @Test("a schema has a history, a way back and Swift code", arguments: Door.allCases)
        func schemas(door: Door) async throws {
            let home = try await Home.make(door, schema: Schemas.standard)
            let at = "container=\(home.container)"
            let grants = #"GRANT READ TO "_world""#
            _ = try await home.adminText(
                "POST", "schema", [("container", home.container), ("additive", "true")],
                "DEFINE SCHEMA RECORD TYPE Extra (more STRING, \(grants));")
            let history = try await home.admin("GET", "schema/history?\(at)")
            let versions = (history["versions"]?.array ?? []).map { $0["version"] }
            #expect(history["version"] == 3 && versions == [3, 2, 1], "\(history)")
            #expect(try await home.admin("GET", "schema/history?\(at)&before=3&limit=1")["versions"]?.array?.count == 1)
            let old = try await home.adminCall("GET", "schema?\(at)&version=2")
            #expect(!String(decoding: old.body, as: UTF8.self).contains("Extra"))
            let answer = try await home.adminCall("GET", "schema/code?\(at)&type=Extra")
            let code = String(decoding: answer.body, as: UTF8.self)
            #expect(code.contains("struct Extra {") && !code.contains("struct Item"))
            let plan = try await home.admin("POST", "schema/restore?\(at)&version=2&dryRun=true")
            let change = try #require(plan["changes"]?.array?.first)
            #expect(change["kind"] == "removeType" && change["type"] == "Extra" && plan["applied"] == false)
            #expect(change["records"] == 0)
            #expect(try await home.adminCall("POST", "schema/restore?\(at)&version=2").status == 400)
            let restored = try await home.admin("POST", "schema/restore?\(at)&version=2&allowDataLoss=true")
            #expect(restored["version"] == 4)
            for (method, path, status) in [
                ("GET", "schema?\(at)&version=9", 404), ("POST", "schema/restore?\(at)&version=9", 404),
                ("POST", "schema/restore?\(at)", 400), ("GET", "schema/code?\(at)&type=None", 404),
                ("GET", "schema/history", 400), ("GET", "schema/history?container=none", 404),
                ("POST", "schema/restore?\(at)&version=2&expectedVersion=1", 409),
            ] { #expect(try await home.adminCall(method, path).status == status, "\(path)") }
        }

        @Test("tokens and keys say who made them, and change their labels", arguments: Door.allCases)
        func credentials(door: Door) async throws {
            let home = try await Home.make(door)
            let container = JSONValue.string(home.container)
            let made = try await home.admin("POST", "tokens", ["kind": "api", "container": container, "label": "a"])
            let id = try #require(made["id"]?.string)
            let changed = try await home.admin(
                "PATCH", "tokens?id=\(id)", ["label": "b", "origins": ["https://a.example"]])
            #expect(changed["label"] == "b" && changed["maker"] == "administrator")
            #expect(changed["origins"] == ["https://a.example"])
            for body in [#"{}"#, #"{"origins": "x"}"#, #"{"label": "a\nb"}"#] {
                #expect(try await home.adminCall("PATCH", "tokens?id=\(id)", Array(body.utf8)).status == 400, "\(body)")
            }
            #expect(try await home.adminCall("PATCH", "tokens?id=none", Array(#"{"label": "x"}"#.utf8)).status == 404)
            let (name, _, _) = try await home.makeUser()
            let pem = """
                -----BEGIN PUBLIC KEY-----
                MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt
                6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
                -----END PUBLIC KEY-----
                """
            let key = try await home.admin(
                "POST", "keys", ["container": container, "user": .string(name), "publicKey": .string(pem)])
            let keyID = try #require(key["id"]?.string)
            _ = try await home.admin("PATCH", "keys?id=\(keyID)", ["label": "server"])
            let listed = try await home.admin("GET", "keys")["keys"]?.array?.first { $0["id"]?.string == keyID }
            #expect(listed?["label"] == "server" && listed?["maker"] == "administrator")
            #expect(try await home.adminCall("PATCH", "keys?id=\(keyID)").status == 400)
        }
    }
}
