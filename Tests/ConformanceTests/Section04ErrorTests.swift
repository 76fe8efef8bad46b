import RecordModel
import Testing

extension Conformance {
    @Suite("4 Errors")
    struct Section04ErrorTests {
        @Test("a failed request has uuid, serverErrorCode and reason at its top", arguments: Door.allCases)
        func requestLevel(door: Door) async throws {
            let answer = try await Space(door).call("records/query", [:])
            expectFailure(answer, 400, "BAD_REQUEST")
            #expect(answer.json.keys.sorted() == ["reason", "serverErrorCode", "uuid"])
        }

        @Test("a failed record has recordName, reason and serverErrorCode in its place", arguments: Door.allCases)
        func recordItem(door: Door) async throws {
            let item = try await Space(door).lookup("missing")
            #expect(item.keys.sorted() == ["reason", "recordName", "serverErrorCode"])
            #expect(item.name == "missing")
        }

        @Test("a failed zone has zoneID, reason and serverErrorCode in its place", arguments: Door.allCases)
        func zoneItem(door: Door) async throws {
            let item = try await Space(door).call("zones/lookup", ["zones": [["zoneName": "missing"]]]).item("zones")
            expectError(item, "ZONE_NOT_FOUND")
            #expect(item["zoneID"]?["zoneName"] == "missing")
        }

        @Test("a failed zone of changes/zone has zoneID, reason and serverErrorCode", arguments: Door.allCases)
        func feedItem(door: Door) async throws {
            let item = try await Space(door).changed { $0.zone = "missing" }.changes()
            expectError(item, "ZONE_NOT_FOUND")
            #expect(item["zoneID"]?["zoneName"] == "missing")
            #expect(!item.reason.isEmpty)
        }

