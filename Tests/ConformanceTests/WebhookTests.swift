import RecordModel
import Service
import Synchronization
import TestSupport
import Testing

extension Conformance {
    @Suite("Webhooks")
    struct WebhookTests {
        /// The members of a body that name a webhook of the space's container.
        private static func body(_ space: Space, _ more: JSONValue = [:]) -> JSONValue {
            JSONValue.object([.init("container", .string(space.home.container)), .init("name", "hook")]).with(more)
        }

        private static func query(_ space: Space) -> String { "container=\(space.home.container)&name=hook" }

        /// Runs `body` with a node in this process, a space of it, and a receiver that takes everything.
        private static func onOwnNode(
            _ body: (SingleNode, Space, ScriptedServer) async throws -> Void
        ) async throws {
            let node = try await SingleNode.start(service: .reachingThisMachine)
            let home = try await Home.make(on: MemoryService(node: node), schema: Schemas.standard)
            let space = try await Space(in: home).inPublic
            try await ScriptedServer.running { _, _ in
                ScriptedAnswer(status: 200)
            } _: { receiver in
                try await body(node, space, receiver)
            }
            try await node.stop()
        }

        @Test("a receiver is told of public records and private zones, signed and in order", arguments: Door.allCases)
        func told(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            try await ScriptedServer.running { _, _ in
                ScriptedAnswer(status: 204, body: "")
            } _: { receiver in
                let made = try await space.home.admin(
                    "POST", "webhooks",
                    Self.body(
                        space,
                        [
                            "url": .string(receiver.url + "/a?b=c"), "recordTypes": ["Item"], "fields": ["title"],
                            "private": true,
                        ]))
                let secret = try #require(made["secret"]?.string)
                try await space.inPublic.save("p", ["title": ["value": "x"], "notes": ["value": "not shown"]])
                try await space.inPublic.save("q", [:], type: "Secret")
                try await space.newZone().save("r", ["title": ["value": "hidden"]])
                let deliveries = try await awaitState("all is told") {
                    try receiver.requests.map { try #require(WebhookDelivery($0, secret: secret)) }
                } until: {
                    $0.flatMap(\.numbers).count >= 3
                }
                #expect(receiver.requests.allSatisfy { $0.method == "POST" && $0.target == "/a?b=c" })
                #expect(deliveries.flatMap(\.numbers) == [1, 2, 3])
                #expect(deliveries.allSatisfy { $0.json["webhook"] == "hook" && $0.json["lost"] == nil })
                let told = deliveries.flatMap(\.notifications).compactMap { $0["payload"]?["ck"] }
                let record = try #require(told.first { $0["qry"] != nil }?["qry"])
                #expect(record["rid"] == "p" && record["sid"] == "Item" && record["dbs"] == 2)
                #expect(record["af"] == ["title": "x"])
                let zones = told.compactMap { $0["met"] }
                #expect(zones.count == 2 && zones.allSatisfy { $0["dbs"] == 1 && $0["zid"] == "zone" })
                #expect(zones.allSatisfy { $0["zoid"] == .string(space.user) })
                #expect(!receiver.requests.contains { String(decoding: $0.body, as: UTF8.self).contains("hidden") })
                let page = try await awaitState("the delivery is noted") {
                    try await space.home.admin("GET", "webhooks/deliveries?\(Self.query(space))")
                } until: {
                    $0["current"] == nil
                }
                #expect(page["deliveries"]?.array?.first?["delivered"] == true)
                #expect(page["deliveries"]?.array?.first?["status"] == 204)
            }
        }

        @Test("what is refused is tried again under the same id, and then the next is told", arguments: Door.allCases)
        func retried(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard).inPublic
            try await ScriptedServer.running { _, earlier in
                earlier == 0
                    ? ScriptedAnswer(status: 302, headers: [("Location", "http://127.0.0.1:1/")])
                    : ScriptedAnswer(status: 200)
            } _: { receiver in
                let made = try await space.home.admin(
                    "POST", "webhooks",
                    Self.body(space, ["url": .string(receiver.url), "recordTypes": ["Item"]]))
                let secret = try #require(made["secret"]?.string)
                try await space.save("a", [:])
                try await awaitTrue("the first attempt") { !receiver.requests.isEmpty }
                try await space.save("b", [:])
                let deliveries = try await awaitState("both are told") {
                    try receiver.requests.map { try #require(WebhookDelivery($0, secret: secret)) }
                } until: {
                    $0.flatMap(\.numbers).contains(2)
                }
                #expect(deliveries.map(\.numbers) == [[1], [1], [2]])
                #expect(deliveries[0].id == deliveries[1].id && deliveries[1].id != deliveries[2].id)
                let page = try await space.home.admin("GET", "webhooks/deliveries?\(Self.query(space))")
                let reasons = page["deliveries"]?.array?.compactMap { $0["reason"]?.string }
                #expect(reasons == ["HTTP 302: redirects are not followed"])
            }
        }

        /// A node that takes over tells the same again under the same id.
        @Test("what a delivery tells is kept before it is sent", arguments: Door.allCases)
        func keptFirst(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard).inPublic
            try await ScriptedServer.running { _, _ in
                var answer = ScriptedAnswer()
                answer.isKeptBack = true
                return answer
            } _: { receiver in
                let made = try await space.home.admin(
                    "POST", "webhooks", Self.body(space, ["url": .string(receiver.url), "recordTypes": ["Item"]]))
                let secret = try #require(made["secret"]?.string)
                try await space.save("a", [:])
                try await awaitTrue("it is sent") { !receiver.requests.isEmpty }
                let delivery = try #require(WebhookDelivery(receiver.requests[0], secret: secret))
                let page = try await space.home.admin("GET", "webhooks/deliveries?\(Self.query(space))")
                #expect(page["current"]?["id"]?.string == delivery.id)
            }
        }

