import RecordModel
import TestSupport
import Testing

extension Conformance {
    @Suite("12 Changes and sync: the database, and the older forms")
    struct Section12DatabaseChangesTests {
        private static func zones(_ page: JSONValue) -> [String] {
            page["zones"]?.array?.compactMap { $0["zoneID"]?["zoneName"]?.string }.sorted() ?? []
        }

        @Test("changes/database with {} answers zones, moreComing and syncToken", arguments: Door.allCases)
        func members(door: Door) async throws {
            let page = try await Space(door).databaseChanges()
            #expect(page.keys.sorted() == ["moreComing", "syncToken", "zones"])
            #expect(page["zones"] == [] && page["moreComing"] == false)
        }

        @Test("each entry names a zone with changes since the token", arguments: Door.allCases)
        func changed(door: Door) async throws {
            let space = try await Space(door)
            let one = try await space.newZone("z1")
            let two = try await space.newZone("z2")
            let first = try await space.databaseChanges()
            #expect(Self.zones(first) == ["z1", "z2"])
            try await two.save("a")
            let second = try await space.databaseChanges(first["syncToken"]?.string)
            #expect(Self.zones(second) == ["z2"])
            try await one.save("a")
            try await one.delete("a")
            #expect(Self.zones(try await space.databaseChanges(second["syncToken"]?.string)) == ["z1"])
        }

        @Test("no change: no zones", arguments: Door.allCases)
        func none(door: Door) async throws {
            let space = try await Space(door).newZone()
            let token = try await space.databaseChanges()["syncToken"]?.string
            let page = try await space.databaseChanges(token)
            #expect(page["zones"] == [] && page["moreComing"] == false)
        }

        @Test("reads are no changes", arguments: Door.allCases)
        func reads(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let token = try await space.databaseChanges()["syncToken"]?.string
            _ = try await space.query()
            _ = try await space.lookup("a")
            _ = try await space.modify([Space.operation("create", "a")])
            #expect(try await space.databaseChanges(token)["zones"] == [])
        }

        @Test("a deleted zone is flagged", arguments: Door.allCases)
        func deleted(door: Door) async throws {
            let space = try await Space(door).newZone()
            let token = try await space.databaseChanges()["syncToken"]?.string
            _ = try await space.call("zones/modify", ["operations": [Space.zoneOperation("delete", "zone")]])
            let zone = try #require(try await space.databaseChanges(token)["zones"]?.array?.first)
            #expect(zone["deleted"] == true && zone["zoneID"]?["zoneName"] == "zone")
        }

