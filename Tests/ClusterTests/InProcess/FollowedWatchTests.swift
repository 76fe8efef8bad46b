import Authorization
import Cluster
import Directory
import KeyValueStore
import Logging
import RaftCore
import RecordModel
import RecordStore
import TestSupport
import Testing

@testable import Service

extension ClusterSuites {
    @Suite("Watches on nodes that do not lead")
    struct FollowedWatchTests {
        private static let subscriber = DatabaseKey(
            container: "iCloud.test", environment: .development, scope: .private,
            owner: Account.userRecordName(accountID: "ann", container: "iCloud.test"))

        @Test("a change is heard of from the leader, however far this node's replica is behind")
        func heard() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                settings.encryptionKey = [UInt8](repeating: 3, count: 32)
                settings.shardCount = 1
                settings.requestDeadlineMilliseconds = 3_600_000
                // What a follower applies comes much too late to wake anybody.
                settings.apply.followerDelayMilliseconds = 3_600_000
                settings.apply.followerEntriesMax = .max
            }
            let services = try cluster.nodes.keys.sorted().map { id in
                RecordService(node: try cluster.node(id), logger: Logger(label: "test"))
            }
            for service in services { service.start() }
            let first = try #require(services.first)
            let home = Self.subscriber.home(in: first)
            try await awaitTrue("the shard knows notifications") {
                await first.node.levels.has(.exactNotifications, in: home)
            }
            try await subscribe(at: first, home)
            for count in 1...3 {
                async let change: Void = change("zone\(count)", at: first)
                for service in services { try await watch(service, home, until: count) }
                try await change
            }
            for service in services { await service.stop() }
            await cluster.stop()
        }

        /// Looks at the log, and again whenever something wakes it, until it has so many notifications.
        private func watch(_ service: RecordService, _ home: GroupID, until count: Int) async throws {
            let store = StoreKey(home: Self.subscriber)
            let notifications = Notifications(service, store, accountID: "ann", client: nil)
            let ticket = try service.watches.enter(store, group: home)
            while true {
                service.watches.begin(ticket)
                let page = try await notifications.page(after: nil, limit: 10, by: service.deadline())
                if page.changes >= count { return }
                let wake = await service.watches.wait(ticket, until: .max)
                try #require(wake == .changed || wake == .recheck)
            }
        }

        private func subscribe(at service: RecordService, _ home: GroupID) async throws {
            let command = ModifySubscriptions(
                subscriber: Self.subscriber, home: home.rawValue, time: service.now,
                changes: [
                    .save(Subscription(id: "all", scope: .private, kind: .database), targets: [home.rawValue])
                ])
            let outcome = try await service.cluster.submit(
                .subscriptions(command), to: home, by: service.deadline(), as: SubscriptionsOutcome.self)
            try #require(outcome.failures == [nil])
            try await service.awaitCopies(outcome.marks, from: home, by: service.deadline())
        }

        private func change(_ zone: String, at service: RecordService) async throws {
            let key = ZoneKey(database: Self.subscriber, name: zone)
            let command = ModifyZone(
                .create, zone: key, caller: Caller(user: Self.subscriber.owner), time: service.now)
            let outcome: RecordOutcome = try await service.cluster.submit(
                .record(.modifyZone(command)), to: service.node.map.group(of: key), by: service.deadline())
            guard case .zone = outcome else { throw TestFailure("\(outcome)") }
        }
    }
}
