import RecordModel
import TestSupport
import Testing

extension Conformance {
    @Suite("A deleted container")
    struct ContainerEndTests {
        @Test(
            "every door is shut at once with a clear reason, and open again once it is restored",
            arguments: Door.allCases)
        func deleted(door: Door) async throws {
            let home = try await Home.make(door, schema: Schemas.standard)
            let name = home.container
            let (_, session, _) = try await home.makeUser()
            func saved() async throws -> [Answer] {
                let token = home.apiTokens["development"] ?? ""
                var lookup = Call("POST", "/database/1/\(name)/development/public/records/lookup")
                lookup.query = [("ckAPIToken", token)]
                lookup.body = Array(#"{"records":[{"recordName":"a"}]}"#.utf8)
                var zones = Call("GET", "/database/1/\(name)/development/private/zones/list")
                zones.query = [("ckAPIToken", token), ("ckWebAuthToken", session)]
                var list = Call("POST", "/kv/1/\(name)/development/list")
                list.query = zones.query
                list.body = Array("{}".utf8)
                return [try await home.checked(lookup), try await home.checked(zones), try await home.checked(list)]
            }
            #expect(try await saved().map(\.status) == [200, 200, 200])
            for path in ["containers?name=\(name)", "containers?name=\(name)&confirm=x"] {
                #expect(try await home.adminCall("DELETE", path).status == 400)
            }
            let deletion = try await home.admin("DELETE", "containers?name=\(name)&confirm=\(name)")
            guard case .integer(let deleted)? = deletion["deleted"] else { throw TestFailure("\(deletion)") }
            #expect(deletion["restorableUntil"] == .integer(deleted + 7 * 86_400_000))
            for answer in try await saved() {
                expectFailure(answer, 404, "NOT_FOUND", "no container '\(name)' any more: it was deleted on ")
                #expect(answer.reason.contains("zonekeeper container restore \(name)"))
            }
            let listed = try await home.admin("GET", "containers")["containers"]?.array?
                .first { $0["name"]?.string == name }
            #expect(listed?["restorableUntil"] == deletion["restorableUntil"])
            for (method, path) in [
                ("DELETE", "containers?name=\(name)&confirm=\(name)"), ("GET", "schema?container=\(name)"),
                ("GET", "usage?container=\(name)"), ("POST", "containers/keys?container=\(name)"),
            ] { #expect(try await home.adminCall(method, path).status == 404, "\(method) \(path)") }
            let again = JSONValue.object([.init("name", .string(name))]).serialized()
            #expect(try await home.adminCall("POST", "containers", again).status == 409)
            _ = try await home.admin("POST", "containers/restore?name=\(name)")
            #expect(try await saved().map(\.status) == [200, 200, 200])
            #expect(try await home.adminCall("POST", "containers/restore?name=\(name)").status == 404)
        }
    }

    @Suite("Positions that clients carry")
    struct SealedPositionTests {
        /// Whether a client can tell anything from a position, or change it.
        private func expectSealed(_ text: String, _ names: [String]) throws {
            let bytes = try #require(Base64.decode(text))
            #expect(bytes.first == 0 && bytes.count >= 29, "\(text)")
            for name in names { #expect(!String(decoding: bytes, as: UTF8.self).contains(name)) }
        }

        /// The same with one bit changed.
        private func changed(_ text: String, at index: Int) throws -> String {
            var bytes = try #require(Base64.decode(text))
            bytes[index % bytes.count] ^= 1
            return Base64.encode(bytes)
        }

        @Test("sync tokens are sealed, and one that differs by a bit is refused", arguments: Door.allCases)
        func tokens(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let zone = try #require(try await space.changes()["syncToken"]?.string)
            let database = try #require(try await space.databaseChanges()["syncToken"]?.string)
            try expectSealed(zone, ["zone"])
            try expectSealed(database, ["zone"])
            for index in [0, 1, 13, 28] {
                expectError(
                    try await space.changes(try changed(zone, at: index)), "BAD_REQUEST",
                    "Unknown sync continuation type")
                let answer = try await space.call(
                    "changes/database", ["syncToken": .string(try changed(database, at: index))])
                expectFailure(answer, 400, "BAD_REQUEST", "Unknown sync continuation type")
            }
            // Where nothing changed the position is the same, and so is its text.
            #expect(try await space.changes(zone)["syncToken"]?.string == zone)
        }

        @Test("markers are sealed, and one that differs by a bit is refused", arguments: Door.allCases)
        func markers(door: Door) async throws {
            let space = try await Space(door)
            for name in ["apple", "banana"] { try await space.save(name) }
            let marker = try #require(try await space.query(["resultsLimit": 1]).json["continuationMarker"]?.string)
            try expectSealed(marker, ["apple", "banana"])
            for index in [0, 1, 13, 28] {
                let other = try changed(marker, at: index)
                let answer = try await space.query(["resultsLimit": 1, "continuationMarker": .string(other)])
                expectFailure(answer, 400, "BAD_REQUEST", "continuationMarker")
            }
        }

        @Test("tokens of preferences are sealed, and one that differs by a bit is refused", arguments: Door.allCases)
        func preferences(door: Door) async throws {
            let space = try await Space(door)
            let token = try #require(try await space.preferences("changes", [:]).json["syncToken"]?.string)
            try expectSealed(token, [])
            for index in [0, 1, 13, 28] {
                let other = try changed(token, at: index)
                let answer = try await space.preferences("changes", ["syncToken": .string(other)])
                expectFailure(answer, 400, "BAD_REQUEST", "Unknown sync continuation type")
            }
            #expect(try await space.preferences("changes", ["syncToken": .string(token)]).status == 200)
        }
    }
}
