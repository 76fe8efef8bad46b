import Admission
import Authorization
import Cluster
import Directory
import KeyValueStore
import Logging
import RaftCore
import RecordModel
import RecordStore
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Service

extension RebuildingClusterSuites {
    @Suite("Subscribers without an account, tokens of devices, and webhooks")
    struct SubscriberTests {
        private static let key = SchemaKey(container: "iCloud.test", environment: .development)
        private static let hour: Int64 = 3_600_000

        private struct World {
            let cluster: TestCluster
            let service: RecordService

            var node: ClusterNode { service.node }

            func set(ahead milliseconds: Int64) { cluster.clocks[0].set(aheadMilliseconds: milliseconds) }

            func submit(_ command: DirectoryCommand) async throws {
                if case .refused(let error) = try await service.cluster.submit(command, by: service.deadline()) {
                    throw TestFailure("\(command): \(error)")
                }
            }

            func subscribe(_ subscriber: DatabaseKey) async throws {
                let home = subscriber.home(in: service)
                let targets = service.cluster.groups(of: subscriber).sorted()
                let command = ModifySubscriptions(
                    subscriber: subscriber, home: home.rawValue, time: service.now,
                    changes: [
                        .save(
                            Subscription(id: "all", scope: .private, kind: .database),
                            targets: targets.map(\.rawValue))
                    ])
                let outcome = try await service.cluster.submit(
                    .subscriptions(command), to: home, by: service.deadline(), as: SubscriptionsOutcome.self)
                try #require(outcome.failures == [nil])
                try await service.awaitCopies(outcome.marks, from: home, by: service.deadline())
            }

            func change(_ zone: String, of owner: DatabaseKey, _ kind: ModifyZone.Kind = .create) async throws {
                let key = ZoneKey(database: owner, name: zone)
                let command = ModifyZone(kind, zone: key, caller: Caller(user: owner.owner), time: service.now)
                let outcome: RecordOutcome = try await service.cluster.submit(
                    .record(.modifyZone(command)), to: node.map.group(of: key), by: service.deadline())
                guard case .zone = outcome else { throw TestFailure("\(outcome)") }
            }

            /// A webhook that is told of private databases.
            func webhook(to receiver: any WebhookTransport) async throws -> Webhook {
                try await awaitTrue("the directory knows webhooks") { await node.levels.has(.webhooks, in: .directory) }
                service.webhooks.start(service, receiver)
                var changes = Webhooks.Changes()
                (changes.url, changes.watchesPrivate) = ("https://hooks.example.com/", true)
                let origin = AuditOrigin(actor: "administrator", requestID: "", address: "", time: service.now)
                return try await Webhooks(service, key).create(
                    "hook", changes, origin: origin, by: service.deadline()
                ).webhook
            }

            func subscribers() async throws -> Set<String> {
                var users: Set<String> = []
                for group in node.map.groups.dropFirst() {
                    let answer = try await service.cluster.answer(
                        to: .subscribers(.init(in: key, after: "", limit: 1_000)), from: group, by: service.deadline())
                    users.formUnion(try unpacked(answer.bytes, as: SubscriberPage.self).users)
                }
                return users
            }
        }

        /// Takes whatever is delivered to it.
        private final class Receiver: WebhookTransport {
            private let taken = Mutex<[JSONValue]>([])

            var deliveries: [JSONValue] { taken.withLock { $0 } }

            /// The zones that a delivery tells of.
            static func zones(in delivery: JSONValue) -> [String] {
                delivery["notifications"]?.array?.compactMap { $0["payload"]?["ck"]?["met"]?["zid"]?.string } ?? []
            }

            func check(_ address: WebAddress) async throws(WebhookFailure) {}

            func send(_ request: WebhookRequest) async throws(WebhookFailure) -> Int {
                guard let json = try? JSONParser.parse(request.body) else { return 400 }
                taken.withLock { $0.append(json) }
                return 200
            }

            func shutdown() async {}
        }

        /// Answers nothing until its delivery is given up.
        private final class SilentReceiver: WebhookTransport {
            private let asked = Atomic<Bool>(false)

            var isAsked: Bool { asked.load(ordering: .relaxed) }

            func check(_ address: WebAddress) async throws(WebhookFailure) {}

