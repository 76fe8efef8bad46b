import ArgumentParser
import Authorization
import Foundation
import GRDB
import RecordModel
import RecordStore

/// `store-benchmarks subscriptions`: what subscriptions cost a save.
struct SubscriptionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriptions",
        abstract: "CPU of a save with subscriptions on its type; and of looking for webhooks' ones, too."
    )

    @Option(help: "Saves of each measurement.") var saves = 2_000
    @Option(help: "Measurements of each; the least counts.") var rounds = 5

    func run() throws {
        try compareSaves()
        try tellAll()
    }

    private func compareSaves() throws {
        var open = try [0, 10, 10_000].map { count in
            (name: "public, \(count) subscriptions to EQUALS", shard: try SubscribedShard(watchers: count))
        }
        for comparator in [RecordModel.Comparator.greaterThan, .lessThan, .in, .notEquals] {
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

    /// Each save matches, so its cost is that of telling: what the shard of the record does, without the logs of those
    /// who are told.
    private func tellAll() throws {
        let (watchers, saves) = (10_000, max(1, saves / 400))
        let shard = try SubscribedShard(watchers: watchers, nil)
        var best = Double.infinity
        for round in 0..<rounds { best = min(best, try shard.save(saves, round: round, isToldOf: true)) }
        let name = "public, \(watchers) subscriptions without a filter"
        print(name.padding(toLength: 56, withPad: " ", startingAt: 0), terminator: "")
        print(String(format: "%8.1f us of CPU a save, %.1f a notification", best, best / Double(watchers)))
    }
}

/// A shard in memory with records of one type that public queries watch: those with a filter want other values.
private struct SubscribedShard {
    private let queue: DatabaseQueue
    private let tables = RecordTables()
    private let zone: ZoneKey
    private let level: FeatureLevel
    private static let caller = Caller(user: "_ann")

    /// - Parameters:
    ///   - comparator: nil: each record of the type is wanted.
    ///   - isPrivate: whether the records are in a custom zone of a user's.
    ///   - level: below that of webhooks nobody looks for those who watch the databases of all users.
    init(
        watchers: Int = 0, _ comparator: RecordModel.Comparator? = .equals, isPrivate: Bool = false,
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

    private static func watcher(_ number: Int, _ comparator: RecordModel.Comparator?) -> Watcher {
        var subscription = Subscription(id: "s", scope: .public, kind: .query)
        subscription.recordType = "Item"
        subscription.query = Query(
            recordType: "Item", filters: comparator.map { [unmetFilter(number, $0)] } ?? [])
        subscription.firing = .all
        let user = DatabaseKey(container: "app", environment: .production, scope: .private, owner: "_u\(number)")
        return Watcher(subscriber: user, home: 1, subscription: subscription)
    }

    /// No record has a rank below 0, nor one of a thousand millions; all have 1 in the other field.
    private static func unmetFilter(_ number: Int, _ comparator: RecordModel.Comparator) -> Filter {
        let bound = FieldValue.int64(Int64(-1 - number))
        return switch comparator {
        case .greaterThan: Filter(field: "rank", comparator: comparator, value: .int64(1_000_000_000))
        case .notEquals: Filter(field: "other", comparator: comparator, value: .int64(1))
        case .in: Filter(field: "rank", comparator: comparator, value: .list(.int64, [bound]))
        default: Filter(field: "rank", comparator: comparator, value: bound)
        }
    }

    /// Matches a part of what waits, and takes what is to be told as delivered.
    /// - Returns: whether more waits.
    private func settlePart() throws -> Bool {
        try queue.write { db in
            let transaction = try tables.begin(in: db, level: level)
            let outcome = try transaction.apply(.maintain(Maintain(time: 1_000, rowsMax: 10_000)))
            while let next = try WaitingEffects.nextDelivery(from: 2, to: 1, in: db) {
                try transaction.acknowledge(
                    OutboxAcknowledgement(destination: 1, incarnation: next.incarnation, through: next.last))
            }
            try transaction.finish()
            return outcome == .maintained(hasMore: true)
        }
    }

    /// Microseconds of this process's CPU for each of some saves, in a transaction each.
    /// - Parameter isToldOf: whether all who are to be told of one are told before the next.
    func save(_ count: Int, round: Int, isToldOf: Bool = false) throws -> Double {
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
            if isToldOf { while try settlePart() {} }
        }
        return (Self.cpuSeconds - begin) / Double(count) * 1e6
    }

    private static var cpuSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