        @Test("a receiver is told that something was lost, then of what is kept and of what comes")
        func lost() async throws {
            try await Self.onOwnNode { node, space, receiver in
                let home = space.home
                let made = try await home.admin(
                    "POST", "webhooks", Self.body(space, ["url": .string(receiver.url), "recordTypes": ["Item"]]))
                let secret = try #require(made["secret"]?.string)
                func deliveries(_ what: String, until isEnough: ([WebhookDelivery]) -> Bool) async throws
                    -> [WebhookDelivery]
                {
                    try await awaitState(what) {
                        try receiver.requests.map { try #require(WebhookDelivery($0, secret: secret)) }
                    } until: {
                        isEnough($0)
                    }
                }
                try await space.save("a", [:])
                _ = try await deliveries("the first is told") { $0.flatMap(\.numbers) == [1] }
                try await node.beginIncarnation(1_000)
                try await space.save("b", [:])
                let all = try await deliveries("the rest is told") { $0.flatMap(\.numbers).contains(2) }
                let lost = try #require(all.firstIndex { $0.json["lost"] == true })
                #expect(lost == 1 && all[lost].notifications.isEmpty)
                #expect(all.dropFirst(lost + 1).allSatisfy { $0.json["lost"] == nil })
                #expect(all.dropFirst(lost + 1).flatMap(\.numbers) == [1, 2])
                #expect(Set(all.map(\.id)).count == all.count)
            }
        }

        /// Deliveries that go on until they are ended.
        private final class HeldDeliveries: Sendable {
            private let all = Mutex<[CheckedContinuation<Void, Never>]>([])
            var count: Int { all.withLock { $0.count } }

            func hold() async { await withCheckedContinuation { held in all.withLock { $0.append(held) } } }

            func end() {
                let held = all.withLock { all in
                    defer { all = [] }
                    return all
                }
                for each in held { each.resume() }
            }
        }

        @Test("what waits for its turn while its webhook is given another address goes to that one only")
        func changedMeanwhile() async throws {
            try await Self.onOwnNode { node, space, receiver in
                let home = space.home
                _ = try await home.admin(
                    "POST", "webhooks",
                    Self.body(space, ["url": .string(receiver.url + "/former"), "recordTypes": ["Item"]]))
                // As many as a container may have under way at a time.
                let underWay = HeldDeliveries()
                defer { underWay.end() }
                let deliveries = (0..<8).map { _ in
                    Task {
                        try await node.recordService.webhooks.deliver(for: home.container) {
                            await underWay.hold()
                        }
                    }
                }
                try await awaitTrue("all are under way") { underWay.count == deliveries.count }
                try await space.save("a", [:])
                _ = try await awaitState("the next one is kept") {
                    try await home.admin("GET", "webhooks/deliveries?\(Self.query(space))")
                } until: {
                    $0["current"] != nil
                }
                _ = try await home.admin(
                    "PATCH", "webhooks", Self.body(space, ["url": .string(receiver.url + "/latter")]))
                underWay.end()
                for delivery in deliveries { try await delivery.value }
                try await awaitTrue("it is told") { !receiver.requests.isEmpty }
                #expect(receiver.requests.map(\.target) == ["/latter"])
            }
        }

        @Test("it is listed without its secret, tested, changed, disabled and removed", arguments: Door.allCases)
        func administration(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard).inPublic
            let home = space.home
            try await ScriptedServer.running { request, _ in
                ScriptedAnswer(status: request.path == "/no" ? 500 : 200)
            } _: { receiver in
                let made = try await home.admin(
                    "POST", "webhooks", Self.body(space, ["url": .string(receiver.url), "recordTypes": ["Item"]]))
                let first = try #require(made["secret"]?.string)
                #expect(made["state"] == "enabled" && made["secrets"] == 1 && made["private"] == false)
                let listed = try await home.admin("GET", "webhooks?container=\(home.container)")
                #expect(listed["webhooks"]?.array?.first?["name"] == "hook")
                #expect(listed["webhooks"]?.array?.first?["secret"] == nil)
                let rotated = try await home.admin("PATCH", "webhooks", Self.body(space, ["secret": "rotate"]))
                let second = try #require(rotated["secret"]?.string)
                #expect(second != first && rotated["secrets"] == 2)
                let third = try await home.adminCall(
                    "PATCH", "webhooks", Self.body(space, ["secret": "rotate"]).serialized())
                expectFailure(third, 409, "CONFLICT", "drop the former one")
                let test = try await home.admin("POST", "webhooks/test", Self.body(space))
                #expect(test["delivered"] == true && test["status"] == 200)
                let request = try #require(receiver.requests.last)
                #expect(WebhookDelivery(request, secret: first)?.json["test"] == true)
                #expect(WebhookDelivery(request, secret: second)?.notifications == [])
                let dropped = try await home.admin("PATCH", "webhooks", Self.body(space, ["secret": "dropFormer"]))
                #expect(dropped["secrets"] == 1 && dropped["secret"] == nil)
                _ = try await home.admin(
                    "PATCH", "webhooks", Self.body(space, ["url": .string(receiver.url + "/no")]))
                let failed = try await home.admin("POST", "webhooks/test", Self.body(space))
                #expect(failed["delivered"] == false && failed["reason"] == "HTTP 500")
                #expect(receiver.requests.last.flatMap { WebhookDelivery($0, secret: first) } == nil)
                let off = try await home.admin("PATCH", "webhooks", Self.body(space, ["enabled": false]))
                #expect(off["state"] == "disabled" && off["reason"] == "by an administrator")
                try await space.save("while off", [:])
                _ = try await home.admin(
                    "PATCH", "webhooks", Self.body(space, ["enabled": true, "url": .string(receiver.url)]))
                try await awaitTrue("what came while it was disabled is told") {
                    receiver.requests.contains { WebhookDelivery($0, secret: second)?.numbers == [1] }
                }
                _ = try await home.admin("DELETE", "webhooks?\(Self.query(space))")
                let none = try await home.admin("GET", "webhooks?container=\(home.container)")
                #expect(none["webhooks"] == [])
                let gone = try await home.adminCall("DELETE", "webhooks?\(Self.query(space))")
                expectFailure(gone, 404, "NOT_FOUND", "hook")
            }
        }

        @Test("a webhook that cannot be one is refused", arguments: Door.cases(Self.bad))
        func refused(door: Door, changes: JSONValue) async throws {
            let space = try await Space(door)
            let answer = try await space.home.adminCall(
                "POST", "webhooks",
                Self.body(
                    space,
                    JSONValue(dictionaryLiteral: ("url", "http://127.0.0.1:1"), ("private", true))
                        .with(changes)
                ).serialized())
            #expect(answer.status == 400, "\(answer)")
        }

        private static let bad: [JSONValue] = [
            ["url": "ftp://a"], ["url": 5], ["url": "http://a#b"], ["url": ""], ["name": "a b"], ["name": ""],
            ["recordTypes": ["None"]], ["recordTypes": "Item"], ["private": false],
            ["fields": ["a", "b", "c", "d"]], ["secret": "guess"], ["environment": "staging"],
        ]
    }
}
