import RecordModel
import Testing

extension Conformance {
    @Suite("1 URL")
    struct Section01URLTests {
        @Test(
            "requests are at /database/1/{container}/{environment}/{database}/{entity}/{action}",
            arguments: Door.allCases)
        func path(door: Door) async throws {
            let space = try await Space(door)
            #expect(space.path("zones/list").hasPrefix("/database/1/iCloud."))
            #expect(try await space.get("zones/list").status == 200)
        }

        @Test("1 is the only version", arguments: Door.allCases)
        func version(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("zones/list", method: "GET")
            call.path = call.path.replacing("/database/1/", with: "/database/2/")
            expectFailure(try await space.send(call), 404, "NOT_FOUND")
        }

        @Test("containers may have other names than iCloud's", arguments: Door.allCases)
        func otherNames(door: Door) async throws {
            var home = try await Servers.shared.home(for: door)
            home.container = "com.example.plain\(Home.unique())"
            _ = try await home.admin("POST", "containers", ["name": .string(home.container)])
            let token = try await home.admin(
                "POST", "tokens", ["kind": "api", "container": .string(home.container), "environment": "development"])
            home.apiTokens["development"] = token["secret"]?.string
            let space = try await Space(in: home)
            #expect(try await space.get("zones/list").status == 200)
        }

        @Test("a container has one spelling: U+212A is no K, at any door", arguments: Door.allCases)
        func spellings(door: Door) async throws {
            var home = try await Servers.shared.home(for: door)
            home.container = "com.example.Kite\(Home.unique())"
            _ = try await home.admin("POST", "containers", ["name": .string(home.container)])
            let token = try await home.admin(
                "POST", "tokens", ["kind": "api", "container": .string(home.container), "environment": "development"])
            home.apiTokens["development"] = token["secret"]?.string
            let space = try await Space(in: home)
            let alias = home.container.replacing("K", with: "%E2%84%AA")
            for var call in [
                space.request("zones/list", method: "GET"),
                space.inPublic.request("records/modify", ["operations": []]),
                space.preferencesCall("list", [:]),
            ] {
                #expect(try await space.send(call).status == 200, "\(call.path)")
                call.path = call.path.replacing(home.container, with: alias)
                expectFailure(try await space.send(call), 400, "BAD_REQUEST", "container's name")
            }
            for path in ["schema", "schema/state", "limits", "usage", "tokens", "roles", "limits/explain"] {
                let known = try await home.adminCall("GET", "\(path)?container=\(home.container)")
                #expect(known.status == 200, "\(path)")
                let answer = try await home.adminCall("GET", "\(path)?container=\(alias)")
                expectFailure(answer, 400, "BAD_REQUEST", "container's name")
            }
            let name = home.container.replacing("K", with: "\u{212A}")
            for (path, body) in [
                ("containers", ["name": .string(name)]), ("tokens", ["kind": "api", "container": .string(name)]),
            ] as [(String, JSONValue)] {
                expectFailure(
                    try await home.adminCall("POST", path, body.serialized()), 400, "BAD_REQUEST", "container's name")
            }
        }

        @Test("development and production are separate stores", arguments: Door.allCases)
        func environments(door: Door) async throws {
            let space = try await Space(door, with: "a")
            expectError(try await space.inProduction.lookup("a"), "NOT_FOUND")
        }

        @Test("development and production have separate schemas", arguments: Door.allCases)
        func schemas(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            try await space.save("a", ["fresh": ["value": 1]])
            let refused = try await space.inProduction.modify(
                Space.operation("create", "a", ["fresh": ["value": 1]]))
            expectError(refused, "BAD_REQUEST", "fresh")
        }

        @Test("there is no third environment", arguments: Door.allCases)
        func unknownEnvironment(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("zones/list", method: "GET")
            call.path = call.path.replacing("/development/", with: "/staging/")
            expectFailure(try await space.send(call), 400, "BAD_REQUEST", "environment")
        }

        @Test("public and private are separate databases", arguments: Door.allCases)
        func databases(door: Door) async throws {
            let space = try await Space(door)
            let name = "only-private\(Home.unique())"
            try await space.save(name)
            expectError(try await space.inPublic.lookup(name), "NOT_FOUND")
        }

        @Test("private databases of users are separate", arguments: Door.allCases)
        func users(door: Door) async throws {
            let space = try await Space(door, with: "a")
            expectError(try await space.otherUser().lookup("a"), "NOT_FOUND")
        }

        @Test("there is no fourth database", arguments: Door.allCases)
        func unknownDatabase(door: Door) async throws {
            let space = try await Space(door).changed { $0.database = "hidden" }
            expectFailure(try await space.get("zones/list"), 400, "BAD_REQUEST", "database")
        }

        @Test("deviates: the shared database is a later issue: 501", arguments: Door.allCases)
        func shared(door: Door) async throws {
            let space = try await Space(door).changed { $0.database = "shared" }
            expectFailure(try await space.get("zones/list"), 501, "BAD_REQUEST", "not built")
        }

        @Test("users/* is under public, whatever database the data is in", arguments: Door.allCases)
        func usersArePublic(door: Door) async throws {
            let space = try await Space(door).inPublic
            #expect(try await space.get("users/caller").status == 200)
        }

        @Test("deviates: the documented path of tokens/create has nothing yet: 404", arguments: Door.allCases)
        func documentedDeviceTokens(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("", [:])
            call.path = "/database/1/\(space.container)/development/tokens/create"
            expectFailure(try await space.send(call), 404, "NOT_FOUND")
        }

        @Test("an unknown action is NOT_FOUND", arguments: Door.cases(["records/frob", "nothing/list", "records"]))
        func unknownAction(door: Door, action: String) async throws {
            expectFailure(try await Space(door).call(action, [:]), 404, "NOT_FOUND")
        }

        @Test("path segments may be percent-encoded", arguments: Door.allCases)
        func encodedPath(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("zones/list", method: "GET")
            call.path = call.path.replacing("iCloud.", with: "iCloud%2E")
            #expect(try await space.send(call).status == 200)
        }

        @Test("a path outside /database is NOT_FOUND, in JSON", arguments: Door.allCases)
        func elsewhere(door: Door) async throws {
            let space = try await Space(door)
            expectFailure(try await space.send(Call("GET", "/index.html")), 404, "NOT_FOUND")
        }
    }
}
