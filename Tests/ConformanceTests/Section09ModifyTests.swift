import RecordModel
import Testing

extension Conformance {
    @Suite("9 records/modify")
    struct Section09ModifyTests {
        @Test("operations is needed", arguments: Door.allCases)
        func operationsNeeded(door: Door) async throws {
            expectFailure(try await Space(door).call("records/modify", [:]), 400, "BAD_REQUEST", "operations")
        }

        @Test("no operations are no failure, also of an atomic batch", arguments: Door.allCases)
        func noOperations(door: Door) async throws {
            let answer = try await Space(door).newZone().modify([])
            #expect(answer.status == 200)
            #expect(try answer.items().isEmpty)
        }

        @Test("an unknown operationType is BAD_REQUEST", arguments: Door.allCases)
        func unknownKind(door: Door) async throws {
            expectFailure(
                try await Space(door).modify([Space.operation("explode", "a")]), 400, "BAD_REQUEST", "operationType")
        }

        @Test("one zone for the whole request, the default zone by default", arguments: Door.allCases)
        func oneZone(door: Door) async throws {
            let space = try await Space(door)
            let zone = try await space.newZone()
            _ = try await zone.modify([Space.operation("create", "a"), Space.operation("create", "b")])
            #expect(try await zone.query().names.sorted() == ["a", "b"])
            #expect(try await space.query().names == [])
        }

        @Test("create: what is missing is created", arguments: Door.allCases)
        func create(door: Door) async throws {
            let space = try await Space(door)
            #expect(try await space.modify(Space.operation("create", "a", ["count": ["value": 1]])).code == nil)
            #expect(try await space.lookup("a").field("count") == 1)
        }

        @Test("create: what is there is EXISTS, and stays", arguments: Door.allCases)
        func createExisting(door: Door) async throws {
            let space = try await Space(door)
            try await space.save("a", ["count": ["value": 1]])
            expectError(try await space.modify(Space.operation("create", "a", ["count": ["value": 2]])), "EXISTS")
            #expect(try await space.lookup("a").field("count") == 1)
        }

        @Test("create ignores a tag", arguments: Door.allCases)
        func createWithTag(door: Door) async throws {
            #expect(try await Space(door).modify(Space.operation("create", "a", tag: "zz")).code == nil)
        }

        @Test("a deleted record can be created again", arguments: Door.allCases)
        func createAgain(door: Door) async throws {
            let space = try await Space(door).newZone()
            let first = try await space.save("a")
            try await space.delete("a")
            let second = try await space.modify(Space.operation("create", "a"))
            #expect(second.code == nil && second.tag != first.tag)
        }

        @Test("update and replace of what is missing are NOT_FOUND", arguments: Door.cases(["update", "replace"]))
        func missing(door: Door, kind: String) async throws {
            expectError(try await Space(door).modify(Space.operation(kind, "a", tag: "1")), "NOT_FOUND")
        }

        @Test("update: given fields are overwritten, others kept", arguments: Door.allCases)
        func update(door: Door) async throws {
            let space = try await Space(door)
            let record = try await space.save("a", ["count": ["value": 1], "title": ["value": "x"]])
            let updated = try await space.modify(
                Space.operation("update", "a", ["count": ["value": 2]], tag: record.tag))
            for record in [updated, try await space.lookup("a")] {
                #expect(record.field("count") == 2 && record.field("title") == "x", "\(record.text)")
            }
        }

        @Test("update without recordType keeps the record's", arguments: Door.allCases)
        func updateWithoutType(door: Door) async throws {
            let space = try await Space(door)
            let record = try await space.save("a", ["count": ["value": 1]])
            let updated = try await space.modify(
                Space.operation("update", "a", ["count": ["value": 2]], tag: record.tag, type: nil))
            #expect(updated.field("count") == 2 && updated["recordType"] == "Item", "\(updated.text)")
        }

