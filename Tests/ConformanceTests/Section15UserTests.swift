import RecordModel
import Testing

extension Conformance {
    @Suite("15 Users")
    struct Section15UserTests {
        private static func profile(_ isDiscoverable: Bool = true) -> JSONValue {
            [
                "email": .string("user\(Home.unique())@example.com"), "givenName": "Ada", "familyName": "Lovelace",
                "discoverable": .bool(isDiscoverable),
            ]
        }

        @Test("users/caller has the identity at its top and in users", arguments: Door.allCases)
        func caller(door: Door) async throws {
            let space = try await Space(door, profile: Self.profile()).inPublic
            let answer = try await space.get("users/caller")
            #expect(answer.json["userRecordName"] == .string(space.user))
            #expect(answer.json["nameComponents"] == ["givenName": "Ada", "familyName": "Lovelace"])
            let identity = try answer.item("users")
            #expect(identity["userRecordName"] == .string(space.user))
            #expect(identity["nameComponents"]?["givenName"] == "Ada")
            #expect(answer.json["discoverable"] == .bool(true) && identity["discoverable"] == nil)
            let hidden = try await Space(door, profile: Self.profile(false)).inPublic
            #expect(try await hidden.get("users/caller").json["discoverable"] == .bool(false))
        }

        @Test("the user record name is the same on every request and in every environment", arguments: Door.allCases)
        func sameName(door: Door) async throws {
            let space = try await Space(door).inPublic
            for space in [space, space, space.inProduction] {
                #expect(try await space.get("users/caller").json["userRecordName"] == .string(space.user))
            }
        }

        @Test("users/current answers userRecordName, firstName and lastName", arguments: Door.allCases)
        func current(door: Door) async throws {
            let space = try await Space(door, profile: Self.profile()).inPublic
            let json = try await space.get("users/current").json
            #expect(json["userRecordName"] == .string(space.user))
            #expect(json["firstName"] == "Ada" && json["lastName"] == "Lovelace")
        }

        @Test("users/current of a user without names has none", arguments: Door.allCases)
        func currentWithoutNames(door: Door) async throws {
            #expect(try await Space(door).inPublic.get("users/current").json.keys == ["userRecordName"])
        }

        @Test(
            "users/discover finds by address and by record name, and repeats how it was asked", arguments: Door.allCases
        )
        func discover(door: Door) async throws {
            let profile = Self.profile()
            let space = try await Space(door, profile: profile).inPublic
            let other = try await space.otherUser()
            let address = try #require(profile["email"])
            for (key, value) in [("emailAddress", address), ("userRecordName", .string(space.user))] {
                let info = JSONValue.object([.init(key, value)])
                let found = try await other.call("users/discover", ["lookupInfos": [info]]).item("users")
                #expect(found["userRecordName"] == .string(space.user))
                #expect(found["nameComponents"]?["familyName"] == "Lovelace")
                #expect(found["lookupInfo"] == info)
            }
        }

        @Test("users who are not discoverable have no names", arguments: Door.allCases)
        func hidden(door: Door) async throws {
            let space = try await Space(door, profile: Self.profile(false)).inPublic
            let answer = try await space.otherUser().call(
                "users/discover", ["lookupInfos": [["userRecordName": .string(space.user)]]])
            #expect(answer.status == 200)
            #expect(!answer.json.text.contains("Ada") && !answer.json.text.contains("Lovelace"))
        }

        @Test("deviates: users who cannot be found are left out, whether they exist or not", arguments: Door.allCases)
        func leftOut(door: Door) async throws {
            let profile = Self.profile(false)
            let space = try await Space(door, profile: profile).inPublic
            let answer = try await space.otherUser().call(
                "users/discover",
                ["lookupInfos": [["emailAddress": profile["email"] ?? .null], ["emailAddress": "nobody@example.com"]]])
            #expect(try answer.items("users").isEmpty, "\(answer)")
        }

        @Test(
            "deviates: GET users/discover and users/lookup/contacts: there is no address book, so nobody",
            arguments: Door.cases(["users/discover", "users/lookup/contacts"]))
        func contacts(door: Door, action: String) async throws {
            #expect(try await Space(door).inPublic.get(action).json == ["users": []])
        }