        @Test("a zone deleted and made anew is a changed zone of a greater incarnation", arguments: Door.allCases)
        func recreated(door: Door) async throws {
            let space = try await Space(door).newZone()
            let first = try await space.databaseChanges()
            let token = first["syncToken"]?.string
            _ = try await space.call("zones/modify", ["operations": [Space.zoneOperation("delete", "zone")]])
            _ = try await space.newZone()
            let page = try await space.databaseChanges(token)
            #expect(Self.zones(page).contains("zone"))
            let (before, after) = (try #require(first["zones"]?.array?.first), try #require(page["zones"]?.array?.last))
            #expect(after["deleted"] == nil, "\(page.text)")
            guard case .integer(let earlier)? = before["incarnation"], case .integer(let later)? = after["incarnation"]
            else { throw TestFailure("no incarnation: \(page.text)") }
            #expect(earlier < later)
        }

        @Test("an entry can be used as a zone of changes/zone", arguments: Door.allCases)
        func entries(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let zones = try #require(try await space.databaseChanges()["zones"])
            let answer = try await space.call("changes/zone", ["zones": zones])
            #expect(try answer.item("zones")["records"]?.array?.map(\.name) == ["a"])
        }

        @Test("resultsLimit bounds a page; following the tokens finds every zone", arguments: Door.cases([1, 2, 4]))
        func pages(door: Door, size: Int) async throws {
            let space = try await Space(door)
            for number in 0..<5 { _ = try await space.newZone("z\(number)") }
            var found: [String] = []
            var token: String?
            var isDone = false
            for _ in 0..<50 where !isDone {
                let page = try await space.databaseChanges(token, ["resultsLimit": .integer(Int64(size))])
                #expect(Self.zones(page).count <= size)
                found += Self.zones(page)
                token = page["syncToken"]?.string
                isDone = page["moreComing"] == false
            }
            #expect(isDone && found.sorted() == (0..<5).map { "z\($0)" })
        }

        @Test("the default zone is not in the feed", arguments: Door.allCases)
        func defaultZone(door: Door) async throws {
            let space = try await Space(door, with: "a")
            #expect(try await space.databaseChanges()["zones"] == [])
        }

        @Test("a garbage token is BAD_REQUEST", arguments: Door.cases(["x", "AAAA", "bm9uc2Vuc2U="]))
        func garbage(door: Door, token: String) async throws {
            let answer = try await Space(door).call("changes/database", ["syncToken": .string(token)])
            expectFailure(answer, 400, "BAD_REQUEST", "Unknown sync continuation type")
        }

        @Test("another user's token is refused", arguments: Door.allCases)
        func otherUser(door: Door) async throws {
            let space = try await Space(door).newZone()
            let token = try #require(try await space.databaseChanges()["syncToken"])
            let answer = try await space.otherUser().call("changes/database", ["syncToken": token])
            expectFailure(answer, 400, "BAD_REQUEST")
        }

        @Test("changes/database is for private databases", arguments: Door.allCases)
        func publicDatabase(door: Door) async throws {
            expectFailure(try await Space(door).inPublic.call("changes/database", [:]), 400, "BAD_REQUEST", "public")
        }

        @Test("records/changes answers records, syncToken, moreComing and reverse", arguments: Door.allCases)
        func recordsChanges(door: Door) async throws {
            let space = try await Space(door).newZone()
            for name in ["a", "b"] { try await space.save(name) }
            let first = try await space.call("records/changes", ["zoneID": space.zoneID, "resultsLimit": 1])
            #expect(first.json.keys.sorted() == ["moreComing", "records", "reverse", "syncToken"])
            #expect(first.names == ["a"] && first.json["moreComing"] == true && first.json["reverse"] == false)
            let token = try #require(first.json["syncToken"])
            let second = try await space.call("records/changes", ["zoneID": space.zoneID, "syncToken": token])
            #expect(second.names == ["b"] && second.json["moreComing"] == false)
        }

        @Test(
            "records/changes takes reverse, desiredKeys, desiredRecordTypes and numbersAsStrings",
            arguments: Door.allCases)
        func recordsChangesOptions(door: Door) async throws {
            let space = try await Space(door).newZone()
            for name in ["a", "b"] { try await space.save(name, ["count": ["value": 1], "title": ["value": "x"]]) }
            try await space.save("c", type: "Bare")
            let answer = try await space.call(
                "records/changes",
                [
                    "zoneID": space.zoneID, "reverse": true, "desiredKeys": ["count"], "desiredRecordTypes": ["Item"],
                    "numbersAsStrings": true,
                ])
            #expect(answer.names == ["b", "a"] && answer.json["reverse"] == true)
            #expect(try answer.items()[0]["fields"]?.keys == ["count"])
            #expect(try answer.items()[0].field("count") == "1")
        }

        @Test("records/changes needs zoneID; its faults are the request's", arguments: Door.allCases)
        func recordsChangesFaults(door: Door) async throws {
            let space = try await Space(door)
            expectFailure(try await space.call("records/changes", [:]), 400, "BAD_REQUEST", "zoneID")
            expectFailure(
                try await space.call("records/changes", ["zoneID": ["zoneName": "none"]]), 404, "ZONE_NOT_FOUND")
            let zone = try await space.newZone()
            expectFailure(
                try await zone.call("records/changes", ["zoneID": zone.zoneID, "syncToken": "AAAA"]), 400,
                "BAD_REQUEST", "Unknown sync continuation type")
        }

        @Test("tokens of records/changes and changes/zone are the same", arguments: Door.allCases)
        func sameTokens(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let token = try #require(try await space.changes()["syncToken"])
            try await space.save("b")
            let answer = try await space.call("records/changes", ["zoneID": space.zoneID, "syncToken": token])
            #expect(answer.names == ["b"])
        }

        @Test(
            "zones/changes answers zone dictionaries, and the token as metaSyncToken and syncToken",
            arguments: Door.allCases)
        func zonesChanges(door: Door) async throws {
            let space = try await Space(door).newZone()
            let first = try await space.call("zones/changes", [:])
            let zone = try first.item("zones")
            #expect(zone["atomic"] == true && zone["syncToken"] != nil)
            #expect(first.json["metaSyncToken"] == first.json["syncToken"])
            let token = try #require(first.json["metaSyncToken"])
            for key in ["metaSyncToken", "syncToken"] {
                let next = try await space.call("zones/changes", .object([.init(key, token)]))
                #expect(next.json["zones"] == [] && next.json["moreComing"] == false)
            }
            try await space.save("a")
            #expect(try await space.call("zones/changes", ["metaSyncToken": token]).items("zones").count == 1)
        }

        @Test("the intended loop ends with exactly the server's records", arguments: Door.allCases)
        func loop(door: Door) async throws {
            let space = try await Space(door)
            let zones = try await [space.newZone("z1"), space.newZone("z2")]
            var copy: [String: [String: Int64]] = [:]
            var database: String?
            var tokens: [String: String] = [:]
            for round in 0..<4 {
                for zone in zones {
                    try await zone.save("count", (0..<3).map { ("r\($0 + round)", .integer(Int64(round))) })
                }
                try await zones[round % 2].delete("r\(round)")
                let page = try await space.databaseChanges(database)
                for name in Self.zones(page) {
                    let zone = space.changed { $0.zone = name }
                    let walk = try await Section12ChangesTests.follow(zone, from: tokens[name], ["resultsLimit": 2])
                    for entry in walk.entries {
                        copy[name, default: [:]][entry.name] = entry.field("count")?.integer
                    }
                    tokens[name] = walk.token
                }
                database = page["syncToken"]?.string
            }
            for zone in zones {
                let answer = try await zone.query()
                let truth = try answer.items().reduce(into: [String: Int64]()) {
                    $0[$1.name] = $1.field("count")?.integer
                }
                #expect(copy[zone.zone ?? ""] == truth)
            }
        }
    }
}
