import RecordModel
import Testing

extension Conformance {
    @Suite("6 Databases and zones")
    struct Section06ZoneTests {
        @Test("zoneName is _defaultZone where it is missing", arguments: Door.allCases)
        func defaultName(door: Door) async throws {
            let space = try await Space(door, with: "a")
            let answer = try await space.lookup(["a"], ["zoneID": ["ownerRecordName": .string(space.user)]])
            #expect(answer.names == ["a"])
        }

        @Test("ownerRecordName is the caller where it is missing, and may be the caller's", arguments: Door.allCases)
        func owner(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let answer = try await space.lookup(
                ["a"], ["zoneID": ["zoneName": "zone", "ownerRecordName": .string(space.user)]])
            #expect(answer.names == ["a"])
            #expect(try await space.lookup(["a"], ["zoneID": ["zoneName": "zone"]]).names == ["a"])
        }

        @Test("__defaultOwner__ is the caller", arguments: Door.allCases)
        func defaultOwner(door: Door) async throws {
            let space = try await Space(door, with: "a")
            let zone: JSONValue = ["zoneName": "_defaultZone", "ownerRecordName": "__defaultOwner__"]
            #expect(try await space.lookup(["a"], ["zoneID": zone]).names == ["a"])
        }

        @Test("answers say REGULAR_CUSTOM_ZONE, or DEFAULT_ZONE, in zoneType", arguments: Door.allCases)
        func zoneType(door: Door) async throws {
            let space = try await Space(door).newZone()
            let types = try await space.get("zones/list").items("zones").map { $0["zoneID"]?["zoneType"]?.string }
            #expect(types == ["DEFAULT_ZONE", "REGULAR_CUSTOM_ZONE"])
        }

        @Test("zoneType is ignored when clients echo it", arguments: Door.allCases)
        func echo(door: Door) async throws {
            let space = try await Space(door).newZone(with: "a")
            let zones = try await space.get("zones/list").items("zones")
            let zone = try #require(zones.last?["zoneID"])
            #expect(try await space.lookup(["a"], ["zoneID": zone]).names == ["a"])
        }

        @Test("a zone ID that is missing means the default zone", arguments: Door.allCases)
        func missing(door: Door) async throws {
            let space = try await Space(door, with: "a")
            #expect(try await space.changed { $0.zone = "_defaultZone" }.lookup("a").code == nil)
        }

        @Test("the same name in two zones is two records", arguments: Door.allCases)
        func separate(door: Door) async throws {
            let space = try await Space(door)
            let zone = try await space.newZone()
            try await space.save("a", ["title": ["value": "default"]])
            try await zone.save("a", ["title": ["value": "custom"]])
            #expect(try await space.lookup("a").field("title") == "default")
            #expect(try await zone.lookup("a").field("title") == "custom")
        }

        @Test("custom zones exist in the private database only", arguments: Door.allCases)
        func publicZones(door: Door) async throws {
            let space = try await Space(door).inPublic
            expectFailure(
                try await space.call("zones/modify", ["operations": [Space.zoneOperation("create", "z")]]), 400,
                "BAD_REQUEST", "private")
            expectFailure(try await space.changed { $0.zone = "z" }.query(), 400, "BAD_REQUEST", "_defaultZone")
        }

        @Test("the public database has the default zone only", arguments: Door.allCases)
        func publicList(door: Door) async throws {
            let zones = try await Space(door).inPublic.get("zones/list").items("zones")
            #expect(zones.map { $0["zoneID"]?["zoneName"] } == ["_defaultZone"])
        }

        @Test("the default zone always exists", arguments: Door.allCases)
        func always(door: Door) async throws {
            let space = try await Space(door)
            let zones = try await space.get("zones/list").items("zones")
            #expect(zones.map { $0["zoneID"]?["zoneName"] } == ["_defaultZone"])
            let found = try await space.call("zones/lookup", ["zones": [["zoneName": "_defaultZone"]]]).item("zones")
            #expect(found.code == nil)
        }

        @Test("the default zone can be neither created nor deleted", arguments: Door.cases(["create", "delete"]))
        func untouchable(door: Door, kind: String) async throws {
            let space = try await Space(door, with: "a")
            let answer = try await space.call(
                "zones/modify", ["operations": [Space.zoneOperation(kind, "_defaultZone")]])
            expectError(try answer.item("zones"), "BAD_REQUEST")
            #expect(try await space.lookup("a").code == nil)
        }

        @Test("atomic is ignored in the default zone", arguments: Door.allCases)
        func notAtomic(door: Door) async throws {
            let space = try await Space(door)
            let answer = try await space.modify(
                [Space.operation("create", "a"), Space.operation("update", "b", tag: "1")], ["atomic": true])
            #expect(answer.status == 200)
            #expect(try answer.items().map(\.code) == [nil, "NOT_FOUND"])
            #expect(try await space.lookup("a").code == nil)
        }

        @Test("the default zone has no change tracking", arguments: Door.allCases)
        func noFeed(door: Door) async throws {
            expectError(
                try await Space(door).changes(), "BAD_REQUEST", "AppDefaultZone does not support getChanges call")
        }

        @Test("a zone dictionary has zoneID, syncToken and atomic", arguments: Door.allCases)
        func dictionary(door: Door) async throws {
            let space = try await Space(door).newZone()
            let zone = try #require(try await space.get("zones/list").items("zones").last)
            #expect(zone.keys.sorted() == ["atomic", "syncToken", "zoneID"])
            #expect(zone["atomic"] == true)
            #expect(zone["zoneID"]?["ownerRecordName"] == .string(space.user))
        }

        @Test("atomic is false of the default zone", arguments: Door.allCases)
        func defaultDictionary(door: Door) async throws {
            let zone = try await Space(door).get("zones/list").item("zones")
            #expect(zone["atomic"] == false)
        }

        @Test("a zone's syncToken is where its feed is now", arguments: Door.allCases)
        func syncToken(door: Door) async throws {
            let space = try await Space(door).newZone(with: "before")
            let zone = try #require(try await space.get("zones/list").items("zones").last)
            try await space.save("after")
            let page = try await space.changes(try #require(zone["syncToken"]?.string))
            #expect(page["records"]?.array?.map(\.name) == ["after"])
        }

        @Test("a user record name is an underscore and 32 hexadecimal digits", arguments: Door.allCases)
        func userName(door: Door) async throws {
            let space = try await Space(door)
            #expect(space.user.hasPrefix("_"))
            #expect(space.user.dropFirst().count == 32 && space.user.dropFirst().allSatisfy { $0.isHexDigit })
        }

        @Test("a user record name is specific to the container", arguments: Door.allCases)
        func userNamePerContainer(door: Door) async throws {
            let home = try await Servers.shared.home(for: door)
            let user = try await home.makeUser()
            let other = try await Home.make(door)
            let session = try await home.admin(
                "POST", "tokens",
                ["kind": "session", "container": .string(other.container), "user": .string(user.name)])
            let name = try #require(session["userRecordName"]?.string)
            #expect(name != user.recordName && name.hasPrefix("_"))
        }

        @Test("a session is for its container", arguments: Door.allCases)
        func sessionPerContainer(door: Door) async throws {
            let space = try await Space(door)
            let other = try await Space(in: Home.make(door)).changed { $0.session = space.session }
            expectFailure(try await other.get("zones/list"), 421, "AUTHENTICATION_REQUIRED")
        }
    }
}
