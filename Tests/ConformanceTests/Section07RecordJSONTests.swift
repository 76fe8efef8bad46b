import RecordModel
import Testing

extension Conformance {
    @Suite("7 Record JSON")
    struct Section07RecordJSONTests {
        @Test("recordName is unique in its zone", arguments: Door.allCases)
        func unique(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            try await space.save("a")
            #expect(try await space.query().names == ["a"])
        }

        @Test("without recordName, a create gets a UUID from the server", arguments: Door.allCases)
        func generated(door: Door) async throws {
            let space = try await Space(door)
            let items = try await space.modify([
                Space.operation("create", nil), Space.operation("create", nil),
            ]).items()
            for item in items {
                let parts = item.name.split(separator: "-")
                #expect(parts.map(\.count) == [8, 4, 4, 4, 12] && parts.joined().allSatisfy { $0.isHexDigit })
            }
            #expect(items[0].name != items[1].name)
            #expect(try await space.lookup(items[0].name).code == nil)
        }

        @Test(
            "operations other than create need recordName",
            arguments: Door.cases(["update", "forceUpdate", "replace", "forceReplace", "delete", "forceDelete"]))
        func nameNeeded(door: Door, kind: String) async throws {
            let answer = try await Space(door).modify([Space.operation(kind, nil, tag: "1")])
            expectFailure(answer, 400, "BAD_REQUEST", "recordName")
        }

        @Test(
            "recordType is needed where the operation may create",
            arguments: Door.cases(["create", "forceUpdate", "forceReplace"]))
        func typeNeeded(door: Door, kind: String) async throws {
            let answer = try await Space(door).modify([Space.operation(kind, "a", type: nil)])
            expectFailure(answer, 400, "BAD_REQUEST", "recordType")
        }

        @Test(
            "recordChangeTag is needed for update, replace and delete",
            arguments: Door.cases(["update", "replace", "delete"]))
        func tagNeeded(door: Door, kind: String) async throws {
            expectFailure(
                try await Space(door).modify([Space.operation(kind, "a")]), 400, "BAD_REQUEST", "recordChangeTag")
        }

        @Test("recordChangeTag changes with every write, and not with reads", arguments: Door.allCases)
        func tags(door: Door) async throws {
            let space = try await Space(door)
            let first = try await space.save("a")
            #expect(try await space.lookup("a").tag == first.tag)
            let second = try await space.save("a")
            #expect(first.tag != second.tag)
            #expect(!first.tag.isEmpty && first.tag.count < 40)
        }

        @Test("fields default to {}", arguments: Door.allCases)
        func noFields(door: Door) async throws {
            let space = try await Space(door)
            let record = try await space.modify(Space.operation("create", "a"))
            #expect(record["fields"] == [:])
        }

        @Test("on create, fields absent or null means all fields null", arguments: Door.allCases)
        func nullFields(door: Door) async throws {
            let record = try await Space(door).modify(Space.operation("create", "a", .null))
            #expect(record.code == nil && record["fields"] == [:], "\(record.text)")
        }

        @Test("pluginFields is accepted, and {} in answers", arguments: Door.allCases)
        func pluginFields(door: Door) async throws {
            let record = try await Space(door).save("a", more: ["pluginFields": [:]])
            #expect(record["pluginFields"] == [:])
        }

        @Test("created and modified have timestamp, userRecordName and deviceID", arguments: Door.allCases)
        func stamps(door: Door) async throws {
            let space = try await Space(door)
            let record = try await space.save("a")
            for key in ["created", "modified"] {
                let stamp = try #require(record[key])
                #expect(stamp.keys.sorted() == ["deviceID", "timestamp", "userRecordName"])
                #expect(stamp["userRecordName"] == .string(space.user))
                #expect(try #require(stamp["timestamp"]?.integer) > 1_600_000_000_000)
                #expect(stamp["deviceID"]?.string?.isEmpty == false)
            }
        }

        @Test("created stays, modified moves on", arguments: Door.allCases)
        func stampsOverTime(door: Door) async throws {
            let space = try await Space(door)
            let first = try await space.save("a")
            let second = try await space.save("a")
            #expect(second["created"] == first["created"])
            let times = [first, second].map { $0["modified"]?["timestamp"]?.integer ?? 0 }
            #expect(times[0] <= times[1])
        }

        @Test("modified names the user who wrote last, created who made it", arguments: Door.allCases)
        func stampsOfUsers(door: Door) async throws {
            let home = try await Home.make(
                door,
                schema: """
                    DEFINE SCHEMA RECORD TYPE Open (
                        text STRING, GRANT READ, WRITE TO "_world", GRANT CREATE, WRITE TO "_icloud");
                    """)
            let space = try await Space(in: home).inPublic
            let other = try await space.otherUser()
            try await space.save("a", type: "Open")
            let record = try await other.save("a", type: "Open")
            #expect(record["created"]?["userRecordName"] == .string(space.user))
            #expect(record["modified"]?["userRecordName"] == .string(other.user))
        }

