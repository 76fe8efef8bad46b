import RecordModel
import Testing

extension Conformance {
    @Suite("13 Zones")
    struct Section13ZoneEndpointTests {
        private static func names(_ answer: Answer) throws -> [String] {
            try answer.items("zones").compactMap { $0["zoneID"]?["zoneName"]?.string }
        }

        @Test("zones/list has every zone, the default zone included", arguments: Door.allCases)
        func list(door: Door) async throws {
            let space = try await Space(door)
            _ = try await space.newZone("b")
            _ = try await space.newZone("a")
            #expect(try Self.names(try await space.get("zones/list")) == ["_defaultZone", "a", "b"])
        }

        @Test("zones/lookup answers in request order; missing ones are ZONE_NOT_FOUND items", arguments: Door.allCases)
        func lookup(door: Door) async throws {
            let space = try await Space(door).newZone("a")
            let answer = try await space.call(
                "zones/lookup", ["zones": [["zoneName": "x"], ["zoneName": "a"], ["zoneName": "_defaultZone"]]])
            #expect(try Self.names(answer) == ["x", "a", "_defaultZone"])
            #expect(try answer.items("zones").map(\.code) == ["ZONE_NOT_FOUND", nil, nil])
        }

        @Test(
            "zones/modify answers one entry for each operation, in order; all are attempted", arguments: Door.allCases)
        func modify(door: Door) async throws {
            let space = try await Space(door)
            let answer = try await space.call(
                "zones/modify",
                [
                    "operations": [
                        Space.zoneOperation("create", "a"), Space.zoneOperation("create", "_defaultZone"),
                        Space.zoneOperation("create", "b"),
                    ]
                ])
            #expect(answer.status == 200)
            #expect(try answer.items("zones").map(\.code) == [nil, "BAD_REQUEST", nil])
            #expect(try Self.names(try await space.get("zones/list")) == ["_defaultZone", "a", "b"])
        }

        @Test("creating an existing zone returns it, with its records", arguments: Door.allCases)
        func existing(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            _ = try await space.newZone()
            #expect(try await space.lookup("a").code == nil)
        }

        @Test("deleting a zone deletes its records", arguments: Door.allCases)
        func deletion(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let answer = try await space.call("zones/modify", ["operations": [Space.zoneOperation("delete", "zone")]])
            let item = try answer.item("zones")
            #expect(item["deleted"] == true && item["zoneID"]?["zoneName"] == "zone")
            expectFailure(try await space.lookup(["a"]), 404, "ZONE_NOT_FOUND")
            _ = try await space.newZone()
            expectError(try await space.lookup("a"), "NOT_FOUND")
        }

        @Test("deleting a zone that is not there", arguments: Door.allCases)
        func missing(door: Door) async throws {
            let answer = try await Space(door).call(
                "zones/modify", ["operations": [Space.zoneOperation("delete", "none")]])
            expectError(try answer.item("zones"), "ZONE_NOT_FOUND")
        }

        @Test("a zone made anew gives other change tags", arguments: Door.allCases)
        func tags(door: Door) async throws {
            let space = try await Space(door).newZone()
            let record = try await space.save("a")
            _ = try await space.call("zones/modify", ["operations": [Space.zoneOperation("delete", "zone")]])
            _ = try await space.newZone()
            try await space.save("a")
            let answer = try await space.modify([Space.operation("update", "a", tag: record.tag)], ["atomic": false])
            expectError(try answer.item(), "CONFLICT")
        }

        @Test("zones of other users cannot be made or looked up", arguments: Door.allCases)
        func others(door: Door) async throws {
            let space = try await Space(door)
            let owner = JSONValue.string(try await space.otherUser().user)
            let zone: JSONValue = ["zoneName": "z", "ownerRecordName": owner]
            let made = try await space.call(
                "zones/modify", ["operations": [["operationType": "create", "zone": ["zoneID": zone]]]])
            expectError(try made.item("zones"), "ACCESS_DENIED")
            expectError(try await space.call("zones/lookup", ["zones": [zone]]).item("zones"), "ACCESS_DENIED")
        }

        @Test(
            "what is no operation is BAD_REQUEST",
            arguments: Door.cases(
                [
                    [:], ["operations": [[:]]],
                    ["operations": [["operationType": "rename", "zone": ["zoneID": ["zoneName": "a"]]]]],
                    ["operations": [["operationType": "create"]]],
                    ["operations": [["operationType": "create", "zone": ["zoneID": [:]]]]],
                ] as [JSONValue]))
        func faults(door: Door, body: JSONValue) async throws {
            expectFailure(try await Space(door).call("zones/modify", body), 400, "BAD_REQUEST")
        }

        @Test("deviates: a zones/modify repeated with its Idempotency-Key is applied once", arguments: Door.allCases)
        func idempotency(door: Door) async throws {
            let space = try await Space(door)
            let headers = [("Idempotency-Key", IdempotencyKeys.next())]
            let body: JSONValue = ["operations": [Space.zoneOperation("create", "a")]]
            let first = try await space.call("zones/modify", body, headers: headers)
            _ = try await space.call("zones/modify", ["operations": [Space.zoneOperation("delete", "a")]])
            let second = try await space.call("zones/modify", body, headers: headers)
            #expect(first.json == second.json)
            #expect(try Self.names(try await space.get("zones/list")) == ["_defaultZone"])
        }
    }
}
