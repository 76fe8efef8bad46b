import RecordModel
import Testing

extension Conformance {
    /// `kvs.md`, section 2: each limit at its edge, over HTTPS too.
    @Suite("Preferences: limits")
    struct PreferenceLimitTests {
        private func expectLimit(
            _ answer: Answer, _ limit: String, actual: Int64, max: Int64, key: String? = nil, status: Int = 413,
            sourceLocation: SourceLocation = #_sourceLocation
        ) {
            expectFailure(
                answer, status, status == 413 ? "QUOTA_EXCEEDED" : "BAD_REQUEST", sourceLocation: sourceLocation)
            #expect(answer.json["limit"]?.string == limit, "\(answer)", sourceLocation: sourceLocation)
            #expect(answer.json["actual"]?.integer == actual, "\(answer)", sourceLocation: sourceLocation)
            #expect(answer.json["max"]?.integer == max, "\(answer)", sourceLocation: sourceLocation)
            if let key { #expect(answer.json["key"]?.string == key, "\(answer)", sourceLocation: sourceLocation) }
        }

        private func text(_ bytes: Int) -> JSONValue { .string(String(repeating: "x", count: bytes)) }

        @Test("1,024 keys are held, and not one more; deleting one makes room", arguments: Door.allCases)
        func keys(door: Door) async throws {
            let space = try await Space(door)
            let all = (0..<1_024).map { ("k\($0)", JSONValue.integer(1)) }
            expectLimit(try await space.set(all + [("more", 1)]), "keys", actual: 1_025, max: 1_024)
            #expect(try await space.preferences("usage").json["keys"] == 0)
            #expect(try await space.set(all).status == 200)
            expectLimit(try await space.set([("more", 1)]), "keys", actual: 1_025, max: 1_024)
            #expect(try await space.set([("k7", 2)]).status == 200, "a key that is there may be set")
            let usage = try await space.preferences("usage").json
            #expect(usage["keys"] == 1_024 && usage["bytes"] == 8_192)
            #expect(usage["limits"]?["keys"] == 1_024)
            #expect(try await space.set([("k0", .null), ("more", 1)]).status == 200)
            expectLimit(try await space.set([("k0", 1)]), "keys", actual: 1_025, max: 1_024)
        }

        @Test(
            "a member of another kind than the description has is refused, and null is none", arguments: Door.allCases)
        func members(door: Door) async throws {
            let space = try await Space(door)
            for (action, member) in [
                ("list", "after"), ("changes", "syncToken"), ("changes", "resultsLimit"), ("set", "device"),
            ] {
                let body: JSONValue = action == "set" ? ["writes": [["key": "a", "value": 1]]] : [:]
                let wrong = try await space.preferences(action, body.with(.object([.init(member, [:])])))
                expectFailure(wrong, 400, "BAD_REQUEST", "\(member): ")
                let none = try await space.preferences(action, body.with(.object([.init(member, .null)])))
                #expect(none.status == 200, "\(none)")
            }
        }

        @Test("a value of 1 MB fills the store; a smaller one in its place makes room", arguments: Door.allCases)
        func bytes(door: Door) async throws {
            let space = try await Space(door)
            let full: Int64 = 1_048_576
            expectLimit(
                try await space.set([("large", text(1_048_577))]), "valueBytes", actual: full + 1, max: full,
                key: "large")
            #expect(try await space.set([("large", text(1_048_576))]).status == 200)
            expectLimit(try await space.set([("b", true)]), "storeBytes", actual: full + 1, max: full)
            #expect(try await space.set([("b", "")]).status == 200, "an empty text has no bytes")
            #expect(try await space.preferences("usage").json["bytes"]?.integer == full)
            #expect(try await space.set([("large", text(1_048_575)), ("b", true)]).status == 200)
            expectLimit(try await space.set([("c", true)]), "storeBytes", actual: full + 1, max: full)
            #expect(try await space.preferences("usage").json["bytes"]?.integer == full)
            // Many values together, too.
            #expect(try await space.set([("large", .null), ("b", .null)]).status == 200)
            let eighths = (0..<8).map { ("e\($0)", text(131_072)) }
            #expect(try await space.set(eighths).status == 200)
            expectLimit(try await space.set([("e0", text(131_073))]), "storeBytes", actual: full + 1, max: full)
        }

        /// What is repeated, how often, and what follows it.
        private static let keyParts: [(part: String, count: Int, end: String)] = [
            ("k", 64, ""), ("k", 65, ""), ("é", 32, ""), ("é", 32, "k"), ("日", 21, "k"), ("日", 22, ""), ("🔑", 16, ""),
            ("🔑", 16, "k"), ("k", 0, ""),
        ]
        private static let keyExamples: [String] = keyParts.map { String(repeating: $0.part, count: $0.count) + $0.end }

        @Test("a key has 1 to 64 bytes of UTF-8", arguments: Door.cases(keyExamples))
        func keyBytes(door: Door, key: String) async throws {
            let bytes = Int64(key.utf8.count)
            let space = try await Space(door)
            let answer = try await space.set([(key, 1)])
            if (1...64).contains(bytes) {
                #expect(answer.status == 200, "\(answer)")
                #expect(try await space.preferences("get", ["keys": [.string(key)]]).items("values").count == 1)
            } else {
                expectLimit(answer, "keyBytes", actual: bytes, max: 64, key: key, status: 400)
                #expect(try await space.preferences("usage").json["keys"] == 0)
            }
        }

        @Test("pages of list and changes end at 2 MB of JSON, and paging shows everything", arguments: Door.allCases)
        func pageBytes(door: Door) async throws {
            let space = try await Space(door)
            // A control character takes one byte of the store and six of JSON.
            let value = JSONValue.string(String(repeating: "\u{1}", count: 100_000))
            let keys = (0..<10).map { "k\($0)" }
            // As JSON they are more than a body may be: two requests.
            for part in [keys[..<5], keys[5...]] {
                #expect(try await space.set(part.map { ($0, value) }).status == 200)
            }
            var listed: [String] = []
            var after: JSONValue = .null
            var pages = 0
            repeat {
                let page = try await space.preferences("list", ["after": after])
                #expect(page.status == 200 && page.body.count < 2_100_000, "\(page.body.count)")
                listed += try page.items("values").compactMap { $0["key"]?.string }
                after = page.json["after"] ?? .null
                pages += 1
            } while after != .null
            #expect(listed == keys && pages == 4)
            var changed: [String] = []
            var page = try await space.preferences("changes")
            pages = 1
            while page.json["moreComing"] == true {
                changed += try page.items("changes").compactMap { $0["key"]?.string }
                #expect(page.body.count < 2_100_000)
                page = try await space.preferences("changes", ["syncToken": page.json["syncToken"] ?? .null])
                pages += 1
            }
            changed += try page.items("changes").compactMap { $0["key"]?.string }
            #expect(changed == keys && pages == 4)
            // What is asked for by name comes whole, or is refused.
            let names = JSONValue.array(keys.map { .string($0) })
            #expect(try await space.preferences("get", ["keys": names]).items("values").count == 10)
        }

        @Test("members without content fill a store too", arguments: Door.allCases)
        func emptyMembers(door: Door) async throws {
            let space = try await Space(door)
            let members = JSONValue.array(Array(repeating: "", count: 10_000))
            #expect(try await space.set((0..<13).map { ("k\($0)", members) }).status == 200)
            #expect(try await space.preferences("usage").json["bytes"] == 1_040_000)
            expectLimit(
                try await space.set([("k13", members)]), "storeBytes", actual: 1_120_000, max: 1_048_576)
        }

        @Test("members, nesting and writes have limits that errors name", arguments: Door.allCases)
        func others(door: Door) async throws {
            let space = try await Space(door)
            let members = JSONValue.array(Array(repeating: "", count: 10_001))
            expectLimit(
                try await space.set([("a", members)]), "valueMembers", actual: 10_001, max: 10_000, key: "a",
                status: 400)
            let deep = (0..<13).reduce(JSONValue.integer(1)) { value, _ in .array([value]) }
            expectLimit(try await space.set([("a", deep)]), "valueDepth", actual: 13, max: 12, key: "a", status: 400)
            let writes = (0..<2_049).map { ("k\($0)", JSONValue.null) }
            expectLimit(try await space.set(writes), "writes", actual: 2_049, max: 2_048, status: 400)
            expectLimit(
                try await space.set([("a", 1), ("a", 2)]), "writesOfKey", actual: 2, max: 1, key: "a", status: 400)
        }
    }
}