        @Test("update with another recordType is BAD_REQUEST", arguments: Door.allCases)
        func otherType(door: Door) async throws {
            let space = try await Space(door)
            let record = try await space.save("a")
            expectError(
                try await space.modify(Space.operation("update", "a", tag: record.tag, type: "Bare")), "BAD_REQUEST")
        }

        @Test(
            "update and replace with a stale tag are CONFLICT, and change nothing",
            arguments: Door.cases(["update", "replace"]))
        func stale(door: Door, kind: String) async throws {
            let space = try await Space(door)
            let old = try await space.save("a", ["count": ["value": 1]])
            let new = try await space.save("a", ["count": ["value": 2]])
            expectError(
                try await space.modify(Space.operation(kind, "a", ["count": ["value": 3]], tag: old.tag)), "CONFLICT")
            let now = try await space.lookup("a")
            #expect(now.tag == new.tag && now.field("count") == 2)
        }

        @Test("a tag that this server never gave is CONFLICT", arguments: Door.cases(["nonsense!", "1.zzzz", "é"]))
        func foreignTag(door: Door, tag: String) async throws {
            let space = try await Space(door, with: "a")
            expectError(try await space.modify(Space.operation("update", "a", tag: tag)), "CONFLICT")
        }

        @Test(
            "forceUpdate: what is missing is created, what is there updated whatever the tag", arguments: Door.allCases)
        func forceUpdate(door: Door) async throws {
            let space = try await Space(door)
            _ = try await space.modify(Space.operation("forceUpdate", "a", ["count": ["value": 1]]))
            let record = try await space.modify(
                Space.operation("forceUpdate", "a", ["title": ["value": "x"]], tag: "stale"))
            #expect(record.field("count") == 1 && record.field("title") == "x", "\(record.text)")
        }

        @Test("replace: all fields are replaced, unnamed ones become null", arguments: Door.allCases)
        func replace(door: Door) async throws {
            let space = try await Space(door)
            let record = try await space.save("a", ["count": ["value": 1], "title": ["value": "x"]])
            let replaced = try await space.modify(
                Space.operation("replace", "a", ["count": ["value": 2]], tag: record.tag))
            #expect(replaced["fields"]?.keys == ["count"], "\(replaced.text)")
            #expect(try await space.lookup("a")["fields"]?.keys == ["count"])
        }

        @Test(
            "forceReplace: what is missing is created, what is there replaced whatever the tag",
            arguments: Door.allCases)
        func forceReplace(door: Door) async throws {
            let space = try await Space(door)
            _ = try await space.modify(Space.operation("forceReplace", "a", ["count": ["value": 1]]))
            let record = try await space.modify(
                Space.operation("forceReplace", "a", ["title": ["value": "x"]], tag: "stale"))
            #expect(record["fields"]?.keys == ["title"], "\(record.text)")
        }

        @Test("delete: with the tag it is gone", arguments: Door.allCases)
        func delete(door: Door) async throws {
            let space = try await Space(door)
            let record = try await space.save("a")
            #expect(try await space.modify(Space.operation("delete", "a", tag: record.tag))["deleted"] == true)
            expectError(try await space.lookup("a"), "NOT_FOUND")
        }

        @Test("delete with a stale tag is CONFLICT", arguments: Door.allCases)
        func staleDelete(door: Door) async throws {
            let space = try await Space(door)
            let record = try await space.save("a")
            try await space.save("a")
            expectError(try await space.modify(Space.operation("delete", "a", tag: record.tag)), "CONFLICT")
            #expect(try await space.lookup("a").code == nil)
        }

        @Test("delete of what is missing is NOT_FOUND", arguments: Door.allCases)
        func missingDelete(door: Door) async throws {
            expectError(try await Space(door).modify(Space.operation("delete", "a", tag: "1")), "NOT_FOUND")
        }

