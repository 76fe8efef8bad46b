import RecordModel
import Testing

extension Conformance {
    @Suite("8 Field values")
    struct Section08FieldValueTests {
        @Test("each type is saved, read, found and answered with its type", arguments: Door.cases(ValueCase.all))
        func types(door: Door, example: ValueCase) async throws {
            let space = try await Space(door)
            let fields = JSONValue.object([.init(example.field, example.input)])
            let saved = try await space.save("a", fields)
            let read = try await space.lookup("a")
            let queried = try await space.query().item()
            for record in [saved, read, queried] {
                let field = try #require(record["fields"]?[example.field], "\(record.text)")
                #expect(field["type"]?.string == example.answeredType, "\(record.text)")
                #expect(Self.same(field["value"], example.value), "\(record.text)")
                #expect(field.keys.sorted() == ["type", "value"])
            }
        }

        /// 2 and 2.0 are the same number in JSON.
        private static func same(_ left: JSONValue?, _ right: JSONValue) -> Bool {
            if left == right { return true }
            guard let left, let a = left.number, let b = right.number else { return false }
            return a == b
        }

        @Test(
            "what does not fit the schema is BAD_REQUEST, naming the field", arguments: Door.cases(ValueCase.wrong))
        func wrong(door: Door, example: ValueCase) async throws {
            let space = try await Space(door)
            let fields = JSONValue.object([.init(example.field, example.input)])
            let item = try await space.modify(Space.operation("create", "a", fields))
            expectError(item, "BAD_REQUEST", example.field)
            expectError(try await space.lookup("a"), "NOT_FOUND")
        }

        @Test("after a container's first encrypted save, lookups, queries and changes through any node show it")
        func firstEncryptedSave() async throws {
            // Each request goes to the next of three nodes, and each container's key is made by its first save.
            for _ in 0..<8 {
                let space = try await Space.own(.cluster, schema: Schemas.standard).newZone()
                let saved = try await space.save("a", ["text": ["value": "secret"]], type: "Secret")
                #expect(saved.field("text") == "secret", "\(saved.text)")
                for _ in 0..<3 {
                    let read = try await space.lookup("a")
                    #expect(read.field("text") == "secret", "\(read.text)")
                }
                let conflict = try await space.modify(
                    Space.operation("update", "a", ["text": ["value": "x"]], tag: "0.0", type: "Secret"))
                #expect(conflict["serverRecord"]?.field("text") == "secret", "\(conflict.text)")
            }
        }

        @Test(
            "encrypted fields come back in the clear, with isEncrypted",
            arguments: Door.cases(
                [
                    ("text", "secret", "STRING"), ("number", 42, "INT64"), ("ratio", 2.5, "DOUBLE"),
                    ("time", 1_700_000_000_000, "TIMESTAMP"), ("data", "aGk=", "ENCRYPTED_BYTES"),
                    ("place", ["latitude": 1.5, "longitude": 2.5], "LOCATION"), ("texts", ["a", "b"], "STRING_LIST"),
                ] as [(String, JSONValue, String)]))
        func encrypted(door: Door, example: (field: String, value: JSONValue, type: String)) async throws {
            let space = try await Space(door)
            let fields = JSONValue.object([
                .init(example.field, ["value": example.value]), .init("open", ["value": "x"]),
            ])
            let saved = try await space.save("a", fields, type: "Secret")
            let read = try await space.lookup("a")
            let found = try await space.query([Space.filter("open", "EQUALS", "x")], type: "Secret").item()
            for record in [saved, read, found] {
                let field = try #require(record["fields"]?[example.field], "\(record.text)")
                #expect(field["value"] == example.value && field["type"] == .string(example.type), "\(record.text)")
                #expect(field["isEncrypted"] == true)
            }
        }

        @Test(
            "an encrypted field may be sent marked, or with an ENCRYPTED_ type",
            arguments: Door.cases(
                [
                    ["data": ["value": "aGk=", "type": "ENCRYPTED_BYTES"]],
                    ["text": ["value": "x", "type": "STRING", "isEncrypted": true]],
                ] as [JSONValue]))
        func marked(door: Door, fields: JSONValue) async throws {
            #expect(try await Space(door).save("a", fields, type: "Secret").code == nil)
        }

        @Test("there is no Boolean type: it is answered as a number", arguments: Door.allCases)
        func booleans(door: Door) async throws {
            let record = try await Space(door).save("a", ["counts": ["value": [true, false, 5]]])
            #expect(record.field("counts") == [1, 0, 5])
        }

        @Test(
            "null clears a field, which is then absent; so does an empty object, as Apple's clients send it",
            arguments: Door.cases(
                [
                    ["title": ["value": .null]], ["title": .null], ["title": ["value": .null, "type": "STRING"]],
                    ["title": [:]],
                ] as [JSONValue]))
        func null(door: Door, fields: JSONValue) async throws {
            let space = try await Space(door)
            try await space.save("a", ["title": ["value": "x"], "count": ["value": 1]])
            let record = try await space.modify(Space.operation("forceUpdate", "a", fields))
            #expect(record.code == nil && record["fields"]?.keys == ["count"], "\(record.text)")
            #expect(try await space.lookup("a")["fields"]?.keys == ["count"])
        }

