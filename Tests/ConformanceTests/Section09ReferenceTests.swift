import RecordModel
import TestSupport
import Testing

extension Conformance {
    @Suite("9 records/modify: references")
    struct Section09ReferenceTests {
        private static func link(_ name: String, _ action: String, _ more: JSONValue = [:]) -> JSONValue {
            let reference = JSONValue.object([
                .init("recordName", .string(name)), .init("action", .string(action)),
            ])
            return ["link": ["value": reference.with(more)]]
        }

        @Test("VALIDATE to a missing target is VALIDATING_REFERENCE_ERROR", arguments: Door.cases([false, true]))
        func validateMissing(door: Door, isCustom: Bool) async throws {
            var space = try await Space(door)
            if isCustom { space = try await space.newZone() }
            let answer = try await space.modify(
                [Space.operation("create", "a", Self.link("missing", "VALIDATE"))], ["atomic": false])
            expectError(try answer.item(), "VALIDATING_REFERENCE_ERROR")
            expectError(try await space.lookup("a"), "NOT_FOUND")
        }

        @Test("VALIDATE to a target that is there is saved", arguments: Door.allCases)
        func validate(door: Door) async throws {
            let space = try await Space(door, with: "target")
            let record = try await space.save("a", Self.link("target", "VALIDATE"))
            #expect(record.field("link")?["action"] == "VALIDATE")
        }

        @Test(
            "operations apply in order: a target made before in the request is there",
            arguments: Door.cases([true, false]))
        func inOrder(door: Door, isAtomic: Bool) async throws {
            let space = try await Space(door).newZone()
            let items = try await space.modify(
                [Space.operation("create", "t"), Space.operation("create", "a", Self.link("t", "VALIDATE"))],
                ["atomic": .bool(isAtomic)]
            ).items()
            #expect(items.allSatisfy { $0.code == nil }, "\(items.map(\.text))")
        }

        @Test("a target made later in the request is not there yet", arguments: Door.allCases)
        func outOfOrder(door: Door) async throws {
            let space = try await Space(door).newZone()
            let items = try await space.modify(
                [Space.operation("create", "a", Self.link("t", "VALIDATE")), Space.operation("create", "t")],
                ["atomic": false]
            ).items()
            #expect(items.map(\.code) == ["VALIDATING_REFERENCE_ERROR", nil], "\(items.map(\.text))")
        }

        @Test("a target held by VALIDATE cannot be deleted", arguments: Door.cases(["delete", "forceDelete"]))
        func heldTarget(door: Door, kind: String) async throws {
            let space = try await Space(door).newZone()
            let target = try await space.save("target")
            try await space.save("holder", Self.link("target", "VALIDATE"))
            let answer = try await space.modify([Space.operation(kind, "target", tag: target.tag)], ["atomic": false])
            expectError(try answer.item(), "VALIDATING_REFERENCE_ERROR")
            #expect(try await space.lookup("target").code == nil)
        }

        @Test("a target whose holder let go can be deleted", arguments: Door.allCases)
        func released(door: Door) async throws {
            let space = try await Space(door).newZone(with: "target")
            try await space.save("holder", Self.link("target", "VALIDATE"))
            try await space.save("holder", Self.link("target", "NONE"))
            try await space.delete("target")
        }

        @Test("holder and target can be deleted together, the holder first", arguments: Door.allCases)
        func together(door: Door) async throws {
            let space = try await Space(door).newZone(with: "target")
            try await space.save("holder", Self.link("target", "VALIDATE"))
            let items = try await space.modify([
                Space.operation("forceDelete", "holder"), Space.operation("forceDelete", "target"),
            ]).items()
            #expect(items.allSatisfy { $0["deleted"] == true }, "\(items.map(\.text))")
        }

        @Test("deleting a DELETE_SELF target deletes its sources, and theirs", arguments: Door.allCases)
        func cascade(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            try await space.save("b", Self.link("a", "DELETE_SELF"))
            try await space.save("c", Self.link("b", "DELETE_SELF"))
            try await space.save("other", Self.link("a", "NONE"))
            try await space.delete("a")
            #expect(try await space.query().names == ["other"])
        }

        @Test("sources deleted by a cascade appear in the change feed as deletions", arguments: Door.allCases)
        func cascadeInFeed(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            try await space.save("b", Self.link("a", "DELETE_SELF"))
            let token = try #require(try await space.changes()["syncToken"]?.string)
            try await space.delete("a")
            let entries = try #require(try await space.changes(token)["records"]?.array)
            #expect(entries.map(\.name).sorted() == ["a", "b"])
            #expect(entries.allSatisfy { $0["deleted"] == true })
        }

