import RecordModel
import Testing

extension Conformance {
    @Suite("Limits and quotas 3: sizes and names")
    struct LimitsQuotasNameTests {
        private static func name(_ count: Int, _ letter: String = "n") -> String {
            String(repeating: letter, count: count)
        }

        @Test("record names have 1 to 255 characters", arguments: Door.cases([1, 254, 255]))
        func recordNames(door: Door, count: Int) async throws {
            let space = try await Space(door)
            try await space.save(Self.name(count))
            #expect(try await space.lookup(Self.name(count)).code == nil)
        }

        @Test(
            "other record names are BAD_REQUEST",
            arguments: Door.cases([String(repeating: "n", count: 256), "", "_x", "ä", "日本", "a\nb", "a\u{0}b"]))
        func badRecordNames(door: Door, name: String) async throws {
            let space = try await Space(door)
            expectFailure(try await space.modify([Space.operation("create", name)]), 400, "BAD_REQUEST", "recordName")
        }

        @Test("record names are printable ASCII, case counts", arguments: Door.allCases)
        func anyASCII(door: Door) async throws {
            let space = try await Space(door)
            let names = ["A", "a", " !\"#$%&'()*+,-./0:;<=>?@[\\]^`{|}~", "a b", "x/y?z=1"]
            for name in names { try await space.save(name) }
            #expect(try await space.lookup(names).names == names)
        }

        @Test("zone names have 1 to 255 characters", arguments: Door.cases([1, 254, 255]))
        func zoneNames(door: Door, count: Int) async throws {
            let space = try await Space(door).newZone(Self.name(count, "z"))
            try await space.save("a")
            #expect(try await space.changes()["records"]?.array?.count == 1)
        }

        @Test(
            "other zone names are BAD_REQUEST",
            arguments: Door.cases([String(repeating: "z", count: 256), "", "_mine", "ä", "a\tb"]))
        func badZoneNames(door: Door, name: String) async throws {
            let answer = try await Space(door).call(
                "zones/modify", ["operations": [Space.zoneOperation("create", name)]])
            expectFailure(answer, 400, "BAD_REQUEST", "zoneName")
        }

        @Test(
            "record types are a letter, then letters, digits and underscores",
            arguments: Door.cases(["1a", "a-b", "ä", "a b", "_A", ""]))
        func badTypes(door: Door, type: String) async throws {
            let answer = try await Space(door).modify([Space.operation("create", "a", type: type)])
            expectFailure(answer, 400, "BAD_REQUEST", "recordType")
        }

        @Test("record types and fields have up to 255 characters", arguments: Door.allCases)
        func longNames(door: Door) async throws {
            let space = try await Space.own(door)
            for count in [254, 255] {
                let name = Self.name(count, "T")
                let record = try await space.save("a\(count)", .object([.init(name, ["value": 1])]), type: name)
                #expect(record.field(name) == 1)
            }
            let type = try await space.modify([Space.operation("create", "b", type: Self.name(256))])
            expectFailure(type, 400, "BAD_REQUEST", "255")
            let field = try await space.modify([
                Space.operation("create", "b", .object([.init(Self.name(256), ["value": 1])]), type: "T")
            ])
            expectFailure(field, 400, "BAD_REQUEST", "255")
        }

        @Test("a list has up to 10,000 members", arguments: Door.allCases)
        func lists(door: Door) async throws {
            let space = try await Space(door)
            for (count, code) in [(9_999, nil), (10_000, nil), (10_001, "BAD_REQUEST")] as [(Int, String?)] {
                let list = JSONValue.array((0..<count).map { .integer(Int64($0 % 3)) })
                let item = try await space.modify(
                    Space.operation("forceReplace", "a", ["counts": ["value": list]]), ["desiredKeys": []])
                #expect(item.code == code, "\(count): \(item.reason)")
            }
        }

        @Test("desiredKeys has up to 1,000 members", arguments: Door.allCases)
        func desiredKeys(door: Door) async throws {
            let space = try await Space(door)
            let keys = (0..<1_001).map { "f\($0)" }
            #expect(try await space.lookup(["a"], ["desiredKeys": .strings(Array(keys.prefix(1_000)))]).status == 200)
            expectFailure(
                try await space.lookup(["a"], ["desiredKeys": .strings(keys)]), 400, "BAD_REQUEST", "desiredKeys")
        }

        @Test("a query has up to 32 filters", arguments: Door.allCases)
        func filters(door: Door) async throws {
            let space = try await Space(door)
            for count in [31, 32] {
                let filters = (0..<count).map { Space.filter("count", "NOT_EQUALS", .integer(Int64($0))) }
                #expect(try await space.query(filters).status == 200)
            }
            let filters = (0..<33).map { Space.filter("count", "NOT_EQUALS", .integer(Int64($0))) }
            expectFailure(try await space.query(filters), 400, "BAD_REQUEST", "32")
        }

        @Test("a query has up to 8 sort keys", arguments: Door.allCases)
        func sorts(door: Door) async throws {
            let space = try await Space(door)
            let sort: JSONValue = ["fieldName": "count"]
            for count in [7, 8] {
                let answer = try await space.query(sort: Array(repeating: sort, count: count))
                #expect(answer.status == 200, "\(answer)")
            }
            expectFailure(try await space.query(sort: Array(repeating: sort, count: 9)), 400, "BAD_REQUEST", "8")
        }

        @Test("IN has up to 250 members", arguments: Door.allCases)
        func inList(door: Door) async throws {
            let space = try await Space(door)
            for (count, status) in [(249, 200), (250, 200), (251, 400)] {
                let values = JSONValue.array((0..<count).map { .integer(Int64($0)) })
                let answer = try await space.query([Space.filter("count", "IN", values)])
                #expect(answer.status == status, "\(count): \(answer)")
            }
        }

        @Test("JSON nests up to 32 deep", arguments: Door.allCases)
        func nesting(door: Door) async throws {
            let space = try await Space(door)
            for (depth, status) in [(31, 200), (32, 200), (33, 400)] {
                var call = space.request("records/lookup")
                // The body is one level, the ignored member the others.
                let inner = String(repeating: "[", count: depth - 1) + String(repeating: "]", count: depth - 1)
                call.body = Array(#"{"records": [], "x": \#(inner)}"#.utf8)
                #expect(try await space.send(call).status == status, "\(depth)")
            }
        }
    }
}
