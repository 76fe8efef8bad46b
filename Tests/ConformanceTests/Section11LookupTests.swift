import RecordModel
import Testing

extension Conformance {
    @Suite("11 records/lookup")
    struct Section11LookupTests {
        @Test("records is needed", arguments: Door.allCases)
        func needed(door: Door) async throws {
            expectFailure(try await Space(door).call("records/lookup", [:]), 400, "BAD_REQUEST", "records")
        }

        @Test("one entry for each requested name; missing ones are NOT_FOUND items", arguments: Door.allCases)
        func entries(door: Door) async throws {
            let space = try await Space(door, with: "a")
            let answer = try await space.lookup(["x", "a"])
            #expect(answer.status == 200)
            #expect(try answer.items().map(\.code) == ["NOT_FOUND", nil])
        }

        @Test("a name may be asked for twice", arguments: Door.allCases)
        func twice(door: Door) async throws {
            let space = try await Space(door, with: "a")
            #expect(try await space.lookup(["a", "a"]).names == ["a", "a"])
        }

        @Test("an entry's own desiredKeys wins over the request's", arguments: Door.allCases)
        func desiredKeys(door: Door) async throws {
            let space = try await Space(door)
            for name in ["a", "b"] {
                try await space.save(name, ["title": ["value": "x"], "count": ["value": 1]])
            }
            let answer = try await space.call(
                "records/lookup",
                [
                    "records": [["recordName": "a", "desiredKeys": ["count"]], ["recordName": "b"]],
                    "desiredKeys": ["title"],
                ])
            #expect(try answer.items().map { $0["fields"]?.keys } == [["count"], ["title"]])
        }

        @Test("records are looked up in the zone that is named", arguments: Door.allCases)
        func zone(door: Door) async throws {
            let space = try await Space(door)
            let zone = try await space.newZone()
            try await zone.save("a")
            #expect(try await zone.lookup("a").code == nil)
            expectError(try await space.lookup("a"), "NOT_FOUND")
        }

        @Test("records of any type are found", arguments: Door.allCases)
        func types(door: Door) async throws {
            let space = try await Space(door, with: "a")
            try await space.save("b", type: "Bare")
            #expect(try await space.lookup(["a", "b"]).items().map { $0["recordType"] } == ["Item", "Bare"])
        }

        @Test("assetPrivacyMaskType is ignored", arguments: Door.allCases)
        func mask(door: Door) async throws {
            let space = try await Space(door, with: "a")
            #expect(try await space.lookup(["a"], ["assetPrivacyMaskType": "x"]).names == ["a"])
        }

        @Test("a deleted record is NOT_FOUND", arguments: Door.allCases)
        func deleted(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            try await space.delete("a")
            expectError(try await space.lookup("a"), "NOT_FOUND", "Record not found")
        }
    }
}