        @Test("what clients send as created and modified is ignored", arguments: Door.allCases)
        func stampsAreTheServers(door: Door) async throws {
            let record = try await Space(door).save(
                "a", more: ["created": ["timestamp": 5, "userRecordName": "_x"], "modified": ["timestamp": 5]])
            #expect(record["created"]?["timestamp"] != 5 && record["modified"]?["timestamp"] != 5)
        }

        @Test("deleted is false on live records", arguments: Door.allCases)
        func live(door: Door) async throws {
            #expect(try await Space(door).save("a")["deleted"] == false)
        }

        @Test("a record carries its zoneID in zone-wide queries", arguments: Door.allCases)
        func zoneID(door: Door) async throws {
            let space = try await Space(door)
            try await space.newZone().save("a")
            let record = try await space.query(["zoneWide": true]).item()
            #expect(record["zoneID"]?["zoneName"] == "zone")
        }

        @Test("a zoneID inside a record is taken and ignored", arguments: Door.allCases)
        func ignoredZoneID(door: Door) async throws {
            let space = try await Space(door)
            let zone = try await space.newZone()
            try await zone.save("a", more: ["zoneID": ["zoneName": "elsewhere"]])
            #expect(try await zone.lookup("a").code == nil)
        }

        @Test("parent is {recordName}, in the same zone, and comes back", arguments: Door.allCases)
        func parent(door: Door) async throws {
            let space = try await Space(door).newZone(with: "p")
            let record = try await space.save("c", more: ["parent": ["recordName": "p"]])
            #expect(record["parent"]?["recordName"] == "p")
            #expect(try await space.lookup("c")["parent"]?["recordName"] == "p")
            #expect(record["fields"] == [:])
        }

        @Test("an update that names no parent keeps it; null clears it", arguments: Door.allCases)
        func clearedParent(door: Door) async throws {
            let space = try await Space(door).newZone(with: "p")
            try await space.save("c", more: ["parent": ["recordName": "p"]])
            let kept = try await space.modify(Space.operation("forceUpdate", "c", ["title": ["value": "x"]]))
            #expect(kept["parent"]?["recordName"] == "p", "\(kept.text)")
            let cleared = try await space.modify(Space.operation("forceUpdate", "c", more: ["parent": .null]))
            #expect(cleared["parent"] == nil, "\(cleared.text)")
        }

        @Test("desiredKeys does not hide metadata, parent among it", arguments: Door.allCases)
        func parentIsMetadata(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.save("c", more: ["parent": ["recordName": "p"]])
            #expect(try await space.lookup("c", ["desiredKeys": []])["parent"]?["recordName"] == "p")
        }

        @Test("createShortGUID: false is taken", arguments: Door.allCases)
        func noShortGUID(door: Door) async throws {
            #expect(try await Space(door).save("a", more: ["createShortGUID": false]).code == nil)
        }

        @Test(
            "deviates: sharing is a later issue: createShortGUID, forRecord and share types are refused",
            arguments: Door.cases(
                [
                    ["createShortGUID": true], ["forRecord": ["recordName": "a"]], ["recordType": "cloudkit.share"],
                    ["recordType": "cloudKit.share"],
                ] as [JSONValue]))
        func sharing(door: Door, more: JSONValue) async throws {
            let answer = try await Space(door).modify([Space.operation("create", "a", more: more)])
            expectFailure(answer, 400, "BAD_REQUEST", "not built")
        }

        @Test("what other clients send with records is ignored", arguments: Door.allCases)
        func unknownMembers(door: Door) async throws {
            let record = try await Space(door).save(
                "a", more: ["stableUrl": ["routingKey": "x"], "chainPCSMinorVersion": 1, "deleted": false])
            #expect(record.code == nil)
        }

        @Test("a deletion answers with recordName and deleted: true", arguments: Door.allCases)
        func tombstone(door: Door) async throws {
            let space = try await Space(door)
            let record = try await space.save("a")
            let item = try await space.modify(Space.operation("delete", "a", tag: record.tag))
            #expect(item["recordName"] == "a" && item["deleted"] == true)
            #expect(item.keys.sorted() == ["deleted", "recordName"])
        }

        @Test("a tombstone in a feed has a null recordType, deleted and a recordChangeTag", arguments: Door.allCases)
        func feedTombstone(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.save("a", ["title": ["value": "x"]])
            try await space.delete("a")
            let entry = try #require(try await space.changes()["records"]?.array?.first)
            #expect(entry.keys.sorted() == ["deleted", "recordChangeTag", "recordName", "recordType"])
            #expect(entry["recordType"] == .null && entry["deleted"] == true && !entry.tag.isEmpty)
        }
    }
}