        @Test("a list of references cascades by each of its members", arguments: Door.allCases)
        func cascadeOfList(door: Door) async throws {
            let space = try await Space(door).newZone()
            for name in ["a", "b"] { try await space.save(name) }
            let links = ["a", "b"].map {
                JSONValue.object([.init("recordName", .string($0)), .init("action", "DELETE_SELF")])
            }
            try await space.save("source", ["links": ["value": .array(links)]])
            try await space.delete("b")
            #expect(try await space.query().names == ["a"])
        }

        @Test("cycles of DELETE_SELF go together", arguments: Door.allCases)
        func cycle(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.save("a", Self.link("b", "DELETE_SELF"))
            try await space.save("b", Self.link("c", "DELETE_SELF"))
            try await space.save("c", Self.link("a", "DELETE_SELF"))
            try await space.delete("b")
            #expect(try await space.query().names == [])
        }

        @Test("a record may refer to itself, and be deleted", arguments: Door.cases(["DELETE_SELF", "NONE"]))
        func itself(door: Door, action: String) async throws {
            let space = try await Space(door).newZone()
            try await space.save("a", Self.link("a", action))
            try await space.delete("a")
            #expect(try await space.query().names == [])
        }

        @Test("DELETE_SELF to a missing target is allowed", arguments: Door.allCases)
        func deleteSelfMissing(door: Door) async throws {
            let space = try await Space(door)
            #expect(try await space.save("a", Self.link("missing", "DELETE_SELF")).code == nil)
        }

        @Test("a source that changed its reference is not deleted with the earlier target", arguments: Door.allCases)
        func changedReference(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            try await space.save("b", Self.link("a", "DELETE_SELF"))
            try await space.save("b", ["title": ["value": "free"]])
            try await space.delete("a")
            #expect(try await space.query().names == ["b"])
        }

        @Test("a VALIDATE holder outside the cascade forbids the deletion", arguments: Door.allCases)
        func heldCascade(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            try await space.save("b", Self.link("a", "DELETE_SELF"))
            try await space.save("holder", Self.link("b", "VALIDATE"))
            let answer = try await space.modify([Space.operation("forceDelete", "a")], ["atomic": false])
            expectError(try answer.item(), "VALIDATING_REFERENCE_ERROR")
            #expect(try await space.query().names.sorted() == ["a", "b", "holder"])
        }

        @Test("in a default zone the target goes at once, its sources soon after", arguments: Door.allCases)
        func defaultZone(door: Door) async throws {
            let space = try await Space(door, with: "a")
            try await space.save("b", Self.link("a", "DELETE_SELF"))
            try await space.delete("a")
            expectError(try await space.lookup("a"), "NOT_FOUND")
            try await awaitState("the source is gone") {
                try await space.lookup("b")
            } until: {
                $0.code == "NOT_FOUND"
            }
        }

        @Test("references across zones are BAD_REQUEST", arguments: Door.allCases)
        func acrossZones(door: Door) async throws {
            let space = try await Space(door).newZone()
            let answer = try await space.modify(
                [Space.operation("create", "a", Self.link("t", "NONE", ["zoneID": ["zoneName": "elsewhere"]]))],
                ["atomic": false])
            expectError(try answer.item(), "BAD_REQUEST", "zone")
        }

        @Test("a reference may name its own zone", arguments: Door.allCases)
        func ownZone(door: Door) async throws {
            let space = try await Space(door).newZone()
            #expect(try await space.save("a", Self.link("t", "NONE", ["zoneID": space.zoneID])).code == nil)
        }

        @Test(
            "deviates: outside queries a missing action is taken as NONE, where the reference requires one",
            arguments: Door.allCases)
        func missingAction(door: Door) async throws {
            let record = try await Space(door).save("a", ["link": ["value": ["recordName": "t"]]])
            #expect(record.field("link")?["action"] == "NONE", "\(record.text)")
        }

        @Test("a parent neither deletes nor guards", arguments: Door.allCases)
        func parents(door: Door) async throws {
            let space = try await Space(door).newZone(with: "p")
            try await space.save("c", more: ["parent": ["recordName": "p"]])
            try await space.delete("p")
            #expect(try await space.query().names == ["c"])
        }
    }
}
