import ArgumentParser
import Authorization
import Foundation
import GRDB
import RecordModel
import RecordStore

/// `store-benchmarks subscriptions`: what subscriptions that do not match cost a save.
struct SubscriptionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriptions",
        abstract: "CPU of a save with subscriptions on its type, none matching; and of looking for webhooks' ones, too."
    )

    @Option(help: "Saves of each measurement.") var saves = 2_000
    @Option(help: "Measurements of each; the least counts.") var rounds = 5

    func run() throws {
        var open = try [0, 10, 10_000].map { count in
            (name: "public, \(count) subscriptions to EQUALS", shard: try SubscribedShard(watchers: count))
        }
        for comparator in [RecordModel.Comparator.greaterThan, .lessThan, .in] {
            open.append(
                (
                    name: "public, 10000 subscriptions to \(comparator.rawValue)",
                    shard: try SubscribedShard(watchers: 10_000, comparator)
                ))
        }
        let own = try [(FeatureLevel.exactNotifications, "the owner's"), (.webhooks, "and everybody's")].map {
            (name: "private, \($1) looked up", shard: try SubscribedShard(isPrivate: true, at: $0))
        }
        for cases in [open, own] {
            var best = cases.map { _ in Double.infinity }
            for round in 0..<rounds {
                for (place, each) in cases.enumerated() {
                    best[place] = min(best[place], try each.shard.save(saves, round: round))
                }
            }
            for (place, each) in cases.enumerated() {
                print(each.name.padding(toLength: 56, withPad: " ", startingAt: 0), terminator: "")
                print(String(format: "%8.1f us of CPU a save, %.0f %%", best[place], best[place] / best[0] * 100))
            }
        }
    }
}

/// A shard in memory with records of one type that public queries watch which want other values.
private struct SubscribedShard {
    private let queue: DatabaseQueue
    private let tables = RecordTables()
    private let zone: ZoneKey
    private let level: FeatureLevel
    private static let caller = Caller(user: "_ann")

    /// - Parameters:
    ///   - isPrivate: whether the records are in a custom zone of a user's.
    ///   - level: below that of webhooks nobody looks for those who watch the databases of all users.
    init(
        watchers: Int = 0, _ comparator: RecordModel.Comparator = .equals, isPrivate: Bool = false,
        at level: FeatureLevel = FeatureLevel.supported.upperBound
    ) throws {
        queue = try DatabaseQueue()
        self.level = level
        let database = DatabaseKey(
            container: "app", environment: .production, scope: isPrivate ? .private : .public,
            owner: isPrivate ? "_ann" : DatabaseKey.publicOwner)
        zone = ZoneKey(database: database, name: isPrivate ? "notes" : ZoneKey.defaultZoneName)
        let fields = ["rank", "other"].map {
            FieldDefinition(name: $0, type: FieldType(.int64), indexes: [.queryable, .sortable])
        }
        let grants = [
            Grant(role: "_world", permissions: .read), Grant(role: "_icloud", permissions: .create),
            Grant(role: "_creator", permissions: .write),
        ]
        let schema = Schema(types: [RecordType(name: "Item", fields: fields, grants: grants)])
        try queue.write { db in
            try RecordTables.create(in: db)
            _ = try tables.apply(
                .installSchema(
                    InstallSchema(container: "app", environment: .production, version: 1, schema: schema)), in: db)
            if isPrivate {
                let make = ModifyZone(.create, zone: zone, caller: Self.caller, time: 1_000)
                _ = try tables.apply(.modifyZone(make), in: db)
            }
            guard watchers > 0 else { return }
            let transaction = try tables.begin(in: db)
            let effects = (0..<watchers).map { Effect.watch(Self.watcher($0, comparator)) }
            _ = try transaction.deliver(OutboxDelivery(source: 1, incarnation: 1, first: 1, effects: effects))
            try transaction.finish()
        }
    }

    private static func watcher(_ number: Int, _ comparator: RecordModel.Comparator) -> Watcher {
        var subscription = Subscription(id: "s", scope: .public, kind: .query)
        subscription.recordType = "Item"
        // No record has a rank below 0, nor one of a thousand millions.
        let bound = FieldValue.int64(comparator == .greaterThan ? 1_000_000_000 : Int64(-1 - number))
        subscription.query = Query(
            recordType: "Item",
            filters: [
                Filter(field: "rank", comparator: comparator, value: comparator == .in ? .list(.int64, [bound]) : bound)
            ])
        subscription.firing = .all
        let user = DatabaseKey(container: "app", environment: .production, scope: .private, owner: "_u\(number)")
        return Watcher(subscriber: user, home: 1, subscription: subscription)
    }

    /// Microseconds of this process's CPU for each of some saves, in a transaction each.
    func save(_ count: Int, round: Int) throws -> Double {
        let begin = Self.cpuSeconds
        for number in 0..<count {
            let change = RecordChange(
                .create, "r\(round)-\(number)", type: "Item",
                fields: [
                    .init(name: "rank", value: .int64(Int64(number))), .init(name: "other", value: .int64(1)),
                ])
            let command = ModifyRecords(
                zone: zone, schemaVersion: 1, caller: Self.caller, time: 1_000, operations: [change])
            let outcome = try queue.write { db in
                let transaction = try tables.begin(in: db, level: level)
                let outcome = try transaction.apply(.modifyRecords(command))
                try transaction.finish()
                return outcome
            }
            guard case .records(let items) = outcome, case .saved? = items.first else { fatalError("\(outcome)") }
        }
        return (Self.cpuSeconds - begin) / Double(count) * 1e6
    }

    private static var cpuSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