        @Test("successful items never have serverErrorCode", arguments: Door.allCases)
        func successes(door: Door) async throws {
            let space = try await Space(door).newZone()
            let record = try await space.save("a")
            #expect(!record.keys.contains("serverErrorCode"))
            for zone in try await space.get("zones/list").items("zones") { #expect(zone.code == nil) }
        }

        @Test("results come in request order, errors among them", arguments: Door.allCases)
        func order(door: Door) async throws {
            let space = try await Space(door)
            for name in ["a", "b", "c"] { try await space.save(name) }
            let items = try await space.lookup(["c", "x", "a", "y", "b"]).items()
            #expect(items.map(\.name) == ["c", "x", "a", "y", "b"])
            #expect(items.map(\.code) == [nil, "NOT_FOUND", nil, "NOT_FOUND", nil])
        }

        @Test("item failures ride in HTTP 200", arguments: Door.allCases)
        func itemsInSuccess(door: Door) async throws {
            let space = try await Space(door)
            #expect(try await space.lookup(["x"]).status == 200)
            #expect(try await space.modify([Space.operation("update", "x", tag: "1")]).status == 200)
        }

        @Test("the expected array is there, also when it is empty", arguments: Door.allCases)
        func emptyArrays(door: Door) async throws {
            let space = try await Space(door)
            #expect(try await space.lookup([]).json["records"] == [])
            #expect(try await space.modify([]).json["records"] == [])
            #expect(try await space.query().json["records"] == [])
            #expect(try await space.call("zones/lookup", ["zones": []]).json["zones"] == [])
            #expect(try await space.call("zones/modify", ["operations": []]).json["zones"] == [])
            #expect(try await space.call("changes/zone", ["zones": []]).json["zones"] == [])
            #expect(try await space.databaseChanges()["zones"] == [])
            #expect(try await space.inPublic.call("users/discover", ["lookupInfos": []]).json["users"] == [])
        }

        @Test("an item that cannot succeed when repeated has no retryAfter", arguments: Door.allCases)
        func noRetry(door: Door) async throws {
            #expect(try await Space(door).lookup("x")["retryAfter"] == nil)
        }

        @Test("no code is sent that CloudKit does not document")
        func codes() {
            let documented: Set<String> = [
                "ACCESS_DENIED", "ATOMIC_ERROR", "AUTHENTICATION_FAILED", "AUTHENTICATION_REQUIRED", "BAD_REQUEST",
                "CONFLICT", "EXISTS", "INTERNAL_ERROR", "NOT_FOUND", "QUOTA_EXCEEDED", "THROTTLED", "TRY_AGAIN_LATER",
                "VALIDATING_REFERENCE_ERROR", "ZONE_NOT_FOUND",
            ]
            #expect(Set(ErrorCode.allCases.map(\.rawValue)) == documented)
        }

        @Test(
            "each code has its HTTP status",
            arguments: [
                ("ACCESS_DENIED", 403), ("ATOMIC_ERROR", 400), ("AUTHENTICATION_FAILED", 401),
                ("AUTHENTICATION_REQUIRED", 421), ("BAD_REQUEST", 400), ("CONFLICT", 409), ("EXISTS", 409),
                ("INTERNAL_ERROR", 500), ("NOT_FOUND", 404), ("QUOTA_EXCEEDED", 413), ("THROTTLED", 429),
                ("TRY_AGAIN_LATER", 503), ("VALIDATING_REFERENCE_ERROR", 412), ("ZONE_NOT_FOUND", 404),
            ])
        func statuses(code: String, status: Int) {
            #expect(ErrorCode(rawValue: code)?.httpStatus == status)
        }

        @Test("ACCESS_DENIED: another user's private zone, 403", arguments: Door.allCases)
        func accessDenied(door: Door) async throws {
            let space = try await Space(door)
            let other = try await space.otherUser()
            let answer = try await space.call(
                "records/query",
                ["zoneID": ["zoneName": "z", "ownerRecordName": .string(other.user)], "query": ["recordType": "Item"]])
            expectFailure(answer, 403, "ACCESS_DENIED")
        }

        @Test("ACCESS_DENIED: writing another user's public record, as an item", arguments: Door.allCases)
        func accessDeniedItem(door: Door) async throws {
            let space = try await Space(door).inPublic
            let name = "mine\(Home.unique())"
            try await space.save(name)
            let other = try await space.otherUser()
            expectError(try await other.modify(Space.operation("forceUpdate", name)), "ACCESS_DENIED")
            expectError(try await other.modify(Space.operation("forceDelete", name)), "ACCESS_DENIED")
            #expect(try await space.lookup(name).code == nil)
        }

        @Test("ATOMIC_ERROR: an atomic batch failed, 400", arguments: Door.allCases)
        func atomicError(door: Door) async throws {
            let space = try await Space(door).newZone()
            let answer = try await space.modify([
                Space.operation("create", "a"), Space.operation("update", "b", tag: "1"),
            ])
            expectFailure(answer, 400, "ATOMIC_ERROR")
        }

        @Test("ZONE_NOT_FOUND: a request for a zone that is not there, 404", arguments: Door.allCases)
        func zoneNotFound(door: Door) async throws {
            let space = try await Space(door).changed { $0.zone = "missing" }
            expectFailure(try await space.query(), 404, "ZONE_NOT_FOUND")
            expectFailure(try await space.modify([Space.operation("create", "a")]), 404, "ZONE_NOT_FOUND")
            expectFailure(try await space.lookup(["a"]), 404, "ZONE_NOT_FOUND")
        }

        @Test("QUOTA_EXCEEDED: there is no room, 413; here of preferences", arguments: Door.allCases)
        func quotaExceeded(door: Door) async throws {
            let space = try await Space(door)
            let value = JSONValue.string(String(repeating: "x", count: Limits.storeBytesMax))
            let writes: JSONValue = [["key": "large", "value": value], ["key": "more", "value": "than fits"]]
            var call = space.request("", ["writes": writes])
            call.path = "/kv/1/\(space.container)/development/set"
            expectFailure(try await space.send(call), 413, "QUOTA_EXCEEDED")
        }

        @Test("reason: Record not found, of a lookup", arguments: Door.allCases)
        func recordNotFound(door: Door) async throws {
            expectError(try await Space(door).lookup("x"), "NOT_FOUND", "Record not found")
        }

        @Test("reason: client oplock error updating record, of a stale tag", arguments: Door.allCases)
        func oplock(door: Door) async throws {
            let space = try await Space(door)
            let record = try await space.save("a")
            try await space.save("a")
            expectError(
                try await space.modify(Space.operation("update", "a", tag: record.tag)), "CONFLICT",
                "client oplock error updating record")
        }

        @Test("reason: record to insert already exists, of a create", arguments: Door.allCases)
        func exists(door: Door) async throws {
            let space = try await Space(door, with: "a")
            expectError(
                try await space.modify(Space.operation("create", "a")), "EXISTS", "record to insert already exists")
        }

        @Test(
            "reason: Field 'x' is not marked queryable, or sortable",
            arguments: Door.cases([
                ("plain", "queryable"), ("onlySortable", "queryable"), ("plain", "sortable"),
                ("onlyQueryable", "sortable"),
            ]))
        func unindexed(door: Door, example: (field: String, index: String)) async throws {
            let space = try await Space(door)
            let value: JSONValue = example.field == "plain" ? "x" : 1
            let answer =
                example.index == "queryable"
                ? try await space.query([Space.filter(example.field, "EQUALS", value)])
                : try await space.query(sort: [["fieldName": .string(example.field)]])
            expectFailure(
                answer, 400, "BAD_REQUEST", "Field '\(example.field)' is not marked \(example.index)")
        }

        @Test("reason: Unknown sync continuation type, of a garbage syncToken", arguments: Door.allCases)
        func garbageToken(door: Door) async throws {
            let space = try await Space(door).newZone()
            expectError(try await space.changes("bm9uc2Vuc2U="), "BAD_REQUEST", "Unknown sync continuation type")
        }

        @Test("reason: Invalid value, ... type T, of a wrong field type", arguments: Door.allCases)
        func invalidValue(door: Door) async throws {
            let item = try await Space(door).modify(Space.operation("create", "a", ["count": ["value": "many"]]))
            expectError(item, "BAD_REQUEST", "Invalid value")
            #expect(item.reason.contains("INT64") && item.reason.contains("count"))
        }

        @Test("reason: client knowledge differs from server knowledge, of a zone made anew", arguments: Door.allCases)
        func recreated(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let token = try #require(try await space.changes()["syncToken"]?.string)
            _ = try await space.call("zones/modify", ["operations": [Space.zoneOperation("delete", "zone")]])
            _ = try await space.newZone()
            expectError(
                try await space.changes(token), "BAD_REQUEST", "client knowledge differs from server knowledge")
        }

        @Test("reason: record type and not found, of a query for an unknown type", arguments: Door.allCases)
        func unknownType(door: Door) async throws {
            let answer = try await Space(door).query(type: "Ghost")
            #expect(answer.status == 400 || answer.status == 404)
            #expect(answer.reason.lowercased().contains("record type") && answer.reason.contains("not found"))
        }

        @Test(
            "reason: Attempt to save encrypted data in non encrypted field type",
            arguments: Door.cases(
                [
                    ["value": "x", "isEncrypted": true], ["value": "eA==", "type": "ENCRYPTED_BYTES"],
                ] as [JSONValue]))
        func encryptedInPlain(door: Door, value: JSONValue) async throws {
            let space = try await Space(door)
            let field: String = value["type"] == nil ? "title" : "data"
            let item = try await space.modify(Space.operation("create", "a", .object([.init(field, value)])))
            expectError(item, "BAD_REQUEST", "Attempt to save encrypted data in non encrypted field type")
        }

        @Test("deviates: CONFLICT and EXISTS items carry the server's record as serverRecord", arguments: Door.allCases)
        func serverRecord(door: Door) async throws {
            let space = try await Space(door)
            let first = try await space.save("a", ["title": ["value": "old"]])
            let second = try await space.save("a", ["title": ["value": "new"]])
            for operation in [Space.operation("update", "a", tag: first.tag), Space.operation("create", "a")] {
                let item = try await space.modify(operation)
                #expect(item["serverRecord"]?.tag == second.tag, "\(item.text)")
                #expect(item["serverRecord"]?.field("title") == "new", "\(item.text)")
            }
        }
    }
}
