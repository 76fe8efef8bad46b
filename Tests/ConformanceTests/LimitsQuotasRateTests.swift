import RecordModel
import Testing

extension Conformance {
    @Suite("Limits and quotas 5: throttling")
    struct LimitsQuotasRateTests {
        /// A space of its own whose container takes few requests a second.
        private static func space(_ door: Door, requestsPerSecond: Int, keyValues: Int = 1_000_000) async throws
            -> Space
        {
            let space = try await Space.own(door, schema: Schemas.standard)
            _ = try await space.home.admin(
                "PATCH", "limits?container=\(space.container)",
                [
                    "requestsPerSecond": .integer(Int64(requestsPerSecond)),
                    "keyValueRequestsPerSecond": .integer(Int64(keyValues)),
                ])
            return space
        }

        @Test("every answer says the container's limit and what is left of it", arguments: Door.allCases)
        func headers(door: Door) async throws {
            let space = try await Self.space(door, requestsPerSecond: 100_000)
            let answer = try await space.get("zones/list")
            #expect(answer.header("RateLimit-Policy") == #""requests";q=100000;w=1"#)
            #expect(answer.header("RateLimit")?.hasPrefix(#""requests";r="#) == true, "\(answer.headers)")
            let failed = try await space.call("records/query", ["query": ["recordType": "Unknown"]])
            #expect(failed.status == 400)
            #expect(failed.header("RateLimit-Policy") == #""requests";q=100000;w=1"#)
        }

        @Test("beyond the limit: 429 THROTTLED with a time, in the body and in the header", arguments: Door.allCases)
        func throttled(door: Door) async throws {
            let space = try await Self.space(door, requestsPerSecond: 1)
            // All at once, so that little is let through for the time that they take.
            let refused = try await withThrowingTaskGroup(of: Answer.self) { requests in
                for _ in 0..<40 { requests.addTask { try await space.get("zones/list") } }
                return try await requests.reduce(into: [Answer]()) { if $1.status != 200 { $0.append($1) } }
            }
            // Three nodes have a burst of two each; a few seconds may pass.
            #expect(refused.count >= 10)
            for answer in refused {
                #expect(answer.status == 429, "\(answer)")
                #expect(answer.code == "THROTTLED")
                let seconds = try #require(answer.json["retryAfter"]?.integer)
                let milliseconds = try #require(answer.json["retryAfterMilliseconds"]?.integer)
                #expect(milliseconds > 0 && milliseconds <= 31_000)
                #expect(seconds == (milliseconds + 999) / 1_000 && answer.header("Retry-After") == "\(seconds)")
                #expect(answer.header("RateLimit")?.hasPrefix(#""requests";r=0"#) == true)
            }
        }

        @Test("who saves very many rows waits until they are paid for, and the container's other users do not")
        func manyRows() async throws {
            let space = try await Self.space(.memory, requestsPerSecond: 1)
            let other = try await space.otherUser()
            let counts = JSONValue.array((0..<9_500).map { .integer(Int64($0)) })
            let saved = try await space.modify([Space.operation("create", "a", ["counts": ["value": counts]])])
            #expect(try saved.item().code == nil)
            // Ten at one a second, and three that were saved up.
            let refused = try await space.get("zones/list")
            #expect(refused.status == 429 && refused.code == "THROTTLED", "\(refused)")
            #expect(refused.json["reason"]?.string?.contains("your earlier requests") == true, "\(refused)")
            #expect(try #require(refused.json["retryAfterMilliseconds"]?.integer) > 2_000, "\(refused)")
            let answer = try await other.get("zones/list")
            #expect(answer.status == 200, "\(answer)")
        }

        @Test("who saves very many subscriptions waits until they are paid for")
        func manySubscriptions() async throws {
            let space = try await Self.space(.memory, requestsPerSecond: 1)
            let operations = (0..<200).map { number -> JSONValue in
                [
                    "operationType": "create",
                    "subscription": [
                        "subscriptionID": .string("s\(number)"), "subscriptionType": "database",
                        "notificationInfo": ["alertBody": .string("\(number)")],
                    ],
                ]
            }
            let saved = try await space.call("subscriptions/modify", ["operations": .array(operations)])
            #expect(try saved.items("subscriptions").allSatisfy { $0.code == nil }, "\(saved)")
            let refused = try await space.get("zones/list")
            #expect(refused.status == 429 && refused.code == "THROTTLED", "\(refused)")
        }

        @Test(
            "who asks for very many zones waits until they are paid for, and for ten does not",
            arguments: ["zones/lookup", "changes/zone"])
        func manyZones(action: String) async throws {
            for (count, status) in [(10, 200), (200, 429)] {
                let space = try await Self.space(.memory, requestsPerSecond: 1)
                let zones = (0..<count).map { number -> JSONValue in
                    let id: JSONValue = ["zoneName": .string("z\(number)")]
                    return action == "zones/lookup" ? id : ["zoneID": id]
                }
                #expect(try await space.call(action, ["zones": .array(zones)]).items("zones").count == count)
                let next = try await space.get("zones/list")
                #expect(next.status == status, "\(count) zones: \(next)")
            }
        }

        @Test("who sets very many preferences waits until they are paid for")
        func manyPreferences() async throws {
            for (count, status) in [(250, 200), (2_048, 429)] {
                let space = try await Self.space(.memory, requestsPerSecond: 1_000_000, keyValues: 1)
                #expect(try await space.set((0..<count).map { ("k\($0)", .null) }).status == 200)
                let next = try await space.preferences("usage")
                #expect(next.status == status, "\(count) writes: \(next)")
            }
        }

        @Test("preferences have a limit of their own", arguments: Door.allCases)
        func keyValues(door: Door) async throws {
            let space = try await Self.space(door, requestsPerSecond: 1, keyValues: 100_000)
            for _ in 0..<30 { _ = try await space.get("zones/list") }
            var call = Call("POST", "/kv/1/\(space.container)/development/list")
            call.query = space.credentials
            for _ in 0..<10 {
                let answer = try await space.send(call)
                #expect(answer.status == 200)
                #expect(answer.header("RateLimit-Policy") == #""keyValues";q=100000;w=1"#)
            }
        }

        @Test("a raised limit counts in the next request", arguments: Door.allCases)
        func raised(door: Door) async throws {
            let space = try await Self.space(door, requestsPerSecond: 1)
            for _ in 0..<20 { _ = try await space.get("zones/list") }
            _ = try await space.home.admin(
                "PATCH", "limits?container=\(space.container)", ["requestsPerSecond": 100_000])
            let answer = try await space.get("zones/list")
            #expect(answer.header("RateLimit-Policy") == #""requests";q=100000;w=1"#)
        }

        @Test("a container's limit is not another's", arguments: Door.allCases)
        func others(door: Door) async throws {
            let space = try await Self.space(door, requestsPerSecond: 1)
            for _ in 0..<20 { _ = try await space.get("zones/list") }
            let other = try await Space(door)
            for _ in 0..<10 { #expect(try await other.get("zones/list").status == 200) }
        }
    }
}