            func send(_ request: WebhookRequest) async throws(WebhookFailure) -> Int {
                asked.store(true, ordering: .relaxed)
                // It ends as the task is cancelled.
                for await _ in AsyncStream<Void>.makeStream().stream {}
                throw WebhookFailure("given up")
            }

            func shutdown() async {}
        }

        private func inWorld(
            _ accounts: [String], watchesMax: Int = 1_000, _ body: (World) async throws -> Void
        ) async throws {
            let cluster = try await TestCluster.started(nodeCount: 1) {
                $0.encryptionKey = [UInt8](repeating: 3, count: 32)
            }
            let node = try cluster.node(1)
            var settings = ServiceSettings()
            settings.watchesMax = watchesMax
            let service = RecordService(node: node, settings: settings, logger: Logger(label: "test"))
            let world = World(cluster: cluster, service: service)
            for group in node.map.groups.dropFirst() {
                try await awaitTrue("group \(group) knows webhooks") { await node.levels.has(.webhooks, in: group) }
            }
            try await world.submit(.createContainer(name: Self.key.container, time: world.service.now))
            for account in accounts {
                try await world.submit(.createAccount(Account(id: account, name: account, created: 0)))
            }
            world.service.start()
            try await body(world)
            await world.service.stop()
            await cluster.stop()
        }

        private static func database(of account: String) -> DatabaseKey {
            DatabaseKey(
                container: key.container, environment: key.environment, scope: .private,
                owner: Account.userRecordName(accountID: account, container: key.container))
        }

        @Test("only those without an account are forgotten, on every page, and webhooks that are not there any more")
        func forgotten() async throws {
            let others = (0..<30).map { "user\($0)" }
            try await inWorld(["ann", "bob"] + others) { world in
                let webhook = try await world.webhook(to: Receiver()).subscriber
                let removed = DatabaseKey.webhook(
                    "removed", container: Self.key.container, environment: Self.key.environment)
                let stay = others.map { Self.database(of: $0) }
                let kept = [Self.database(of: "ann"), Self.database(of: "bob"), webhook] + stay
                let gone = (0..<260).map { Self.database(of: "gone\($0)") } + [removed]
                for subscriber in kept + gone where subscriber != webhook { try await world.subscribe(subscriber) }
                #expect(try await world.subscribers().count == kept.count + gone.count)
                func forgetAll() async -> Bool {
                    await world.service.deletedSubscribers.forgetAll(in: world.service)
                }
                #expect(await forgetAll())
                #expect(try await world.subscribers().count == kept.count + gone.count, "it is asked for twice")
                #expect(await forgetAll())
                #expect(try await world.subscribers() == Set(kept.map(\.owner)))
                try await world.submit(.deleteAccount(name: "bob"))
                #expect(await forgetAll())
                #expect(await forgetAll())
                let left = Set(kept.map(\.owner)).subtracting([kept[1].owner])
                #expect(try await world.subscribers() == left)
                // What a request of the user's does that was under way goes with the next round.
                try await world.subscribe(kept[1])
                try await world.change("z", of: kept[1])
                #expect(await forgetAll())
                #expect(await forgetAll())
                #expect(try await world.subscribers() == left)
                try await world.change("z", of: kept[1], .delete)
                let subscriptions = try await Subscriptions.list(
                    of: kept[1], to: .private, in: world.service, by: world.service.deadline())
                #expect(subscriptions.isEmpty)
            }
        }