        @Test("forceDelete: of what is there and of what is missing, both succeed", arguments: Door.allCases)
        func forceDelete(door: Door) async throws {
            let space = try await Space(door, with: "a")
            let items = try await space.modify([
                Space.operation("forceDelete", "a"), Space.operation("forceDelete", "missing"),
            ]).items()
            #expect(items.allSatisfy { $0["deleted"] == true }, "\(items.map(\.text))")
            expectError(try await space.lookup("a"), "NOT_FOUND")
        }

        @Test("desiredKeys limits the returned records; an operation's own wins", arguments: Door.allCases)
        func desiredKeys(door: Door) async throws {
            let space = try await Space(door)
            let fields: JSONValue = ["count": ["value": 1], "title": ["value": "x"]]
            let items = try await space.modify(
                [
                    Space.operation("create", "a", fields),
                    Space.operation("create", "b", fields).with(["desiredKeys": ["count"]]),
                ], ["desiredKeys": ["title"]]
            ).items()
            #expect(items.map { $0["fields"]?.keys } == [["title"], ["count"]])
            #expect(try await space.lookup("a")["fields"]?.keys.count == 2)
        }

        @Test("one entry for each operation, in request order", arguments: Door.allCases)
        func order(door: Door) async throws {
            let space = try await Space(door, with: "old")
            let items = try await space.modify([
                Space.operation("create", "c"), Space.operation("forceDelete", "old"),
                Space.operation("create", "a"), Space.operation("update", "none", tag: "1"),
            ]).items()
            #expect(items.map(\.name) == ["c", "old", "a", "none"])
        }

        @Test("atomic: false: each item succeeds or fails alone, HTTP 200", arguments: Door.allCases)
        func notAtomic(door: Door) async throws {
            let space = try await Space(door).newZone()
            let answer = try await space.modify(
                [Space.operation("create", "a"), Space.operation("update", "b", tag: "1")], ["atomic": false])
            #expect(answer.status == 200)
            #expect(try answer.items().map(\.code) == [nil, "NOT_FOUND"])
            #expect(try await space.lookup("a").code == nil)
        }

        @Test(
            "atomic is true by default in a custom zone: nothing is stored, and records says why",
            arguments: Door.allCases)
        func atomic(door: Door) async throws {
            let space = try await Space(door).newZone(with: "there")
            let answer = try await space.modify([
                Space.operation("create", "a"), Space.operation("create", "there"),
                Space.operation("forceDelete", "there2"),
            ])
            expectFailure(answer, 400, "ATOMIC_ERROR")
            #expect(try answer.items().map(\.code) == ["ATOMIC_ERROR", "EXISTS", "ATOMIC_ERROR"])
            #expect(answer.json["uuid"] != nil)
            expectError(try await space.lookup("a"), "NOT_FOUND")
        }

        @Test("an atomic batch also fails by a value that does not fit", arguments: Door.allCases)
        func atomicValue(door: Door) async throws {
            let space = try await Space(door).newZone()
            let answer = try await space.modify([
                Space.operation("create", "a"), Space.operation("create", "b", ["count": ["value": "x"]]),
            ])
            expectFailure(answer, 400, "ATOMIC_ERROR")
            #expect(try answer.items().map(\.code) == ["ATOMIC_ERROR", "BAD_REQUEST"])
            expectError(try await space.lookup("a"), "NOT_FOUND")
        }

        @Test("in the public database items are independent", arguments: Door.allCases)
        func publicItems(door: Door) async throws {
            let space = try await Space(door).inPublic
            let name = "p\(Home.unique())"
            let answer = try await space.modify(
                [Space.operation("create", name), Space.operation("update", name + "x", tag: "1")], ["atomic": true])
            #expect(try answer.items().map(\.code) == [nil, "NOT_FOUND"])
        }

