import RecordModel
import TestSupport
import Testing

extension Conformance {
    /// More of the reference's cases of section 2.5, by their numbers.
    @Suite("14 Subscriptions and push: what is told")
    struct Section14NotificationTests {
        private static func query(_ id: String, type: String = "Item", info: JSONValue) -> JSONValue {
            [
                "subscriptionID": .string(id), "subscriptionType": "query", "query": ["recordType": .string(type)],
                "firesOn": ["create", "update", "delete"], "notificationInfo": info,
            ]
        }

        @Test("6. one modify of 50 records tells of the zone, whose changes are then the 50", arguments: Door.allCases)
        func batch(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.subscribe(
                ["subscriptionID": "z", "subscriptionType": "zone", "zoneID": ["zoneName": "zone"]])
            let operations = (0..<50).map { Space.operation("create", "r\($0)") }
            let saved = try await space.call(
                "records/modify", ["operations": .array(operations), "zoneID": ["zoneName": "zone"]])
            #expect(try saved.items("records").count == 50)
            let told = try await space.notifications(atLeast: 1)
            let change = try #require(told.first?["payload"]?["ck"]?["fet"])
            #expect(change["zid"] == "zone")
            let page = try await space.call(
                "changes/zone", ["zones": [["zoneID": ["zoneName": change["zid"] ?? .null]]]])
            #expect(try page.item("zones")["records"]?.array?.count == 50)
        }

        @Test("10. three additionalFields come as plain values, a fourth is refused", arguments: Door.allCases)
        func fields(door: Door) async throws {
            let space = try await Space(door).newZone()
            let names: [JSONValue] = ["title", "count", "place"]
            try await space.subscribe(Self.query("q", info: ["additionalFields": .array(names)]))
            try await space.save(
                "a",
                [
                    "title": ["value": "x"], "count": ["value": 7],
                    "place": ["value": ["latitude": 1.5, "longitude": 2.5]], "notes": ["value": "not shown"],
                ])
            let told = try await space.notifications(atLeast: 1).first?["payload"]?["ck"]?["qry"]?["af"]
            #expect(told == ["title": "x", "count": 7, "place": ["latitude": 1.5, "longitude": 2.5]])
            let more = Self.query("r", info: ["additionalFields": .array(names + ["ratio"])])
            let answer = try await space.modifySubscription("create", more)
            #expect(answer.code == "BAD_REQUEST" && answer.reason.contains("additionalFields"), "\(answer)")
        }

        @Test("13. a role that was taken away shows nothing of what was told before", arguments: Door.allCases)
        func revoked(door: Door) async throws {
            let schema = """
                DEFINE SCHEMA CREATE ROLE Editor; RECORD TYPE Draft (
                    "___recordID" REFERENCE QUERYABLE, title STRING, GRANT READ, CREATE TO "Editor",
                    GRANT CREATE, READ, WRITE TO "_creator", GRANT CREATE TO "_icloud");
                """
            let home = try await Home.make(door, schema: schema)
            let author = try await Space(in: home).inPublic
            let editor = try await home.makeUser()
            var reader = author
            (reader.session, reader.user) = (editor.session, editor.recordName)
            _ = try await home.admin(
                "POST", "roles/members",
                ["container": .string(home.container), "user": .string(editor.name), "role": "Editor"])
            try await reader.subscribe(Self.query("q", type: "Draft", info: ["additionalFields": ["title"]]))
            try await author.save("a", ["title": ["value": "secret"]], type: "Draft")
            let told = try await reader.notifications(atLeast: 1)
            #expect(told.first?["payload"]?["ck"]?["qry"]?["af"] == ["title": "secret"])
            _ = try await home.admin(
                "DELETE", "roles/members?container=\(home.container)&role=Editor&user=\(editor.name)")
            #expect(try await reader.push("changes").items("notifications").isEmpty)
        }

        @Test("15. an argument of a text whose field the record lacks is empty", arguments: Door.allCases)
        func absent(door: Door) async throws {
            let space = try await Space(door).newZone()
            let info: JSONValue = ["alertLocalizationKey": "key", "alertLocalizationArgs": ["title", "plain"]]
            try await space.subscribe(Self.query("q", info: info))
            try await space.save("a", ["title": ["value": "x"]])
            let alert = try await space.notifications(atLeast: 1).first?["payload"]?["aps"]?["alert"]
            #expect(alert?["loc-args"] == ["x", ""])
        }

        @Test("what a deleted user subscribed to goes, and nobody else's")
        func deletedUser() async throws {
            let node = try await SingleNode.start()
            let home = try await Home.make(on: MemoryService(node: node), schema: Schemas.standard)
            let (stays, goes) = (try await home.makeUser(), try await home.makeUser())
            var space = try await Space(in: home).inPublic
            for user in [stays, goes] {
                (space.session, space.user) = (user.session, user.recordName)
                try await space.subscribe(Self.query("q", info: [:]))
            }
            (space.session, space.user) = (stays.session, stays.recordName)
            try await space.save("a", [:])
            #expect(try await space.notifications(atLeast: 1).count == 1)
            _ = try await home.admin("DELETE", "users?name=\(goes.name)")
            #expect(await node.forgetDeletedSubscribers())
            #expect(try await node.subscribers(of: home.container) == [stays.recordName])
            try await space.save("b", [:])
            #expect(try await space.notifications(atLeast: 2).count == 2)
            // What was saved since finds no copy of the subscription that went, either.
            #expect(try await node.subscribers(of: home.container) == [stays.recordName])
            try await node.stop()
        }

        @Test("a subscription of more than 16 KB is refused", arguments: Door.allCases)
        func size(door: Door) async throws {
            let space = try await Space(door).newZone()
            let filters = (0..<3).map { number -> JSONValue in
                let value = JSONValue.string(String(repeating: "\(number)", count: 6_000))
                return [
                    "comparator": "NOT_EQUALS", "fieldName": "title", "fieldValue": ["value": value, "type": "STRING"],
                ]
            }
            let subscription = Self.query("q", info: [:]).with(
                ["query": ["recordType": "Item", "filterBy": .array(filters)]])
            let refused = try await space.modifySubscription("create", subscription)
            #expect(refused.code == "BAD_REQUEST" && refused.reason.contains("16384"), "\(refused)")
        }
    }
}