        @Test(
            "types are inferred where neither the request nor the schema has them",
            arguments: Door.cases(
                [
                    ("text", "x", "STRING"), ("whole", 1, "INT64"), ("yes", true, "INT64"), ("broken", 1.5, "DOUBLE"),
                    ("where", ["latitude": 1, "longitude": 2], "LOCATION"),
                    ("who", ["recordName": "a", "action": "NONE"], "REFERENCE"), ("many", ["x"], "STRING_LIST"),
                    ("numbers", [1, 2], "INT64_LIST"), ("fractions", [1, 2.5], "DOUBLE_LIST"),
                ] as [(String, JSONValue, String)]))
        func inference(door: Door, example: (field: String, value: JSONValue, type: String)) async throws {
            let space = try await Space.own(door)
            let record = try await space.save(
                "a", .object([.init(example.field, ["value": example.value])]), type: "Fresh")
            #expect(record["fields"]?[example.field]?["type"] == .string(example.type), "\(record.text)")
        }

        @Test("stated types count where the schema has none", arguments: Door.allCases)
        func stated(door: Door) async throws {
            let space = try await Space.own(door)
            let record = try await space.save("a", ["when": ["value": 5, "type": "TIMESTAMP"]], type: "Fresh")
            #expect(record["fields"]?["when"]?["type"] == "TIMESTAMP")
            let again = try await space.save("b", ["when": ["value": 6]], type: "Fresh")
            #expect(again["fields"]?["when"]?["type"] == "TIMESTAMP")
        }

        @Test(
            "numbersAsStrings answers INT64, DOUBLE and TIMESTAMP as strings, lists too",
            arguments: Door.cases(["numbersAsStrings", "numberAsStrings"]))
        func numbersAsStrings(door: Door, spelling: String) async throws {
            let space = try await Space(door).newZone()
            try await space.save(
                "a",
                [
                    "count": ["value": 9_007_199_254_740_993], "ratio": ["value": 0.5], "due": ["value": 5],
                    "counts": ["value": [1, 2]], "title": ["value": "x"],
                ])
            let flag = JSONValue.object([.init(spelling, true)])
            let feed = try #require(try await space.changes(nil, flag)["records"]?.array?.first)
            for record in [try await space.lookup("a", flag), try await space.query(flag).item(), feed] {
                #expect(record.field("count") == "9007199254740993", "\(record.text)")
                #expect(record.field("ratio") == "0.5" && record.field("due") == "5")
                #expect(record.field("counts") == ["1", "2"] && record.field("title") == "x")
            }
        }

        @Test("numbersAsStrings counts for modify, of the request and of an operation", arguments: Door.allCases)
        func numbersAsStringsOfModify(door: Door) async throws {
            let space = try await Space(door)
            let operation = Space.operation("forceReplace", "a", ["count": ["value": 7]])
            #expect(try await space.modify(operation, ["numbersAsStrings": true]).field("count") == "7")
            let own = operation.with(["numbersAsStrings": true])
            #expect(try await space.modify(own).field("count") == "7")
            let not = operation.with(["numbersAsStrings": false])
            #expect(try await space.modify(not, ["numbersAsStrings": true]).field("count") == 7)
        }

        @Test("desiredKeys limits fields: null and absent are all, [] is none", arguments: Door.allCases)
        func desiredKeys(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.save("a", ["title": ["value": "x"], "count": ["value": 1]])
            for (keys, expected) in [
                (.null, ["count", "title"]), ([], []), (["title"], ["title"]), (["title", "nothing"], ["title"]),
            ] as [(JSONValue, [String])] {
                let more = JSONValue.object([.init("desiredKeys", keys)])
                let feed = try #require(try await space.changes(nil, more)["records"]?.array?.first)
                for record in [try await space.lookup("a", more), try await space.query(more).item(), feed] {
                    #expect(record["fields"]?.keys.sorted() == expected, "\(record.text)")
                    #expect(!record.tag.isEmpty && record["created"] != nil && record["recordType"] == "Item")
                }
            }
        }

        @Test(
            "names of fields are a letter, then letters, digits and underscores",
            arguments: Door.cases(["1a", "a-b", "ä", "", "___x", "_a"]))
        func fieldNames(door: Door, name: String) async throws {
            let answer = try await Space(door).modify([
                Space.operation("create", "a", .object([.init(name, ["value": 1])]))
            ])
            let code = answer.status == 200 ? try answer.item().code : answer.code
            #expect(code == "BAD_REQUEST", "\(answer)")
        }
    }
}
