import RecordModel
import Testing

/// `web-services.md` section 5 and `limits-quotas.md` sections 2 and 3: at, below and above each limit.
extension Conformance {
    @Suite("5 Limits")
    struct Section05LimitTests {
        private static func creates(_ count: Int) -> [JSONValue] {
            (0..<count).map { Space.operation("create", "r\($0)") }
        }

        @Test("200 operations in a request: 199 and 200 are done", arguments: Door.cases([199, 200]))
        func operations(door: Door, count: Int) async throws {
            let items = try await Space(door).modify(Self.creates(count)).items()
            #expect(items.count == count && items.allSatisfy { $0.code == nil })
        }

        @Test("201 operations are BAD_REQUEST, and none is done", arguments: Door.allCases)
        func tooManyOperations(door: Door) async throws {
            let space = try await Space(door)
            expectFailure(try await space.modify(Self.creates(201)), 400, "BAD_REQUEST", "200")
            expectError(try await space.lookup("r0"), "NOT_FOUND")
        }

        @Test("the lists of a request have 250,000 members together and no more", arguments: Door.allCases)
        func listMembers(door: Door) async throws {
            let space = try await Space(door)
            let list = JSONValue.array(Array(repeating: 0, count: 10_000))
            let fields: JSONValue = ["many": ["value": list, "type": "INT64_LIST"]]
            let creates = (0..<26).map { Space.operation("create", "r\($0)", fields) }
            expectFailure(try await space.modify(creates), 400, "BAD_REQUEST", "250000")
            expectError(try await space.lookup("r0"), "NOT_FOUND")
        }

        @Test("200 names in a lookup are answered, 201 are refused", arguments: Door.allCases)
        func lookups(door: Door) async throws {
            let space = try await Space(door)
            #expect(try await space.lookup((0..<200).map { "r\($0)" }).items().count == 200)
            expectFailure(try await space.lookup((0..<201).map { "r\($0)" }), 400, "BAD_REQUEST", "200")
        }

        @Test("200 records in an answer, which is also the default", arguments: Door.allCases)
        func page(door: Door) async throws {
            let space = try await Space(door).newZone()
            _ = try await space.modify(Self.creates(200))
            _ = try await space.modify([Space.operation("create", "more")])
            let first = try await space.query()
            #expect(first.names.count == 200)
            #expect(first.json["continuationMarker"] != nil)
            #expect(try await space.changes()["records"]?.array?.count == 200)
        }

        @Test("resultsLimit above 200 is capped, not refused", arguments: Door.allCases)
        func capped(door: Door) async throws {
            let space = try await Space(door).newZone()
            _ = try await space.modify(Self.creates(200))
            _ = try await space.modify([Space.operation("create", "more")])
            #expect(try await space.query(["resultsLimit": 1_000]).names.count == 200)
            #expect(try await space.changes(nil, ["resultsLimit": 201])["records"]?.array?.count == 200)
        }

        @Test("resultsLimit of 1, 3 and 200 is kept", arguments: Door.allCases)
        func resultsLimit(door: Door) async throws {
            let space = try await Space(door)
            _ = try await space.modify(Self.creates(5))
            for (limit, count) in [(1, 1), (3, 3), (200, 5)] {
                #expect(try await space.query(["resultsLimit": .integer(Int64(limit))]).names.count == count)
            }
        }

        @Test("resultsLimit below 1 is BAD_REQUEST", arguments: Door.cases([0, -1]))
        func noResults(door: Door, limit: Int) async throws {
            let answer = try await Space(door).query(["resultsLimit": .integer(Int64(limit))])
            expectFailure(answer, 400, "BAD_REQUEST", "resultsLimit")
        }

        /// A record whose fields, name and value, have this many bytes.
        private static func record(of bytes: Int) -> JSONValue {
            let text = String(repeating: "x", count: bytes - "plain".utf8.count)
            return Space.operation("forceReplace", "large", ["plain": ["value": .string(text)]])
        }

        @Test("a record of 1 MB and one byte less is saved, one byte more is BAD_REQUEST", arguments: Door.allCases)
        func recordSize(door: Door) async throws {
            let space = try await Space(door)
            // What a field costs besides its text is the store's business: the largest that is taken is looked for.
            var low = Limits.recordSizeBytesMax - 64
            var high = Limits.recordSizeBytesMax + 64
            #expect(try await space.modify(Self.record(of: low)).code == nil)
            expectError(try await space.modify(Self.record(of: high)), "BAD_REQUEST", "1048576")
            while high - low > 1 {
                let middle = (low + high) / 2
                if try await space.modify(Self.record(of: middle)).code == nil { low = middle } else { high = middle }
            }
            #expect(try await space.modify(Self.record(of: low)).code == nil)
            expectError(try await space.modify(Self.record(of: low + 1)), "BAD_REQUEST", "1048576")
        }