        @Test(
            "deviates: a request repeated with its Idempotency-Key is applied once and answered the same",
            arguments: Door.allCases)
        func idempotency(door: Door) async throws {
            let space = try await Space(door).newZone()
            let key = IdempotencyKeys.next()
            let body: JSONValue = ["zoneID": space.zoneID, "operations": [Space.operation("create", nil)]]
            let first = try await space.call("records/modify", body, headers: [("Idempotency-Key", key)])
            let second = try await space.call("records/modify", body, headers: [("Idempotency-Key", key)])
            #expect(first.status == 200 && first.json == second.json, "\(first) \(second)")
            #expect(try await space.query().names.count == 1)
            let other: JSONValue = ["zoneID": space.zoneID, "operations": [Space.operation("create", "b")]]
            expectFailure(
                try await space.call("records/modify", other, headers: [("Idempotency-Key", key)]), 400, "BAD_REQUEST")
        }

        @Test("deviates: callers without a name share keys only under one API token", arguments: Door.allCases)
        func anonymousKeys(door: Door) async throws {
            let schema = """
                DEFINE SCHEMA
                    RECORD TYPE Open (text STRING, GRANT READ, CREATE, WRITE TO "_world");
                """
            let space = try await Space.own(door, schema: schema).inPublic.anonymous
            let token = try await space.home.admin(
                "POST", "tokens",
                ["kind": "api", "container": .string(space.container), "environment": "development"])
            let other = space.changed { $0.home.apiTokens["development"] = token["secret"]?.string }
            let headers = [("Idempotency-Key", IdempotencyKeys.next())]
            let body: JSONValue = ["operations": [Space.operation("create", "a", type: "Open")]]
            let first = try await space.call("records/modify", body, headers: headers).item()
            let again = try await space.call("records/modify", body, headers: headers).item()
            #expect(first.code == nil && again == first, "\(again.text)")
            expectError(try await other.call("records/modify", body, headers: headers).item(), "EXISTS")
            // Nor is the key taken for one that was used with another body.
            let more: JSONValue = ["operations": [Space.operation("create", "b", type: "Open")]]
            let fresh = [("Idempotency-Key", IdempotencyKeys.next())]
            let second = try await other.call("records/modify", more, headers: fresh).item()
            #expect(second.code == nil, "\(second.text)")
        }

        @Test(
            "deviates: a repeat is answered as before also where its operations could not be sent any more",
            arguments: Door.allCases)
        func repeatedLater(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.save("a", ["word": ["value": "x"]])
            let headers = [("Idempotency-Key", IdempotencyKeys.next())]
            // Without its type: the server looks at the record to learn what the values mean.
            let tag = try await space.lookup("a")["recordChangeTag"]?.string
            let update = Space.operation("update", "a", ["word": ["value": "y"]], tag: tag, type: nil)
            let body: JSONValue = ["zoneID": space.zoneID, "operations": [update]]
            let first = try await space.call("records/modify", body, headers: headers).item()
            #expect(first.code == nil && first["recordChangeTag"] != nil, "\(first.text)")
            try await space.delete("a")
            let again = try await space.call("records/modify", body, headers: headers).item()
            #expect(again.code == nil && again["recordChangeTag"] == first["recordChangeTag"], "\(again.text)")
            expectError(try await space.lookup("a"), "NOT_FOUND")
        }

        @Test("deviates: a request refused as a whole stays refused under its key", arguments: Door.allCases)
        func refusedLater(door: Door) async throws {
            let space = try await Space(door).changed { $0.zone = "later" }
            let headers = [("Idempotency-Key", IdempotencyKeys.next())]
            let body: JSONValue = ["zoneID": space.zoneID, "operations": [Space.operation("create", "a")]]
            expectFailure(try await space.call("records/modify", body, headers: headers), 404, "ZONE_NOT_FOUND")
            _ = try await space.newZone("later")
            expectFailure(try await space.call("records/modify", body, headers: headers), 404, "ZONE_NOT_FOUND")
            expectError(try await space.lookup("a"), "NOT_FOUND")
        }
    }
}
