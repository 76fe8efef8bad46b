import RecordModel
import TestSupport
import Testing

extension Conformance {
    /// The numbers are those of the cases of the reference on subscriptions, section 2.5.
    @Suite("14 Subscriptions and push")
    struct Section14SubscriptionTests {
        private static func database(_ id: String) -> JSONValue {
            ["subscriptionID": .string(id), "subscriptionType": "database"]
        }

        private static func zone(_ id: String, _ zone: String = "zone") -> JSONValue {
            ["subscriptionID": .string(id), "subscriptionType": "zone", "zoneID": ["zoneName": .string(zone)]]
        }

        @Test("what was saved is listed and looked up whole; a deletion answers a bare ID", arguments: Door.allCases)
        func whole(door: Door) async throws {
            let space = try await Space(door).newZone()
            let info: JSONValue = [
                "alertBody": "new", "shouldBadge": true, "category": "c", "unknown": ["kept": 1],
            ]
            let full = Self.zone("z").with(["notificationInfo": info])
            try await space.subscribe(full)
            try await space.subscribe(Self.database("d"))
            let listed = try await space.get("subscriptions/list").items("subscriptions")
            #expect(listed.map { $0["subscriptionID"]?.string } == ["d", "z"])
            #expect(listed.last?["notificationInfo"] == info)
            #expect(listed.last?["zoneID"]?["zoneName"] == "zone")
            let looked = try await space.call(
                "subscriptions/lookup", ["subscriptions": [["subscriptionID": "none"], ["subscriptionID": "z"]]]
            ).items("subscriptions")
            #expect(looked.first?.code == "NOT_FOUND" && looked.last == listed.last)
            let gone = try await space.modifySubscription("delete", ["subscriptionID": "z"])
            #expect(gone == ["subscriptionID": "z"])
            #expect(try await space.get("subscriptions/list").items("subscriptions").count == 1)
        }

        @Test("an administrator lists what a user is told of, without the values that queries compare with")
        func administration() async throws {
            let home = try await Home.make(
                .memory, schema: "DEFINE SCHEMA RECORD TYPE Note ( text STRING QUERYABLE, GRANT READ TO \"_world\" );")
            let user = try await home.makeUser()
            var space = try await Space(in: home)
            (space.session, space.user) = (user.session, user.recordName)
            try await space.subscribe(Self.database("d"))
            let filter = Space.filter("text", "EQUALS", "secret")
            try await space.inPublic.subscribe([
                "subscriptionID": "q", "subscriptionType": "query", "firesOn": ["create"],
                "query": ["recordType": "Note", "filterBy": [filter]],
            ])
            let path = "subscriptions?container=\(home.container)&user="
            let answer = try await home.admin("GET", path + user.name)
            let found = answer["subscriptions"]?.array ?? []
            #expect(found.map { $0["subscriptionID"]?.string } == ["d", "q"])
            #expect(found.map { $0["database"]?.string } == ["private", "public"])
            #expect(found.last?["fields"] == ["text"] && found.last?["firesOn"] == ["create"])
            #expect(!answer.text.contains("secret"))
            let production = try await home.admin("GET", path + user.name + "&environment=production")
            #expect(production["subscriptions"]?.array == [])
            expectFailure(try await home.adminCall("GET", path + "nobody"), 404, "NOT_FOUND")
            let one = path + user.name + "&id=q&database="
            let tested = one.replacing("subscriptions?", with: "subscriptions/test?")
            expectFailure(try await home.adminCall("POST", tested + "private"), 404, "NOT_FOUND")
            _ = try await home.admin("POST", tested + "public")
            let page = try await space.push("changes")
            let payload = page.json["notifications"]?.array?.last?["payload"]
            #expect(payload?["zonekeeperTest"] == .bool(true) && payload?["ck"]?["qry"]?["sid"] == "q", "\(page)")
            expectFailure(try await home.adminCall("DELETE", one + "private"), 404, "NOT_FOUND")
            _ = try await home.admin("DELETE", one + "public")
            let left = try await home.admin("GET", path + user.name)["subscriptions"]?.array
            #expect(left?.map { $0["subscriptionID"]?.string } == ["d"])
            // Other tests are told of there, too.
            let told = try await home.admin("GET", "audit?order=newest&limit=1000")["records"]?.array ?? []
            #expect(told.contains { $0["action"]?.string == "subscription.delete" })
        }