        @Test("where nobody of many has an account, the directory is doubted and nobody is forgotten")
        func doubted() async throws {
            try await inWorld([]) { world in
                // More than a few on every shard.
                let all = (0..<150).map { Self.database(of: "gone\($0)") }
                for subscriber in all { try await world.subscribe(subscriber) }
                for _ in 0..<3 { #expect(await world.service.deletedSubscribers.forgetAll(in: world.service)) }
                #expect(try await world.subscribers() == Set(all.map(\.owner)))
            }
        }

        @Test("a token lives for twelve hours after its last use, and not after its user")
        func tokenExpiry() async throws {
            try await inWorld(["ann"]) { world in
                let ann = Self.database(of: "ann")
                try await world.subscribe(ann)
                let tokens = DeviceTokens(world.service)
                let device = DeviceTokens.Device(store: StoreKey(home: ann), accountID: "ann", client: nil)
                let token = try await tokens.create(device, .development)
                let idle = try await tokens.create(device, .development)
                func code(_ token: String) async -> RequestFailure.Details? {
                    do throws(RequestFailure) {
                        _ = try await tokens.next(token, address: nil)
                        return nil
                    } catch {
                        return error.error.code == .badRequest ? error.details : nil
                    }
                }
                try await world.change("a", of: ann)
                world.set(ahead: 11 * Self.hour)
                #expect(try await tokens.next(token, address: nil) != nil)
                try await world.change("b", of: ann)
                world.set(ahead: 13 * Self.hour)
                #expect(try await tokens.next(token, address: nil) != nil)
                #expect(await code(idle) == .expiredURL)
                world.set(ahead: 26 * Self.hour)
                #expect(await code(token) == .expiredURL)
                let last = try await tokens.create(device, .development)
                try await world.change("c", of: ann)
                try await world.submit(.deleteAccount(name: "ann"))
                #expect(await code(last) == .expiredURL)
            }
        }

        @Test("copies that a group sends which was restored before the others wait until these are, too")
        func restoredFirst() async throws {
            try await inWorld(["ann"]) { world in
                let ann = Self.database(of: "ann")
                try await world.subscribe(ann)
                let home = ann.home(in: world.service)
                let others = world.node.map.groups.dropFirst().filter { $0 != home }
                let command = GroupCommand.machine(ShardCommand.startIncarnation(1_000).encoded())
                func begin(_ group: GroupID) async throws {
                    _ = try await world.node.router.submit(command, to: group, by: world.node.deadline())
                }
                func status(of group: GroupID) async throws -> ReplicaStatus {
                    try #require(await world.node.status().first { $0.group == group })
                }
                let before = try await status(of: others[0]).appliedIndex
                try await begin(home)
                try await awaitTrue("they are sent, not taken and sent again") {
                    try await status(of: others[0]).appliedIndex.rawValue >= before.rawValue + 2
                }
                #expect(try await status(of: home).waitingEffects > 0)
                for group in others { try await begin(group) }
                try await awaitTrue("they are taken") { try await status(of: home).waitingEffects == 0 }
            }
        }

        @Test("a change keeps its device, however long the leader of its group takes to say that it knows of devices")
        func slowLeader() async throws {
            let cluster = try await TestCluster.started(nodeCount: 2) { $0.replicasPerShard = 1 }
            let (node, other) = (try cluster.node(1), try cluster.node(2))
            let elsewhere = zip(node.map.groups.dropFirst(), node.map.shards)
                .first { !$0.1.contains { $0.node == 1 } }
            let group = try #require(elsewhere).0
            try await awaitTrue("group \(group) knows devices") { await other.levels.has(.notifications, in: group) }
            await cluster.stop([2])
            let service = RecordService(node: node, logger: Logger(label: "test"))
            let caller = Admitted(caller: Caller(user: "_ann"))
            var request = DatabaseRequest(
                service, key: Self.database(of: "ann"), requester: Requester(caller, requestID: "", address: nil),
                in: node.directory.snapshot, deadline: Deadline(milliseconds: 120_000, from: node.platform.clock.now))
            request.clientID = "phone"
            let asked = request
            async let client = asked.client(in: group)
            #expect(await !node.levels.has(.notifications, in: group), "nobody says so within a second")
            try await cluster.start([2])
            #expect(try await client == "phone")
            await cluster.stop()
        }

        @Test("a webhook is told by a node on which others wait for as much as they may")
        func crowdedNode() async throws {
            try await inWorld(["ann"], watchesMax: 1) { world in
                let (receiver, ann) = (Receiver(), Self.database(of: "ann"))
                let ticket = try world.service.watches.enter(StoreKey(home: ann), group: ann.home(in: world.service))
                _ = try await world.webhook(to: receiver)
                try await world.change("a", of: ann)
                try await awaitTrue("it is told") { receiver.deliveries.contains { Receiver.zones(in: $0) == ["a"] } }
                withExtendedLifetime(ticket) {}
            }
        }

        @Test("a delivery that a stopping node breaks off counts as no failure")
        func brokenOff() async throws {
            try await inWorld(["ann"]) { world in
                let receiver = SilentReceiver()
                let webhook = try await world.webhook(to: receiver)
                try await awaitTrue("it has a place in its log") {
                    try await !WebhookReader.load(webhook, in: world.service).progress.position.isEmpty
                }
                try await world.change("a", of: Self.database(of: "ann"))
                try await awaitTrue("it is being told") { receiver.isAsked }
                await world.service.webhooks.stop()
                let progress = try await WebhookReader.load(webhook, in: world.service).progress
                #expect(progress.current?.failures == 0 && progress.attempts.isEmpty, "\(progress)")
            }
        }

        @Test("a node that may lag behind the directory passes nothing by in the log of a webhook")
        func laggingNode() async throws {
            let cluster = try await TestCluster.started(nodeCount: 2) {
                $0.replicasPerShard = 1
                $0.encryptionKey = [UInt8](repeating: 3, count: 32)
                // So long the requests wait for the other node below.
                $0.requestDeadlineMilliseconds = 2_400
            }
            let node = try cluster.node(1)
            let service = RecordService(node: node, logger: Logger(label: "test"))
            let webhooks = (0..<100).map { number in
                Webhook(
                    container: Self.key.container, environment: Self.key.environment, name: "hook", id: "\(number)",
                    url: "https://hooks.example.com/")
            }
            let found = try await awaitState("node 1 leads the home of one") {
                webhooks.first { node.leads($0.subscriber.home(in: service)) }
            } until: {
                $0 != nil
            }
            let webhook = try #require(found)
            let log = WebhookLog(service: service, webhook: webhook)
            try await awaitTrue("the log is read") { try await log.page(after: []) != nil }
            await cluster.stop([2])
            try await awaitTrue("the lease ends") {
                do { try await node.requireDirectory() } catch { return true }
                return false
            }
            await #expect(throws: RequestFailure.self) { try await log.page(after: []) }
            await cluster.stop()
        }

        @Test("a restore that takes a webhook back to before its first delivery is told, under an id that none had")
        func restoredWebhook() async throws {
            try await inWorld(["ann"]) { world in
                let (service, receiver, ann) = (world.service, Receiver(), Self.database(of: "ann"))
                let webhook = try await world.webhook(to: receiver)
                let backup = try await awaitState("it has a place in its log") {
                    try await WebhookReader.load(webhook, in: service).progress
                } until: {
                    !$0.position.isEmpty
                }
                try await world.change("a", of: ann)
                var reader = try await awaitState("a is told") {
                    try await WebhookReader.load(webhook, in: service)
                } until: {
                    !$0.progress.attempts.isEmpty && $0.progress.current == nil
                }
                reader.progress = backup
                try await reader.save(webhook, in: service)
                try await NewIncarnation(of: world.node).begin(1_000)
                try await world.change("b", of: ann)
                let all = try await awaitState("b is told") {
                    receiver.deliveries
                } until: {
                    $0.contains { Receiver.zones(in: $0).contains("b") }
                }
                let lost = try #require(all.firstIndex { $0["lost"] == .bool(true) })
                #expect(all[..<lost].allSatisfy { Receiver.zones(in: $0) == ["a"] })
                let ids = all.compactMap { $0["id"]?.string }
                #expect(Set(ids).count == all.count, "\(ids)")
            }
        }

        @Test("after a restore a token goes on with what is kept, and with what comes")
        func tokenLoss() async throws {
            try await inWorld(["ann"]) { world in
                let ann = Self.database(of: "ann")
                try await world.subscribe(ann)
                let tokens = DeviceTokens(world.service)
                let device = DeviceTokens.Device(store: StoreKey(home: ann), accountID: "ann", client: nil)
                let token = try await tokens.create(device, .development)
                func zone() async throws -> String? {
                    let payload = try await tokens.next(token, address: nil)
                    return try payload.flatMap { try JSONParser.parse($0)["ck"]?["met"]?["zid"]?.string }
                }
                try await world.change("a", of: ann)
                #expect(try await zone() == "a")
                try await NewIncarnation(of: world.node).begin(1_000)
                try await world.change("b", of: ann)
                #expect(try await zone() == "a")
                #expect(try await zone() == "b")
            }
        }
    }
}
