import RecordModel
import Testing

extension Conformance {
    @Suite("Limits and quotas 6: security roles")
    struct LimitsQuotasRoleTests {
        /// A public record of a type with the given grants, and another user.
        private static func record(_ door: Door, _ grants: String) async throws -> (Space, Space) {
            let schema =
                #"DEFINE SCHEMA RECORD TYPE Kept ("___recordID" REFERENCE QUERYABLE, text STRING, \#(grants));"#
            let space = try await Space(in: Home.make(door, schema: schema)).inPublic
            try await space.save("a", ["text": ["value": "x"]], type: "Kept")
            return (space, try await space.otherUser())
        }

        private static let defaults = #"GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world""#

        @Test("_world is anyone, signed in or not", arguments: Door.allCases)
        func world(door: Door) async throws {
            let (space, other) = try await Self.record(door, Self.defaults)
            for reader in [space, other, space.anonymous] { #expect(try await reader.lookup("a").code == nil) }
            #expect(try await space.anonymous.query(type: "Kept").names == ["a"])
        }

        @Test("_icloud is any signed-in user", arguments: Door.allCases)
        func icloud(door: Door) async throws {
            let (space, other) = try await Self.record(
                door, #"GRANT READ, CREATE, WRITE TO "_icloud""#)
            #expect(try await other.lookup("a").code == nil)
            let written = try await other.modify(
                Space.operation("forceUpdate", "a", ["text": ["value": "y"]], type: "Kept"))
            #expect(written.code == nil, "\(written.text)")
            #expect(try await space.anonymous.lookup("a").code != nil)
        }

        @Test("_creator is who made the record", arguments: Door.allCases)
        func creator(door: Door) async throws {
            let (space, other) = try await Self.record(door, Self.defaults)
            #expect(try await space.save("a", ["text": ["value": "y"]], type: "Kept").code == nil)
            expectError(try await other.modify(Space.operation("forceReplace", "a", type: "Kept")), "ACCESS_DENIED")
        }

        @Test("write is update and delete", arguments: Door.allCases)
        func write(door: Door) async throws {
            let (space, other) = try await Self.record(door, Self.defaults)
            expectError(try await other.modify(Space.operation("forceDelete", "a")), "ACCESS_DENIED")
            try await space.delete("a")
        }

        @Test("create and write are separate", arguments: Door.allCases)
        func separate(door: Door) async throws {
            let (_, other) = try await Self.record(door, Self.defaults)
            #expect(try await other.save("b", type: "Kept").code == nil)
        }

        @Test("roles only add: the world's read is everybody's", arguments: Door.allCases)
        func additive(door: Door) async throws {
            let (space, other) = try await Self.record(
                door, #"GRANT READ TO "_world", GRANT CREATE, WRITE TO "_icloud""#)
            for reader in [space, other] { #expect(try await reader.lookup("a").code == nil) }
        }

        @Test("what may not be read is not in queries", arguments: Door.allCases)
        func queries(door: Door) async throws {
            let (_, other) = try await Self.record(
                door, #"GRANT CREATE TO "_icloud", GRANT READ, WRITE TO "_creator""#)
            let answer = try await other.query(type: "Kept")
            #expect(answer.code == "ACCESS_DENIED" || answer.names == [], "\(answer)")
        }

        @Test("the defaults of a new type: the world reads, users create, creators write", arguments: Door.allCases)
        func defaults(door: Door) async throws {
            let space = try await Space.own(door).inPublic
            try await space.save("a", ["text": ["value": "x"]], type: "Fresh")
            let other = try await space.otherUser()
            #expect(try await space.anonymous.lookup("a").code == nil)
            #expect(try await other.save("b", type: "Fresh").code == nil)
            expectError(try await other.modify(Space.operation("forceUpdate", "a", type: "Fresh")), "ACCESS_DENIED")
            expectError(
                try await space.anonymous.modify(Space.operation("create", "c", type: "Fresh")), "ACCESS_DENIED")
        }

        @Test(
            "roles count in the public database only: in the private one the owner may do all", arguments: Door.allCases
        )
        func privateData(door: Door) async throws {
            let space = try await Space(door)
            try await space.save("a", type: "Closed")
            #expect(try await space.query(type: "Closed").names == ["a"])
            #expect(try await space.lookup("a").code == nil)
        }

        @Test(
            "custom roles have members; a role given or taken counts in the next request on any node",
            arguments: Door.allCases)
        func customRoles(door: Door) async throws {
            let schema = """
                DEFINE SCHEMA CREATE ROLE Moderator;
                RECORD TYPE Kept (text STRING, GRANT WRITE TO Moderator, GRANT CREATE TO "_icloud", GRANT READ TO "_world");
                """
            let space = try await Space(in: Home.make(door, schema: schema)).inPublic
            try await space.save("a", type: "Kept")
            let user = try await space.home.makeUser()
            var other = space
            other.session = user.session
            let change = Space.operation("forceUpdate", "a", ["text": ["value": "moderated"]], type: "Kept")
            let member: JSONValue = [
                "container": .string(space.container), "environment": "development", "role": "Moderator",
                "user": .string(user.name),
            ]
            for _ in 0..<3 {
                expectError(try await other.modify(change), "ACCESS_DENIED")
                _ = try await space.home.admin("POST", "roles/members", member)
                #expect(try await other.modify(change).code == nil)
                _ = try await space.home.admin(
                    "DELETE",
                    "roles/members?container=\(space.container)&environment=development&role=Moderator&user=\(user.name)"
                )
            }
            expectError(try await other.modify(change), "ACCESS_DENIED")
        }
    }
}