        @Test("an administrator lists what all users are told of, page by page, and counts it by type")
        func administrationOfAll() async throws {
            let home = try await Home.make(
                .memory, schema: "DEFINE SCHEMA RECORD TYPE Note ( text STRING QUERYABLE, GRANT READ TO \"_world\" );")
            var names: Set<String> = []
            for _ in 0..<3 {
                let user = try await home.makeUser()
                names.insert(user.name)
                var space = try await Space(in: home)
                (space.session, space.user) = (user.session, user.recordName)
                try await space.subscribe(Self.database("d"))
                try await space.inPublic.subscribe([
                    "subscriptionID": "q", "subscriptionType": "query", "firesOn": ["create"],
                    "query": ["recordType": "Note", "filterBy": [Space.filter("text", "EQUALS", "secret")]],
                ])
            }
            let path = "subscriptions?container=\(home.container)"
            var (after, found, pages) = ("", [JSONValue](), 0)
            repeat {
                let page = try await home.admin("GET", path + "&limit=1&after=" + after)
                found += page["subscriptions"]?.array ?? []
                after = page["next"]?.string ?? ""
                pages += 1
            } while !after.isEmpty
            #expect(pages >= 3)
            #expect(Set(found.compactMap { $0["user"]?.string }) == names && found.count == 6)
            #expect(Set(found.compactMap { $0["userRecordName"]?.string }).count == 3)
            let counted = try await home.admin("GET", path + "&types=true&limit=1")
            #expect(counted["next"] == nil, "a page has one user, and all are counted")
            #expect(
                counted["types"] == [
                    ["subscriptionType": "database", "database": "private", "subscriptions": 3, "users": 3],
                    [
                        "subscriptionType": "query", "database": "public", "recordType": "Note", "subscriptions": 3,
                        "users": 3,
                    ],
                ])
            #expect(counted["subscriptions"] == nil)
            let part = try await home.admin("GET", path + "&types=true&limit=1&seconds=0")
            #expect(part["types"]?.array?.allSatisfy { $0["users"] == 1 } == true && part["next"] != nil)
            let one = try await home.admin("GET", path + "&types=true&user=" + (names.first ?? ""))
            #expect(one["types"]?.array?.map { $0["subscriptions"] } == [1, 1] && one["next"] == nil)
            let production = try await home.admin("GET", path + "&environment=production")
            #expect(production["subscriptions"]?.array == [] && production["next"] == nil)
            expectFailure(try await home.adminCall("GET", path + "&after=elsewhere"), 400, "BAD_REQUEST")
        }

        @Test("6. a zone subscription tells of a batch at least once, with zone and database", arguments: Door.allCases)
        func zone(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.subscribe(Self.zone("z"))
            for name in ["a", "b"] { try await space.save(name) }
            let told = try await space.notifications(atLeast: 2)
            #expect(told.map { $0["seq"] } == [1, 2])
            let ck = try #require(told.first?["payload"]?["ck"])
            #expect(ck["fet"]?["sid"] == "z" && ck["fet"]?["zid"] == "zone" && ck["fet"]?["dbs"] == 1)
            #expect(ck["fet"]?["zoid"] == .string(space.user) && ck["cid"] == .string(space.container))
        }

