import RecordModel
import TestSupport
import Testing

extension Conformance {
    @Suite("Limits and quotas 7: environments")
    struct LimitsQuotasEnvironmentTests {
        private static func indexes(_ space: Space, _ type: String, _ field: String) async throws -> [String] {
            let state = try await space.home.admin("GET", "schema/state?container=\(space.container)")
            let types = state["types"]?.array ?? []
            let fields = types.first { $0["name"]?.string == type }?["fields"]?.array ?? []
            let found = try #require(fields.first { $0["name"]?.string == field }, "\(state.text)")
            return found["indexes"]?.array?.compactMap { $0["index"]?.string } ?? []
        }

        @Test("development: the first save of an unknown type creates it", arguments: Door.allCases)
        func newType(door: Door) async throws {
            let space = try await Space.own(door)
            try await space.save("a", ["title": ["value": "x"], "count": ["value": 1]], type: "Fresh")
            #expect(try await space.query(type: "Fresh").names == ["a"])
        }

        @Test("development: the first save of an unknown field creates it", arguments: Door.allCases)
        func newField(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            try await space.save("a", ["extra": ["value": "x"]])
            #expect(try await space.lookup("a").field("extra") == "x")
        }

        @Test("types made just in time get queryable and sortable indexes, recordName too", arguments: Door.allCases)
        func indexed(door: Door) async throws {
            let space = try await Space.own(door)
            try await space.save("a", ["title": ["value": "x"], "labels": ["value": ["x"]]], type: "Fresh")
            #expect(try await Self.indexes(space, "Fresh", "title") == ["QUERYABLE", "SORTABLE"])
            #expect(try await Self.indexes(space, "Fresh", "labels") == ["QUERYABLE"])
            #expect(try await Self.indexes(space, "Fresh", "___recordID").contains("QUERYABLE"))
            let answer = try await space.query(
                [Space.filter("title", "EQUALS", "x")], sort: [["fieldName": "title"]], type: "Fresh")
            #expect(answer.names == ["a"], "\(answer)")
        }

        @Test("types made by import get exactly what they state", arguments: Door.allCases)
        func imported(door: Door) async throws {
            let space = try await Space(door)
            expectFailure(try await space.query([Space.filter("plain", "EQUALS", "x")]), 400, "BAD_REQUEST")
        }

        @Test("a field's type is fixed by the first value saved", arguments: Door.allCases)
        func fixed(door: Door) async throws {
            let space = try await Space.own(door)
            try await space.save("a", ["title": ["value": "x"]], type: "Fresh")
            let item = try await space.modify(
                Space.operation("create", "b", ["title": ["value": 1]], type: "Fresh"))
            expectError(item, "BAD_REQUEST", "Invalid value")
        }

        @Test("production: an unknown type is refused", arguments: Door.allCases)
        func productionType(door: Door) async throws {
            let item = try await Space(door).inProduction.modify(Space.operation("create", "a", type: "Fresh"))
            expectError(item, "BAD_REQUEST", "Cannot create new type Fresh in production schema")
        }

        @Test("production: an unknown field is refused", arguments: Door.allCases)
        func productionField(door: Door) async throws {
            let item = try await Space(door).inProduction.modify(
                Space.operation("create", "a", ["extra": ["value": 1]]))
            expectError(item, "BAD_REQUEST", "in production schema")
            #expect(item.reason.contains("extra"))
        }

        @Test("anonymous callers extend no schema", arguments: Door.allCases)
        func anonymous(door: Door) async throws {
            let space = try await Space.own(door).inPublic.anonymous
            expectError(try await space.modify(Space.operation("create", "a", type: "Fresh")), "ACCESS_DENIED")
        }

        @Test("deploy: types and fields come to production, records do not", arguments: Door.allCases)
        func deploy(door: Door) async throws {
            let space = try await Space.own(door)
            try await space.save("a", ["title": ["value": "x"]], type: "Fresh")
            let shown = try await space.home.admin(
                "POST", "schema/deploy?container=\(space.container)&dryRun=true")
            #expect(shown["applied"] == false && shown["changes"]?.array?.isEmpty == false)
            let production = space.inProduction
            expectError(try await production.modify(Space.operation("create", "b", type: "Fresh")), "BAD_REQUEST")
            _ = try await space.home.admin("POST", "schema/deploy?container=\(space.container)")
            try await production.save("b", ["title": ["value": "y"]], type: "Fresh")
            #expect(try await production.query(type: "Fresh").names == ["b"])
        }

        @Test(
            "an import that would lose what production has changes nothing; a deploy only adds",
            arguments: Door.allCases)
        func additive(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            let container = space.container
            let text = "DEFINE SCHEMA RECORD TYPE Bare (other STRING, \(Schemas.grants));"
            let losing = try await space.home.adminCall(
                "POST", "schema?container=\(container)&allowDataLoss=true", Array(text.utf8))
            expectFailure(losing, 400, "BAD_REQUEST", "nothing was changed")
            _ = try await space.home.adminText(
                "POST", "schema", [("container", container), ("additive", "true")], text)
            _ = try await space.home.admin("POST", "schema/deploy?container=\(container)")
            try await space.inProduction.save("a", ["title": ["value": "x"]])
            try await space.inProduction.save("b", ["text": ["value": "x"], "other": ["value": "y"]], type: "Bare")
        }