        @Test("users/lookup/email answers userRecordName, names and the address", arguments: Door.allCases)
        func lookupByEmail(door: Door) async throws {
            let profile = Self.profile()
            let space = try await Space(door, profile: profile).inPublic
            let answer = try await space.otherUser().call(
                "users/lookup/email", ["users": [["emailAddress": profile["email"] ?? .null]]])
            let user = try answer.item("users")
            #expect(user["userRecordName"] == .string(space.user) && user["emailAddress"] == profile["email"])
            #expect(user["firstName"] == "Ada" && user["lastName"] == "Lovelace")
        }

        @Test("users/lookup/id answers the same without the address", arguments: Door.allCases)
        func lookupByID(door: Door) async throws {
            let space = try await Space(door, profile: Self.profile()).inPublic
            let answer = try await space.otherUser().call(
                "users/lookup/id", ["users": [["userRecordName": .string(space.user)]]])
            let user = try answer.item("users")
            #expect(user["userRecordName"] == .string(space.user) && user["emailAddress"] == nil)
            #expect(user["firstName"] == "Ada")
        }

        @Test(
            "lookups without what they look for are BAD_REQUEST",
            arguments: Door.cases(
                [
                    ("users/lookup/email", ["users": [["userRecordName": "_x"]]]),
                    ("users/lookup/id", ["users": [["emailAddress": "x@y"]]]),
                    ("users/lookup/email", [:]), ("users/discover", [:]), ("users/discover", ["lookupInfos": [[:]]]),
                ] as [(String, JSONValue)]))
        func faults(door: Door, example: (action: String, body: JSONValue)) async throws {
            expectFailure(try await Space(door).inPublic.call(example.action, example.body), 400, "BAD_REQUEST")
        }

        @Test("each user has a record of type Users in the public database under that name", arguments: Door.allCases)
        func userRecord(door: Door) async throws {
            let space = try await Space(door).inPublic
            _ = try await space.get("users/caller")
            let record = try await space.lookup(space.user)
            #expect(record["recordType"] == "Users" && record.name == space.user, "\(record.text)")
            #expect(try await space.otherUser().lookup(space.user)["recordType"] == "Users")
        }

        @Test("a user writes the own record", arguments: Door.allCases)
        func ownRecord(door: Door) async throws {
            let space = try await Space.own(door).inPublic
            let record = try await space.modify(
                Space.operation("forceUpdate", space.user, ["nickname": ["value": "ada"]], type: "Users"))
            #expect(record.field("nickname") == "ada", "\(record.text)")
        }

        @Test("nobody writes another's record", arguments: Door.allCases)
        func othersRecord(door: Door) async throws {
            let space = try await Space(door).inPublic
            _ = try await space.get("users/caller")
            let other = try await space.otherUser()
            let item = try await other.modify(Space.operation("forceUpdate", space.user, type: "Users"))
            expectError(item, "ACCESS_DENIED")
        }

        @Test("nobody deletes a user's record", arguments: Door.allCases)
        func deletion(door: Door) async throws {
            let space = try await Space(door).inPublic
            _ = try await space.get("users/caller")
            let item = try await space.modify(Space.operation("forceDelete", space.user))
            #expect(item.code == "ACCESS_DENIED" || item.code == "BAD_REQUEST", "\(item.text)")
            #expect(try await space.lookup(space.user).code == nil)
        }

        @Test("roles of a user are not the user's to change", arguments: Door.allCases)
        func roles(door: Door) async throws {
            let space = try await Space(door).inPublic
            let item = try await space.modify(
                Space.operation("forceUpdate", space.user, ["roles": ["value": [1]]], type: "Users"))
            #expect(item.code == "ACCESS_DENIED" || item.code == "BAD_REQUEST", "\(item.text)")
        }

        @Test("Users is fetched by name, never queried", arguments: Door.allCases)
        func query(door: Door) async throws {
            expectFailure(try await Space(door).inPublic.query(type: "Users"), 400, "BAD_REQUEST")
        }

        @Test("records of type Users cannot be made under other names", arguments: Door.allCases)
        func otherNames(door: Door) async throws {
            let space = try await Space(door).inPublic
            let answer = try await space.modify([Space.operation("create", "someone\(Home.unique())", type: "Users")])
            let code = answer.status == 200 ? try answer.item().code : answer.code
            #expect(code == "ACCESS_DENIED" || code == "BAD_REQUEST", "\(answer)")
        }
    }
}