        @Test("7. a database subscription tells of zones that are made, changed and deleted", arguments: Door.allCases)
        func database(door: Door) async throws {
            let space = try await Space(door)
            try await space.subscribe(Self.database("d"))
            let zone = try await space.newZone()
            try await zone.save("a")
            _ = try await space.call("zones/modify", ["operations": [Space.zoneOperation("delete", "zone")]])
            let told = try await space.notifications(atLeast: 3)
            #expect(told.count == 3)
            for entry in told { #expect(entry["payload"]?["ck"]?["met"]?["zid"] == "zone", "\(entry)") }
        }

        private func deleteZone(in space: Space) async throws {
            _ = try await space.call("zones/modify", ["operations": [Space.zoneOperation("delete", "zone")]])
        }

        @Test("a deleted zone takes its subscriptions along, once they have told of that", arguments: Door.allCases)
        func deletedZone(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.subscribe(Self.zone("z"))
            try await space.subscribe(Self.query("q", ["zoneID": ["zoneName": "zone"]]))
            try await space.subscribe(Self.database("d"))
            try await deleteZone(in: space)
            let told = try await space.notifications(atLeast: 2).compactMap { $0["payload"]?["ck"] }
            #expect(told.map { $0["fet"]?["sid"] } == ["z", nil] && told.map { $0["met"]?["sid"] } == [nil, "d"])
            let left = try await space.get("subscriptions/list").items("subscriptions")
            #expect(left.map { $0["subscriptionID"] } == ["d"])
            _ = try await space.newZone()
            try await space.subscribe(Self.zone("y"))
        }

        @Test("a subscription that is saved again for the next zone of the name stays", arguments: Door.allCases)
        func renewedZone(door: Door) async throws {
            let space = try await Space(door).newZone()
            let query = Self.query("q", ["zoneID": ["zoneName": "zone"]])
            for subscription in [query, Self.zone("z")] { try await space.subscribe(subscription) }
            try await deleteZone(in: space)
            _ = try await space.newZone()
            try await space.subscribe(query)
            try await space.subscribe(Self.zone("y"))
            try await save("a", "wanted", in: space)
            // What comes of the deletion comes before what comes of the record.
            var (told, count): ([JSONValue], Int) = ([], 1)
            while !told.contains(where: { $0["payload"]?["ck"]?["qry"]?["sid"] == "q" }) {
                told = try await space.notifications(atLeast: count)
                count = told.count + 1
            }
            let left = try await space.get("subscriptions/list").items("subscriptions")
            #expect(left.map { $0["subscriptionID"] } == ["q", "y"])
        }

        @Test("8. a client is not told of its own changes; the same user's other client is", arguments: Door.allCases)
        func ownClient(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.subscribe(Self.zone("z"))
            let operation = Space.operation("forceUpdate", "a", [:])
            var call = space.request(
                "records/modify", ["operations": [operation], "zoneID": ["zoneName": "zone"]])
            call.query.append(("clientId", "phone"))
            #expect(try await space.send(call).status == 200)
            #expect(try await space.notifications(atLeast: 1, client: "desk").count == 1)
            #expect(try await space.push("changes", ["clientId": "phone"]).items("notifications").isEmpty)
        }

        @Test("9. the same ID replaces; equal content under another is refused, naming it", arguments: Door.allCases)
        func duplicate(door: Door) async throws {
            let space = try await Space(door)
            try await space.subscribe(Self.database("d"))
            try await space.subscribe(Self.database("d"))
            let twin = try await space.modifySubscription("create", Self.database("e"))
            #expect(twin.code == "EXISTS" && twin["reason"] == "subscription is duplicate of 'd'")
            #expect(try await space.get("subscriptions/list").items("subscriptions").count == 1)
        }

        @Test("10. additionalFields on a zone subscription are refused", arguments: Door.allCases)
        func fields(door: Door) async throws {
            let space = try await Space(door).newZone()
            let subscription = Self.zone("z").with(["notificationInfo": ["additionalFields": ["text"]]])
            let answer = try await space.modifySubscription("create", subscription)
            #expect(answer.code == "BAD_REQUEST" && answer["subscriptionID"] == "z")
            #expect(answer.reason.contains("cannot add additionalFields to this subscription type"), "\(answer)")
        }

        @Test("an operation that cannot be read fails alone, whatever is wrong with it", arguments: Door.allCases)
        func alone(door: Door) async throws {
            let space = try await Space(door).newZone()
            func create(_ subscription: JSONValue) -> JSONValue {
                ["operationType": "create", "subscription": subscription]
            }
            let answer = try await space.call(
                "subscriptions/modify",
                [
                    "operations": [
                        create(Self.zone("z")), create(Self.zone("w").with(["notificationInfo": ["title": 1]])),
                        7, ["operationType": "drop", "subscription": ["subscriptionID": "d"]],
                        create(Self.database("z")), create(["subscriptionID": "x"]), create(Self.database("d")),
                    ]
                ])
            let items = try answer.items("subscriptions")
            #expect(items.map { $0["subscriptionID"] } == ["z", "w", nil, "d", "z", "x", "d"], "\(answer)")
            let areRefused = items.map { $0.code == "BAD_REQUEST" }
            #expect(areRefused == [false, true, true, true, true, true, false], "\(answer)")
            #expect(items[1].reason.contains("operations[1].subscription.notificationInfo.title"), "\(items[1])")
            #expect(items[4].reason.contains("operations[0] is for 'z' too"), "\(items[4])")
            let list = try await space.get("subscriptions/list").items("subscriptions")
            #expect(list.map { $0["subscriptionID"] } == ["d", "z"])
        }

        private static func query(_ id: String, _ more: JSONValue = [:]) -> JSONValue {
            let query: JSONValue = [
                "recordType": "Item",
                "filterBy": [
                    [
                        "comparator": "EQUALS", "fieldName": "title",
                        "fieldValue": ["value": "wanted", "type": "STRING"],
                    ]
                ],
            ]
            return JSONValue.object([
                .init("subscriptionID", .string(id)), .init("subscriptionType", "query"), .init("query", query),
                .init("firesOn", ["create", "update", "delete"]),
            ]).with(more)
        }

        private func save(_ name: String, _ text: String, in space: Space) async throws {
            try await space.save(name, ["title": ["value": .string(text)]])
        }

        @Test("1 to 3. a query tells of what matches, with what happened to it", arguments: Door.allCases)
        func matching(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await save("early", "wanted", in: space)
            try await space.subscribe(Self.query("q", ["notificationInfo": ["additionalFields": ["title"]]]))
            try await save("a", "wanted", in: space)
            try await save("b", "other", in: space)
            try await save("a", "other", in: space)
            try await save("b", "wanted", in: space)
            _ = try await space.modify([Space.operation("forceDelete", "b")])
            let told = try await space.notifications(atLeast: 3).compactMap { $0["payload"]?["ck"]?["qry"] }
            #expect(told.map { $0["rid"] } == ["a", "b", "b"] && told.map { $0["fo"] } == [1, 2, 3])
            #expect(told.map { $0["af"] } == [["title": "wanted"], ["title": "wanted"], nil])
            #expect(told.allSatisfy { $0["sid"] == "q" && $0["zid"] == "zone" && $0["dbs"] == 1 })
        }

        @Test("4. several that match give as many entries with one nid", arguments: Door.allCases)
        func several(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.subscribe(Self.query("q"))
            try await space.subscribe(Self.query("r", ["firesOn": ["create"]]))
            try await save("a", "wanted", in: space)
            let told = try await space.notifications(atLeast: 2).compactMap { $0["payload"]?["ck"] }
            #expect(Set(told.compactMap { $0["qry"]?["sid"]?.string }) == ["q", "r"])
            #expect(Set(told.compactMap { $0["nid"]?.string }).count == 1)
        }

        @Test("5. firesOnce: a second change is silent, and the list lacks it", arguments: Door.allCases)
        func once(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.subscribe(Self.query("q", ["firesOnce": true]))
            try await save("a", "wanted", in: space)
            try await save("b", "wanted", in: space)
            try await space.subscribe(Self.zone("z"))
            try await save("c", "wanted", in: space)
            let told = try await space.notifications(atLeast: 2)
            #expect(told.count == 2 && told.first?["payload"]?["ck"]?["qry"]?["rid"] == "a", "\(told)")
            let left = try await space.get("subscriptions/list").items("subscriptions")
            #expect(left.map { $0["subscriptionID"] } == ["z"])
        }

        @Test("a query without an event, of an unknown type or without its index is refused", arguments: Door.allCases)
        func wrongQuery(door: Door) async throws {
            let space = try await Space(door)
            for (more, member) in [
                (["firesOn": []], "firesOn"), (["query": [:]], "query.recordType"),
                (["notificationInfo": ["additionalFields": ["a", "b", "c", "d"]]], "additionalFields"),
            ] as [(JSONValue, String)] {
                let answer = try await space.modifySubscription("create", Self.query("q", more))
                #expect(answer.code == "BAD_REQUEST" && answer.reason.contains(member), "\(answer)")
            }
            let absent = try await space.modifySubscription(
                "create", Self.query("q", ["query": ["recordType": "Absent"]]))
            #expect(absent.code == "BAD_REQUEST" && absent.reason.contains("Absent"))
        }

        @Test("a long poll waits for the next notification, and its token goes on from there", arguments: Door.allCases)
        func watch(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.subscribe(Self.zone("z"))
            let token = try #require(try await space.push("watch").json["syncToken"])
            async let waiting = space.push("watch", ["syncToken": token, "timeout": 20])
            try await space.save("a")
            let answer = try await waiting
            #expect(try answer.items("notifications").count == 1, "\(answer)")
            let next = try #require(answer.json["syncToken"])
            let rest = try await space.push("watch", ["syncToken": next, "timeout": 0])
            #expect(try rest.items("notifications").isEmpty && rest.json["syncToken"] == next)
        }

        @Test("who begins at the end is given its token, and is told only of what comes next", arguments: Door.allCases)
        func fromEnd(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.subscribe(Self.zone("z"))
            let beginning = try #require(try await space.push("changes", ["fromEnd": true]).json["syncToken"])
            try await space.save("a")
            // Where a token is given, it counts.
            let first: JSONValue = ["syncToken": beginning, "fromEnd": true, "timeout": 20]
            #expect(try await space.push("watch", first).items("notifications").map { $0["seq"] } == [1])
            for action in ["changes", "watch"] {
                let end = try await space.push(action, ["fromEnd": true])
                #expect(try end.items("notifications").isEmpty && end.json["moreComing"] == false, "\(end)")
                let token = try #require(end.json["syncToken"])
                try await space.save("\(action)")
                let told = try await space.push("watch", ["syncToken": token, "timeout": 20])
                #expect(try told.items("notifications").count == 1, "\(told)")
            }
            #expect(try await space.push("changes").items("notifications").count == 3)
            expectFailure(try await space.push("changes", ["fromEnd": 1]), 400, "BAD_REQUEST", "fromEnd")
        }

        @Test("a stream goes on with each notification, and after the token that a browser comes again with")
        func stream() async throws {
            let space = try await Space(.memory).newZone()
            try await space.subscribe(Self.zone("z"))
            var call = space.request("", method: "GET")
            call.path = "/push/1/\(space.container)/development/watch"
            let stream = try await MemoryStream(call, of: space.home.service)
            for fault in Home.contract.faults(
                method: "GET", path: call.path, status: 200, type: "text/event-stream", body: [])
            {
                Issue.record("\(fault)")
            }
            let empty = try #require(await stream.next())
            #expect(empty.name == "notifications" && empty.json["notifications"] == [])
            try await space.save("a")
            let first = try #require(await stream.next())
            #expect(first.json["notifications"]?.array?.count == 1 && first.id == first.json["syncToken"]?.string)
            stream.close()
            try await space.save("b")
            call.headers.append(("Last-Event-ID", first.id ?? ""))
            let again = try await MemoryStream(call, of: space.home.service)
            #expect(await again.next()?.json["notifications"]?.array?.first?["seq"] == 2)
            again.close()
            call.headers.removeLast()
            call.query.append(("fromEnd", "true"))
            let late = try await MemoryStream(call, of: space.home.service)
            #expect(await late.next()?.json["notifications"] == [])
            try await space.save("c")
            #expect(await late.next()?.json["notifications"]?.array?.map { $0["seq"] } == [3])
            late.close()
        }

        @Test("a stream's token moves on with changes of the reader's own device, which are not shown")
        func ownChangesMoveToken() async throws {
            let space = try await Space(.memory).newZone()
            try await space.subscribe(Self.zone("z"))
            var call = space.request("", method: "GET")
            call.path = "/push/1/\(space.container)/development/watch"
            call.query.append(("clientId", "phone"))
            let stream = try await MemoryStream(call, of: space.home.service)
            let empty = try #require(await stream.next())
            var own = space.request(
                "records/modify",
                ["operations": [Space.operation("forceUpdate", "a", [:])], "zoneID": ["zoneName": "zone"]])
            own.query.append(("clientId", "phone"))
            #expect(try await space.send(own).status == 200)
            let moved = try #require(await stream.next())
            #expect(moved.json["notifications"] == [] && moved.id != empty.id)
            stream.close()
            let later = try await space.push("changes", ["syncToken": .string(moved.id ?? "")])
            #expect(try later.items("notifications").isEmpty)
        }

        @Test("another user's notifications are not seen, and its token is not taken", arguments: Door.allCases)
        func others(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.subscribe(Self.zone("z"))
            try await space.save("a")
            _ = try await space.notifications(atLeast: 1)
            let token = try #require(try await space.push("changes").json["syncToken"])
            let other = try await space.otherUser()
            #expect(try await other.push("changes").items("notifications").isEmpty)
            expectFailure(try await other.push("changes", ["syncToken": token]), 400, "BAD_REQUEST", "expired")
            expectFailure(try await space.push("changes", ["syncToken": "AAAA"]), 400, "BAD_REQUEST")
        }

        @Test("what cannot be subscribed to is refused with a reason", arguments: Door.allCases)
        func refused(door: Door) async throws {
            let space = try await Space(door)
            let absent = try await space.modifySubscription("create", Self.zone("z", "none"))
            #expect(absent.code == "ZONE_NOT_FOUND")
            let standard = try await space.modifySubscription("create", Self.zone("z", "_defaultZone"))
            #expect(standard.code == "BAD_REQUEST")
            let open = try await space.inPublic.modifySubscription("create", Self.database("d"))
            #expect(open.code == "BAD_REQUEST")
            expectFailure(
                try await space.anonymous.inPublic.get("subscriptions/list"), 421, "AUTHENTICATION_REQUIRED")
            let empty = try await space.modifySubscription("create", [:])
            #expect(empty.code == "BAD_REQUEST")
            #expect(empty.reason.contains("operations[0].subscription.subscriptionType"), "\(empty)")
        }
    }
}

extension Space {
    /// One operation of subscriptions/modify.
    /// - Returns: its result.
    func modifySubscription(_ kind: String, _ subscription: JSONValue) async throws -> JSONValue {
        try await call(
            "subscriptions/modify",
            ["operations": [["operationType": .string(kind), "subscription": subscription]]]
        ).item("subscriptions")
    }

    func subscribe(_ subscription: JSONValue) async throws {
        let saved = try await modifySubscription("create", subscription)
        try #require(saved.code == nil, "\(saved)")
    }

    func push(_ action: String, _ body: JSONValue = [:]) async throws -> Answer {
        var call = request("", body)
        call.path = "/push/1/\(container)/\(environment)/\(action)"
        return try await send(call)
    }

    /// The user's notifications, once there are so many.
    func notifications(atLeast count: Int, client: String? = nil) async throws -> [JSONValue] {
        var body: JSONValue = ["timeout": 20]
        if let client { body = body.with(["clientId": .string(client)]) }
        var found: [JSONValue] = []
        repeat {
            let page = try await push("watch", body)
            try #require(page.status == 200, "\(page)")
            found += try page.items("notifications")
            body = body.with(["syncToken": page.json["syncToken"] ?? .null])
        } while found.count < count
        return found
    }
}
