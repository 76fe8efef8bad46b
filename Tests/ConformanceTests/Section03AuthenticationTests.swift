import RecordModel
import Testing

extension Conformance {
    @Suite("3 Authentication: tokens; signatures are in the authorization matrix, sign-in in WebServicesTests")
    struct Section03AuthenticationTests {
        @Test(
            "a request with neither token nor signature is refused (deviates: 401, one report says 400)",
            arguments: Door.allCases)
        func nothing(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("records/query", [:])
            call.query = []
            expectFailure(try await space.send(call), 401, "AUTHENTICATION_FAILED", "ckAPIToken")
        }

        @Test("an unknown API token is AUTHENTICATION_FAILED", arguments: Door.allCases)
        func unknownToken(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("records/query", [:])
            call.query = [("ckAPIToken", "0123456789abcdef")]
            expectFailure(try await space.send(call), 401, "AUTHENTICATION_FAILED")
        }

        @Test("an API token is for its container", arguments: Door.allCases)
        func otherContainer(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("records/query", [:])
            call.path = call.path.replacing(space.container, with: "iCloud.com.example.other")
            expectFailure(try await space.send(call), 401, "AUTHENTICATION_FAILED")
        }

        @Test("an API token is for its environment", arguments: Door.allCases)
        func otherEnvironment(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("zones/list", method: "GET")
            call.path = call.path.replacing("/development/", with: "/production/")
            expectFailure(try await space.send(call), 401, "AUTHENTICATION_FAILED")
        }

        @Test("an API token alone is anonymous: it reads public data that the world may read", arguments: Door.allCases)
        func anonymousReads(door: Door) async throws {
            let space = try await Space(door).inPublic
            let name = "seen\(Home.unique())"
            try await space.save(name)
            #expect(try await space.anonymous.lookup(name).name == name)
        }

        @Test("anonymous callers may not read what the world may not", arguments: Door.allCases)
        func anonymousMayNotRead(door: Door) async throws {
            let space = try await Space(door).inPublic
            let name = "closed\(Home.unique())"
            try await space.save(name, type: "Closed")
            let item = try await space.anonymous.lookup(name)
            #expect(item.code == "ACCESS_DENIED" || item.code == "NOT_FOUND", "\(item.text)")
        }

        @Test("anonymous callers may not create unless the world may", arguments: Door.allCases)
        func anonymousMayNotCreate(door: Door) async throws {
            let space = try await Space(door).inPublic.anonymous
            let item = try await space.modify(Space.operation("create", "x\(Home.unique())"))
            expectError(item, "ACCESS_DENIED")
        }

        @Test(
            "the private database and users/* need a user: 421 AUTHENTICATION_REQUIRED",
            arguments: Door.cases([
                "private zones/list", "private records/query", "public users/caller", "public users/current",
            ]))
        func userNeeded(door: Door, what: String) async throws {
            let words = what.split(separator: " ").map(String.init)
            let space = try await Space(door).anonymous.changed { $0.database = words[0] }
            let answer = words[1].hasSuffix("query") ? try await space.query() : try await space.get(words[1])
            expectFailure(answer, 421, "AUTHENTICATION_REQUIRED", "request needs authorization")
            #expect(answer.json["uuid"]?.string != nil)
        }

        @Test("a session that is not known is 421, so that clients offer sign-in", arguments: Door.allCases)
        func unknownSession(door: Door) async throws {
            let space = try await Space(door).changed { $0.session = "12__34__guess" }
            expectFailure(
                try await space.get("zones/list"), 421, "AUTHENTICATION_REQUIRED", "request needs authorization")
        }

        @Test("ckSession is an older name of ckWebAuthToken", arguments: Door.allCases)
        func olderName(door: Door) async throws {
            let space = try await Space(door)
            var call = space.request("zones/list", method: "GET")
            call.query = call.query.map { ($0.0 == "ckWebAuthToken" ? "ckSession" : $0.0, $0.1) }
            #expect(try await space.send(call).status == 200)
        }

        @Test("AUTHENTICATION_REQUIRED says where to sign in, and the page is there", arguments: Door.allCases)
        func redirect(door: Door) async throws {
            let space = try await Space(door).anonymous
            let answer = try await space.get("zones/list")
            #expect(answer.status == 421)
            let url = try #require(answer.json["redirectURL"]?.string)
            let parts = url.split(separator: "=")
            #expect(parts.count == 2 && parts[0].hasSuffix("/sign-in?ticket"), "\(url)")
            var call = Call("GET", "/sign-in")
            call.query = [("ticket", String(parts[1]))]
            let shown = try await space.send(call)
            #expect(shown.status == 200)
            #expect(String(decoding: shown.body, as: UTF8.self).contains("<form"))
        }
    }
}
