import RecordModel
import TestSupport
import Testing

extension Conformance {
    @Suite("14 Subscriptions and push: tokens and the web courier")
    struct Section14CourierTests {
        /// What a device is given.
        private struct Device {
            var token: String
            /// Path and parameters of the courier's URL.
            var courier: String

            init(_ answer: Answer) throws {
                try #require(answer.status == 200, "\(answer)")
                #expect(answer.json["apnsEnvironment"] == "development")
                token = try #require(answer.json["apnsToken"]?.string)
                let url = try #require(answer.json["webcourierURL"]?.string)
                #expect(url.hasSuffix("/aps?tok=\(token)&ttl=43200"))
                courier = "/" + url.split(separator: "/").dropFirst(2).joined(separator: "/")
            }
        }

        private static func send(_ space: Space, _ action: String, _ body: JSONValue) async throws -> Answer {
            var call = space.request("", body)
            call.path = "/device/1/\(space.container)/development/tokens/\(action)"
            return try await space.send(call)
        }

        private static func create(_ space: Space, client: String? = nil) async throws -> Device {
            let body = JSONValue.object([.init("apnsEnvironment", "development")])
                .with(client.map { .object([.init("clientId", .string($0))]) } ?? [:])
            return try Device(try await send(space, "create", body))
        }

        /// A GET of the courier's URL, without any other credentials.
        private static func poll(_ device: Device, _ space: Space) async throws -> Answer {
            let parts = device.courier.split(separator: "?", maxSplits: 1)
            var call = Call("GET", String(parts[0]))
            call.query = parts[1].split(separator: "&").map { pair in
                let sides = pair.split(separator: "=", maxSplits: 1)
                return (String(sides[0]), String(sides[1]))
            }
            return try await space.home.checked(call)
        }

        private static func subscribe(_ space: Space) async throws {
            try await space.subscribe([
                "subscriptionID": "q", "subscriptionType": "query", "query": ["recordType": "Item"],
                "firesOn": ["create"],
            ])
        }

        @Test(
            "14. two waiting messages come in two GETs, in order and once; an idle courier answers null",
            arguments: Door.allCases)
        func courier(door: Door) async throws {
            let space = try await Space(door)
            try await Self.subscribe(space)
            try await space.save("before", [:])
            _ = try await space.notifications(atLeast: 1)
            let device = try await Self.create(space)
            try await space.save("a", [:])
            try await space.save("b", [:])
            for name in ["a", "b"] {
                let answer = try await Self.poll(device, space)
                #expect(answer.status == 200 && answer.header("Access-Control-Allow-Origin") == "*", "\(answer)")
                #expect(answer.json["ck"]?["qry"]?["rid"] == .string(name), "\(answer)")
                #expect(answer.json["ck"]?["ce"] == 2)
            }
            // The other door's client gives up before.
            guard door == .memory else { return }
            let idle = try await Self.poll(device, space)
            #expect(idle.status == 200 && String(decoding: idle.body, as: UTF8.self) == "null")
        }

        @Test(
            "a courier that waits is told at once of what comes, but not of its own device's changes",
            arguments: Door.allCases)
        func waiting(door: Door) async throws {
            let space = try await Space(door)
            try await Self.subscribe(space)
            let device = try await Self.create(space, client: "phone")
            var own = space.request("records/modify", ["operations": [Space.operation("create", "own")]])
            own.query.append(("clientId", "phone"))
            #expect(try await space.send(own).status == 200)
            async let answer = Self.poll(device, space)
            try await space.save("other", [:])
            #expect(try await answer.json["ck"]?["qry"]?["rid"] == "other")
        }

        @Test("register has a token tell of another container, too", arguments: Door.allCases)
        func register(door: Door) async throws {
            let space = try await Space(door)
            let other = try await Space.own(door, schema: Schemas.standard)
            let device = try await Self.create(space)
            let answer = try await Self.send(
                other, "register", ["apnsEnvironment": "development", "apnsToken": .string(device.token)])
            let same = try Device(answer)
            #expect(same.token == device.token && same.courier == device.courier)
            for each in [space, other] { try await Self.subscribe(each) }
            try await other.save("there", [:])
            #expect(try await Self.poll(device, space).json["ck"]?["cid"] == .string(other.container))
            try await space.save("here", [:])
            #expect(try await Self.poll(device, space).json["ck"]?["cid"] == .string(space.container))
        }

        @Test(
            "a courier tells nothing of a deleted container, and goes on once that is restored",
            arguments: Door.allCases)
        func deletedContainer(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            let other = try await Space.own(door, schema: Schemas.standard)
            let device = try await Self.create(space)
            let token = JSONValue.string(device.token)
            let body: JSONValue = ["apnsEnvironment": "development", "apnsToken": token]
            #expect(try await Self.send(other, "register", body).status == 200)
            // What the other container has to tell is the oldest.
            for each in [other, space] {
                try await Self.subscribe(each)
                try await each.save("a", [:])
                _ = try await each.notifications(atLeast: 1)
            }
            func delete(_ name: String) async throws {
                _ = try await space.home.admin("DELETE", "containers?name=\(name)&confirm=\(name)")
            }
            try await delete(other.container)
            #expect(try await Self.poll(device, space).json["ck"]?["cid"] == .string(space.container))
            try await delete(space.container)
            expectFailure(try await Self.poll(device, space), 404, "NOT_FOUND", space.container)
            for name in [space.container, other.container] {
                _ = try await space.home.admin("POST", "containers/restore?name=\(name)")
            }
            #expect(try await Self.poll(device, space).json["ck"]?["cid"] == .string(other.container))
        }

        @Test("what is no token, or lacks what it needs, is refused", arguments: Door.allCases)
        func refused(door: Door) async throws {
            let space = try await Space(door)
            for body in [[:], ["apnsEnvironment": "staging"], ["apnsEnvironment": 1]] as [JSONValue] {
                expectFailure(try await Self.send(space, "create", body), 400, "BAD_REQUEST", "apnsEnvironment")
            }
            let development: JSONValue = ["apnsEnvironment": "development"]
            expectFailure(try await Self.send(space, "register", development), 400, "BAD_REQUEST", "apnsToken")
            let device = try await Self.create(space)
            for token in ["guess", String(device.token.dropLast(3)), ""] {
                let body = development.with(["apnsToken": .string(token)])
                expectFailure(try await Self.send(space, "register", body), 400, "BAD_REQUEST", "apnsToken")
            }
            let production: JSONValue = ["apnsEnvironment": "production", "apnsToken": .string(device.token)]
            expectFailure(try await Self.send(space, "register", production), 400, "BAD_REQUEST", "apnsEnvironment")
            var forged = device
            forged.courier = "/aps?tok=guess&ttl=43200"
            expectFailure(try await Self.poll(forged, space), 400, "BAD_REQUEST", "apnsToken")
            #expect(try await Self.send(space.anonymous, "create", development).status == 421)
        }
    }
}
