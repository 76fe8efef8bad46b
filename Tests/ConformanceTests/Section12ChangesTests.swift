import RecordModel
import Testing

extension Conformance {
    @Suite("12 Changes and sync: changes/zone")
    struct Section12ChangesTests {
        /// Follows a feed to its end: every entry in order, and the last token.
        static func follow(
            _ space: Space, from token: String? = nil, _ more: JSONValue = [:]
        ) async throws -> (entries: [JSONValue], token: String) {
            var entries: [JSONValue] = []
            var token = token
            for _ in 0..<200 {
                let page = try await space.changes(token, more)
                try #require(page.code == nil, "\(page.text)")
                entries += page["records"]?.array ?? []
                token = page["syncToken"]?.string
                if page["moreComing"] == false { return (entries, token ?? "") }
            }
            throw EndlessFeed()
        }

        struct EndlessFeed: Error {}

        @Test("tokens are padded base64", arguments: Door.allCases)
        func base64(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let database = try await space.databaseChanges()
            for token in [try await space.changes()["syncToken"], database["syncToken"]] {
                let text = try #require(token?.string)
                #expect(Base64.decode(text) != nil && text.utf8.count % 4 == 0 && !text.isEmpty)
            }
        }

        @Test("each entry has zoneID, records, moreComing and syncToken", arguments: Door.allCases)
        func members(door: Door) async throws {
            let space = try await Space(door).newZone()
            let page = try await space.changes()
            for key in ["zoneID", "records", "moreComing", "syncToken"] { #expect(page[key] != nil, "\(page.text)") }
            #expect(page["zoneID"]?["zoneName"] == "zone")
        }

        @Test("the first call without a token returns everything from the beginning", arguments: Door.allCases)
        func beginning(door: Door) async throws {
            let space = try await Space(door).newZone()
            for name in ["a", "b", "c"] { try await space.save(name) }
            #expect(try await Self.follow(space).entries.map(\.name) == ["a", "b", "c"])
        }

        @Test("an empty or null token counts as none", arguments: Door.cases(["", .null] as [JSONValue]))
        func emptyToken(door: Door, token: JSONValue) async throws {
            let space = try await Space(door).newZone(with: "a")
            #expect(try await space.changes(nil, ["syncToken": token])["records"]?.array?.count == 1)
        }

        @Test("from a token: what changed since, and nothing else", arguments: Door.allCases)
        func since(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let token = try await Self.follow(space).token
            try await space.save("b")
            #expect(try await Self.follow(space, from: token).entries.map(\.name) == ["b"])
        }

        @Test(
            "caught up, a further call gives no records, moreComing: false and the same token again",
            arguments: Door.allCases)
        func caughtUp(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let token = try await Self.follow(space).token
            let page = try await space.changes(token)
            #expect(page["records"] == [] && page["moreComing"] == false)
            #expect(page["syncToken"] == .string(token))
        }

        @Test("each changed record appears once, in its latest state, at its latest position", arguments: Door.allCases)
        func once(door: Door) async throws {
            let space = try await Space(door).newZone()
            for (name, count) in [("a", 1), ("b", 1), ("a", 2)] {
                try await space.save(name, ["count": ["value": .integer(Int64(count))]])
            }
            let entries = try await Self.follow(space).entries
            #expect(entries.map(\.name) == ["b", "a"])
            #expect(entries.last?.field("count") == 2)
        }

        @Test("deletions are tombstones", arguments: Door.allCases)
        func deletions(door: Door) async throws {
            let space = try await Space(door).newZone()
            for name in ["a", "b"] { try await space.save(name) }
            let token = try await Self.follow(space).token
            try await space.delete("a")
            let entries = try await Self.follow(space, from: token).entries
            #expect(entries.map(\.name) == ["a"] && entries[0]["deleted"] == true)
        }

        @Test(
            "a record saved and then deleted before the first fetch appears as a tombstone only",
            arguments: Door.allCases)
        func savedAndDeleted(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            try await space.delete("a")
            let entries = try await Self.follow(space).entries
            #expect(entries.count == 1 && entries[0]["deleted"] == true)
        }

        @Test("a record deleted and made again is a record", arguments: Door.allCases)
        func madeAgain(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let token = try await Self.follow(space).token
            try await space.delete("a")
            try await space.save("a")
            let entries = try await Self.follow(space, from: token).entries
            #expect(entries.count == 1 && entries[0]["deleted"] == false)
        }

        @Test(
            "pages of every size together hold everything, and intermediate tokens can be resumed",
            arguments: Door.cases([1, 2, 3, 7, 200]))
        func pages(door: Door, size: Int) async throws {
            let space = try await Space(door).newZone()
            try await space.save("count", (0..<9).map { ("r\($0)", .integer(Int64($0))) })
            try await space.delete("r3")
            let limit: JSONValue = ["resultsLimit": .integer(Int64(size))]
            let all = try await Self.follow(space, limit).entries
            #expect(Set(all.map(\.name)).count == 9 && all.count == 9)
            let first = try await space.changes(nil, limit)
            #expect((first["records"]?.array?.count ?? 0) <= size)
            let token = try #require(first["syncToken"]?.string)
            for _ in 0..<2 {
                let rest = try await Self.follow(space, from: token, limit).entries
                #expect((first["records"]?.array ?? []) + rest == all)
            }
        }

        private static func follow(
            _ space: Space, _ more: JSONValue
        ) async throws -> (entries: [JSONValue], token: String) { try await follow(space, from: nil, more) }

        @Test("keys beside zones are defaults; a zone's own win", arguments: Door.allCases)
        func defaults(door: Door) async throws {
            let space = try await Space(door)
            for zone in ["z1", "z2"] {
                let zone = try await space.newZone(zone)
                for name in ["a", "b"] { try await zone.save(name, ["title": ["value": "x"], "count": ["value": 1]]) }
            }
            let answer = try await space.call(
                "changes/zone",
                [
                    "zones": [
                        ["zoneID": ["zoneName": "z1"]],
                        ["zoneID": ["zoneName": "z2"], "resultsLimit": 2, "desiredKeys": ["count"]],
                    ], "resultsLimit": 1, "desiredKeys": ["title"],
                ])
            let zones = try answer.items("zones")
            #expect(zones.map { $0["records"]?.array?.count } == [1, 2])
            #expect(zones.map { $0["records"]?.array?.first?["fields"]?.keys } == [["title"], ["count"]])
        }

        @Test("several zones are answered in request order, each alone", arguments: Door.allCases)
        func severalZones(door: Door) async throws {
            let space = try await Space(door)
            try await space.newZone("z1").save("a")
            try await space.newZone("z2").save("b")
            let answer = try await space.call(
                "changes/zone",
                ["zones": .array(["z2", "none", "z1"].map { ["zoneID": ["zoneName": .string($0)]] })])
            #expect(answer.status == 200)
            let zones = try answer.items("zones")
            #expect(zones.map { $0["zoneID"]?["zoneName"]?.string } == ["z2", "none", "z1"])
            #expect(zones.map(\.code) == [nil, "ZONE_NOT_FOUND", nil])
        }

        @Test("the tokens of zones are not interchangeable", arguments: Door.allCases)
        func otherZone(door: Door) async throws {
            let space = try await Space(door)
            let one = try await space.newZone("z1")
            let two = try await space.newZone("z2")
            let token = try await Self.follow(one).token
            expectError(try await two.changes(token), "BAD_REQUEST", "Unknown sync continuation type")
        }

        @Test("database tokens and zone tokens are not interchangeable", arguments: Door.allCases)
        func otherKind(door: Door) async throws {
            let space = try await Space(door).newZone()
            let zone = try #require(try await space.changes()["syncToken"])
            let database = try #require(try await space.databaseChanges()["syncToken"]?.string)
            expectError(try await space.changes(database), "BAD_REQUEST", "Unknown sync continuation type")
            let answer = try await space.call("changes/database", ["syncToken": zone])
            expectFailure(answer, 400, "BAD_REQUEST", "Unknown sync continuation type")
        }

        @Test(
            "a garbage token is a BAD_REQUEST item inside HTTP 200",
            arguments: Door.cases(["x", "not base64!", "AAAA", "bm9uc2Vuc2U="]))
        func garbage(door: Door, token: String) async throws {
            let space = try await Space(door).newZone()
            expectError(try await space.changes(token), "BAD_REQUEST", "Unknown sync continuation type")
        }

        @Test("reverse: newest first", arguments: Door.allCases)
        func reverse(door: Door) async throws {
            let space = try await Space(door).newZone()
            for name in ["a", "b", "c"] { try await space.save(name) }
            #expect(try await Self.follow(space, from: nil, ["reverse": true]).entries.map(\.name) == ["c", "b", "a"])
        }

        @Test("the direction is part of the token: a walk that began in reverse goes on so", arguments: Door.allCases)
        func direction(door: Door) async throws {
            let space = try await Space(door).newZone()
            for name in ["a", "b", "c", "d"] { try await space.save(name) }
            let first = try await space.changes(nil, ["reverse": true, "resultsLimit": 2])
            #expect(first["records"]?.array?.map(\.name) == ["d", "c"])
            let rest = try await Self.follow(space, from: first["syncToken"]?.string, ["resultsLimit": 1])
            #expect(rest.entries.map(\.name) == ["b", "a"])
            try await space.save("e")
            #expect(try await Self.follow(space, from: rest.token).entries.map(\.name) == ["e"])
        }

        @Test("what is written during a reverse walk comes after it", arguments: Door.allCases)
        func reverseWhileWriting(door: Door) async throws {
            let space = try await Space(door).newZone()
            for name in ["a", "b", "c"] { try await space.save(name) }
            let first = try await space.changes(nil, ["reverse": true, "resultsLimit": 1])
            try await space.save("a")
            try await space.save("d")
            var seen = first["records"]?.array?.map(\.name) ?? []
            let walk = try await Self.follow(space, from: first["syncToken"]?.string, ["resultsLimit": 1])
            seen += walk.entries.map(\.name)
            seen += try await Self.follow(space, from: walk.token).entries.map(\.name)
            #expect(Set(seen) == ["a", "b", "c", "d"], "\(seen)")
        }

        @Test("desiredRecordTypes: only those types", arguments: Door.allCases)
        func types(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            try await space.save("b", type: "Bare")
            let walk = try await Self.follow(space, from: nil, ["desiredRecordTypes": ["Bare"]])
            #expect(walk.entries.map(\.name) == ["b"])
            #expect(try await Self.follow(space, from: nil, ["desiredRecordTypes": []]).entries.isEmpty)
        }

        @Test("a page may be empty while more is coming; the walk ends nevertheless", arguments: Door.allCases)
        func emptyPages(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.save("count", (0..<5).map { ("r\($0)", .integer(Int64($0))) })
            try await space.save("b", type: "Bare")
            let more: JSONValue = ["desiredRecordTypes": ["Bare"], "resultsLimit": 1]
            #expect(try await Self.follow(space, from: nil, more).entries.map(\.name) == ["b"])
        }

        @Test("a token of a zone deleted and made anew is refused with the reason", arguments: Door.allCases)
        func recreated(door: Door) async throws {
            let space = try await Space(door).newZone()
            let token = try await Self.follow(space).token
            _ = try await space.call("zones/modify", ["operations": [Space.zoneOperation("delete", "zone")]])
            expectError(try await space.changes(token), "ZONE_NOT_FOUND")
            _ = try await space.newZone()
            expectError(try await space.changes(token), "BAD_REQUEST", "without a token")
            #expect(try await space.changes()["records"] == [])
        }

        @Test(
            "zones is needed, and zoneID in each",
            arguments: Door.cases([[:], ["zones": [[:]]], ["zones": 3]] as [JSONValue]))
        func needed(door: Door, body: JSONValue) async throws {
            expectFailure(try await Space(door).call("changes/zone", body), 400, "BAD_REQUEST", "zone")
        }

        @Test("the public database has no feed", arguments: Door.allCases)
        func publicFeed(door: Door) async throws {
            expectError(try await Space(door).inPublic.changes(), "BAD_REQUEST")
        }
    }
}
