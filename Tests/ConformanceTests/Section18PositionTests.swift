import RecordModel
import Testing

/// The positions that `web-services.md` takes on contradictions, as far as other sections do not have them.
extension Conformance {
    @Suite("18 Contradictions: the positions taken")
    struct Section18PositionTests {
        @Test("2: users/caller sends the identity both ways", arguments: Door.allCases)
        func caller(door: Door) async throws {
            let json = try await Space(door).inPublic.get("users/caller").json
            #expect(json["userRecordName"] == json["users"]?.array?.first?["userRecordName"])
            #expect(json["userRecordName"] != nil)
        }

        @Test("4: an atomic failure is 400 with codes at both levels", arguments: Door.allCases)
        func atomic(door: Door) async throws {
            let space = try await Space(door).newZone()
            let answer = try await space.modify([
                Space.operation("create", "a"), Space.operation("update", "b", tag: "1"),
            ])
            expectFailure(answer, 400, "ATOMIC_ERROR")
            #expect(try answer.items().map(\.code) == ["ATOMIC_ERROR", "NOT_FOUND"])
        }

        @Test("5: zones/changes takes and sends both token names", arguments: Door.allCases)
        func tokens(door: Door) async throws {
            let json = try await Space(door).call("zones/changes", ["syncToken": ""]).json
            #expect(json["metaSyncToken"] != nil && json["metaSyncToken"] == json["syncToken"])
        }

        @Test("11: a token that cannot be gone on from is BAD_REQUEST for its zone", arguments: Door.allCases)
        func expired(door: Door) async throws {
            let space = try await Space(door).newZone()
            let token = try await space.changes()["syncToken"]?.string
            _ = try await space.call("zones/modify", ["operations": [Space.zoneOperation("delete", "zone")]])
            _ = try await space.newZone()
            expectError(try await space.changes(token), "BAD_REQUEST")
        }

        @Test("13: create of an existing zone and forceDelete of a missing record succeed", arguments: Door.allCases)
        func idempotent(door: Door) async throws {
            let space = try await Space(door).newZone().newZone()
            #expect(try await space.modify(Space.operation("forceDelete", "none"))["deleted"] == true)
        }

        @Test(
            "17: numberAsStrings and numbersAsStrings are both taken",
            arguments: Door.cases(["numberAsStrings", "numbersAsStrings"]))
        func spelling(door: Door, key: String) async throws {
            let space = try await Space(door)
            try await space.save("a", ["count": ["value": 1]])
            #expect(try await space.lookup("a", .object([.init(key, true)])).field("count") == "1")
        }
    }

    @Suite("20 Traps")
    struct Section20TrapTests {
        @Test("4: every returned field has its type, every stamp its deviceID", arguments: Door.allCases)
        func types(door: Door) async throws {
            let space = try await Space(door).newZone()
            let fields = JSONValue.object(
                Dictionary(grouping: ValueCase.all, by: \.field).sorted { $0.key < $1.key }.map {
                    .init($0.key, $0.value[0].input)
                })
            let saved = try await space.save("a", fields)
            let feed = try #require(try await space.changes()["records"]?.array?.first)
            for record in [saved, try await space.lookup("a"), try await space.query().item(), feed] {
                for name in record["fields"]?.keys ?? [] {
                    #expect(record["fields"]?[name]?["type"]?.string?.isEmpty == false)
                }
                #expect(record["created"]?["deviceID"] != nil && record["modified"]?["deviceID"] != nil)
            }
        }

        @Test("7: no continuationMarker on the last page", arguments: Door.allCases)
        func lastPage(door: Door) async throws {
            let space = try await Space(door, with: "a")
            for limit in [1, 2] as [Int64] {
                let answer = try await space.query(["resultsLimit": .integer(limit)])
                if answer.json["continuationMarker"] == nil { continue }
                // Where the page was exactly full, a further one may say that there is no more.
                let next = try await space.query(
                    ["resultsLimit": .integer(limit), "continuationMarker": answer.json["continuationMarker"] ?? .null])
                #expect(limit == 1 && next.names.isEmpty && next.json["continuationMarker"] == nil)
            }
        }

        @Test("8: empty lists are UNKNOWN_LIST", arguments: Door.allCases)
        func emptyLists(door: Door) async throws {
            let record = try await Space(door).save("a", ["labels": ["value": [], "type": "STRING_LIST"]])
            #expect(record["fields"]?["labels"] == ["value": [], "type": "UNKNOWN_LIST"])
        }

        @Test("13: zones/list by POST too", arguments: Door.allCases)
        func zonesByPost(door: Door) async throws {
            let space = try await Space(door)
            #expect(try await space.call("zones/list", [:]).json == space.get("zones/list").json)
        }

        @Test("15: systemFieldName and ___ names are the same in filters and sorts", arguments: Door.allCases)
        func systemNames(door: Door) async throws {
            let space = try await Space(door)
            for name in ["b", "a"] { try await space.save(name) }
            for key in [
                ("fieldName", "___recordID"), ("systemFieldName", "recordName"), ("systemFieldName", "___recordID"),
            ] {
                let sort = JSONValue.object([.init(key.0, .string(key.1))])
                #expect(try await space.query(sort: [sort]).names == ["a", "b"], "\(key)")
            }
        }
    }
}