        @Test("several fields count together towards 1 MB", arguments: Door.allCases)
        func recordSizeOfFields(door: Door) async throws {
            let space = try await Space(door)
            let half = JSONValue.string(String(repeating: "x", count: 600_000))
            let item = try await space.modify(
                Space.operation("create", "a", ["plain": ["value": half], "notes": ["value": half]]))
            expectError(item, "BAD_REQUEST", "1048576")
        }

        @Test(
            "an update that makes a record larger than 1 MB is refused, and changes nothing", arguments: Door.allCases)
        func growing(door: Door) async throws {
            let space = try await Space(door)
            let half = JSONValue.string(String(repeating: "x", count: 600_000))
            let record = try await space.save("a", ["plain": ["value": half]])
            let item = try await space.modify(
                Space.operation("update", "a", ["notes": ["value": half]], tag: record.tag))
            expectError(item, "BAD_REQUEST", "1048576")
            #expect(try await space.lookup("a", ["desiredKeys": []]).tag == record.tag)
        }

        @Test("one operation for a record in a request", arguments: Door.allCases)
        func onePerRecord(door: Door) async throws {
            let answer = try await Space(door).modify([
                Space.operation("create", "a"), Space.operation("forceUpdate", "a"),
            ])
            expectFailure(answer, 400, "BAD_REQUEST", "'a'")
        }

        @Test("one operation for a zone in a request", arguments: Door.allCases)
        func onePerZone(door: Door) async throws {
            let answer = try await Space(door).call(
                "zones/modify",
                ["operations": [Space.zoneOperation("create", "z"), Space.zoneOperation("delete", "z")]])
            expectFailure(answer, 400, "BAD_REQUEST")
        }

        @Test("200 zones in a request, 201 are refused", arguments: Door.allCases)
        func zones(door: Door) async throws {
            let space = try await Space(door)
            let names = (0..<201).map { JSONValue.object([.init("zoneName", .string("z\($0)"))]) }
            let found = try await space.call("zones/lookup", ["zones": .array(Array(names.prefix(200)))])
            #expect(try found.items("zones").count == 200)
            expectFailure(try await space.call("zones/lookup", ["zones": .array(names)]), 400, "BAD_REQUEST", "200")
            let operations = (0..<201).map { Space.zoneOperation("delete", "z\($0)") }
            expectFailure(
                try await space.call("zones/modify", ["operations": .array(operations)]), 400, "BAD_REQUEST", "200")
        }

        @Test(
            "750 DELETE_SELF references to one target: 749 and 750 are saved, 751 is BAD_REQUEST",
            arguments: Door.allCases)
        func deleteSelfReferences(door: Door) async throws {
            let space = try await Space(door).newZone(with: "target")
            let link: JSONValue = ["link": ["value": ["recordName": "target", "action": "DELETE_SELF"]]]
            for start in stride(from: 0, to: 749, by: 200) {
                let part = (start..<min(start + 200, 749)).map { Space.operation("create", "s\($0)", link) }
                #expect(try await space.modify(part).items().allSatisfy { $0.code == nil })
            }
            #expect(try await space.modify(Space.operation("create", "s749", link)).code == nil)
            expectFailureOrItem(try await space.modify([Space.operation("create", "s750", link)]), "750")
            // A place that becomes free can be taken.
            try await space.delete("s0")
            #expect(try await space.modify(Space.operation("create", "s750", link)).code == nil)
        }

        /// In an atomic batch the item says why.
        private func expectFailureOrItem(_ answer: Answer, _ reason: String) {
            let item = answer.json["records"]?.array?.first
            #expect(item?.code == "BAD_REQUEST" && item?.reason.contains(reason) == true, "\(answer)")
        }

        @Test(
            "deviates: a request's body may have 4 MB, of which native clients use 2; more is 413",
            arguments: Door.allCases)
        func body(door: Door) async throws {
            let space = try await Space(door)
            for (extra, status) in [(-1, 200), (0, 200), (1, 413)] {
                var call = space.request("records/lookup", ["records": []])
                call.body += [UInt8](
                    repeating: UInt8(ascii: " "), count: Limits.requestBodyBytesMax + extra - call.body.count)
                let answer = try await space.send(call)
                #expect(answer.status == status, "\(extra): \(answer)")
                if status == 413 { expectFailure(answer, 413, "BAD_REQUEST", "4194304") }
            }
        }
    }
}