        @Test(
            "in production stricter grants are listed as kept, and revoked where that is asked for",
            arguments: Door.allCases)
        func stricterGrants(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            let grants = #"GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud""#
            let text = "DEFINE SCHEMA RECORD TYPE Bare (text STRING, \(grants));"
            let at = [("container", space.container), ("environment", "production")]
            let record = try await space.inProduction.inPublic.save("a", type: "Bare")
            let anonymous = space.inProduction.inPublic.anonymous
            let kept = try await space.home.adminText("POST", "schema", at, text)
            let revocation = kept.json["kept"]?.array?.first { $0["revokesGrant"] == true }
            #expect(revocation?["change"]?.string == "revoke READ on Bare from _world", "\(kept)")
            #expect(kept.json["changes"]?.array == [])
            #expect(try await anonymous.lookup("a")["recordChangeTag"] == record["recordChangeTag"])
            let done = try await space.home.adminText("POST", "schema", at + [("revokeGrants", "true")], text)
            #expect(done.json["changes"]?.array?.count == 1, "\(done)")
            let stillKept = done.json["kept"]?.array ?? []
            #expect(!stillKept.isEmpty && stillKept.allSatisfy { $0["revokesGrant"] == nil }, "\(done)")
            expectError(try await anonymous.lookup("a"), "ACCESS_DENIED")
            let both = try await space.home.adminCall(
                "POST", "schema?container=\(space.container)&additive=true&revokeGrants=true", Array(text.utf8))
            expectFailure(both, 400, "BAD_REQUEST", "contradict")
        }

        @Test("reset: development's records go, its schema becomes production's", arguments: Door.allCases)
        func reset(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            let zone = try await space.newZone()
            try await zone.save("a")
            try await space.save("b", ["extra": ["value": 1]])
            try await space.inProduction.save("kept")
            let token = try await zone.changes()["syncToken"]?.string
            let refused = try await space.home.adminCall("POST", "schema/reset?container=\(space.container)")
            expectFailure(refused, 400, "BAD_REQUEST", "confirm")
            _ = try await space.home.admin(
                "POST", "schema/reset?container=\(space.container)&confirm=\(space.container)")
            #expect(try await space.query().names == [])
            expectError(try await zone.changes(token), "ZONE_NOT_FOUND")
            #expect(try await space.inProduction.lookup("kept").code == nil)
            let text = try await space.home.adminCall("GET", "schema?container=\(space.container)")
            #expect(!String(decoding: text.body, as: UTF8.self).contains("extra"))
        }

        @Test("encrypted fields are not for the public database", arguments: Door.allCases)
        func encryptedPublic(door: Door) async throws {
            let item = try await Space(door).inPublic.modify(
                Space.operation("create", "e\(Home.unique())", ["text": ["value": "x"]], type: "Secret"))
            expectError(item, "BAD_REQUEST", "encrypted")
        }

        @Test("encrypted fields have no index", arguments: Door.allCases)
        func encryptedIndex(door: Door) async throws {
            let home = try await Servers.shared.home(for: door)
            let answer = try await home.adminCall(
                "POST", "schema/validate",
                Array("DEFINE SCHEMA RECORD TYPE T (x ENCRYPTED STRING QUERYABLE, \(Schemas.grants));".utf8))
            expectFailure(answer, 400, "BAD_REQUEST", "ENCRYPTED")
        }

        @Test("an index added later is built, and then queries use it", arguments: Door.allCases)
        func addedIndex(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            for name in ["a", "b"] { try await space.save(name, ["plain": ["value": .string(name)]]) }
            let filter = Space.filter("plain", "EQUALS", "b")
            expectFailure(try await space.query([filter]), 400, "BAD_REQUEST", "not marked queryable")
            _ = try await space.home.admin(
                "POST", "schema/indexes?container=\(space.container)",
                ["type": "Item", "field": "plain", "index": "QUERYABLE"])
            let answer = try await awaitState("the index is built") {
                try await space.query([filter])
            } until: {
                $0.code != "TRY_AGAIN_LATER"
            }
            #expect(answer.names == ["b"], "\(answer)")
            _ = try await space.home.admin(
                "DELETE", "schema/indexes?container=\(space.container)&type=Item&field=plain&index=QUERYABLE")
            expectFailure(try await space.query([filter]), 400, "BAD_REQUEST", "not marked queryable")
        }

        @Test("a field that leaves the schema leaves records; brought back, it is empty", arguments: Door.allCases)
        func removedField(door: Door) async throws {
            let space = try await Space.own(door)
            let container = space.container
            func schema(_ fields: String) -> String {
                #"DEFINE SCHEMA RECORD TYPE T ("___recordID" REFERENCE QUERYABLE, a STRING\#(fields), \#(Schemas.grants));"#
            }
            let loss = [("container", container), ("allowDataLoss", "true")]
            _ = try await space.home.adminText("POST", "schema", loss, schema(", b STRING"))
            try await space.save("r", ["a": ["value": "x"], "b": ["value": "y"]], type: "T")
            _ = try await space.home.adminText("POST", "schema", loss, schema(""))
            #expect(try await space.lookup("r")["fields"]?.keys == ["a"])
            _ = try await space.home.adminText("POST", "schema", loss, schema(", b STRING"))
            let record = try await awaitState("the field is removed") {
                try await space.lookup(["r"])
            } until: {
                $0.code != "TRY_AGAIN_LATER"
            }
            #expect(try record.item()["fields"]?.keys == ["a"], "\(record)")
        }
    }
}
