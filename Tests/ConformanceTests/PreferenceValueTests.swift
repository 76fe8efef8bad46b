import RecordModel
import TestSupport
import Testing

extension Conformance {
    /// What a value of a key looks like, in requests and answers.
    @Suite("Preferences: values")
    struct PreferenceValueTests {
        private static let values: [(String, JSONValue)] = [
            ("due", ["value": -9_223_372_036_854_775_807, "type": "TIMESTAMP"]),
            ("id", 9_007_199_254_740_993), ("ratio", 0.5),
            ("user", ["value": ["id": 9_007_199_254_740_993, "name": "a"]]),
        ]
        private static let asStrings: [JSONValue] = [
            ["value": "-9223372036854775807", "type": "TIMESTAMP"], ["value": "9007199254740993", "type": "INT64"],
            ["value": "0.5", "type": "DOUBLE"],
            [
                "value": [
                    "id": ["value": "9007199254740993", "type": "INT64"], "name": ["value": "a", "type": "STRING"],
                ], "type": "DICTIONARY",
            ],
        ]

        @Test(
            "numbersAsStrings answers INT64, DOUBLE and TIMESTAMP as strings, and they are taken back exactly",
            arguments: Door.allCases)
        func numbersAsStrings(door: Door) async throws {
            let space = try await Space(door)
            #expect(try await space.set(Self.values).status == 200)
            for (action, list) in [("list", "values"), ("get", "values"), ("changes", "changes"), ("watch", "changes")]
            {
                let body: JSONValue = ["keys": ["due", "id", "ratio", "user"], "numbersAsStrings": true]
                let items = try await space.preferences(action, body).items(list)
                #expect(items.map { $0["value"] } == Self.asStrings, "\(action): \(items)")
            }
            let id = try await space.preferences("get", ["keys": ["id"]]).item("values")
            #expect(id["value"]?["value"] == 9_007_199_254_740_993)
            // What came as strings is what there is.
            let before = try await space.preferences("list").items("values").map { $0["value"] }
            let keys = Self.values.map(\.0)
            #expect(try await space.set(Array(zip(keys, Self.asStrings))).status == 200)
            #expect(try await space.preferences("list").items("values").map { $0["value"] } == before)
        }

        @Test("conflicts and streams have numbers as strings, too; anything but true or false is refused")
        func elsewhere() async throws {
            let space = try await Space(.memory)
            #expect(try await space.set([("id", 9_007_199_254_740_993)]).status == 200)
            let stale: JSONValue = [
                "writes": [["key": "id", "value": 1, "version": "0.0"]], "numbersAsStrings": true,
            ]
            let conflict = try await space.preferences("set", stale).item("conflicts")
            #expect(conflict["value"]?["value"] == "9007199254740993")
            var call = space.preferencesCall("watch", [:], method: "GET")
            call.query.append(("numbersAsStrings", "true"))
            let stream = try await MemoryStream(call, of: space.home.service)
            let change = await stream.next()?.json["changes"]?.array?.first
            #expect(change?["value"]?["value"] == "9007199254740993")
            stream.close()
            let wrong = try await space.preferences("list", ["numbersAsStrings": "yes"])
            expectFailure(wrong, 400, "BAD_REQUEST", "numbersAsStrings: ")
        }
    }
}
