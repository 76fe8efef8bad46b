import Cluster
package import Directory
import RaftCore
package import RecordModel
package import RecordStore
import Synchronization
import Wire

/// Counts what requests for public data carry, and brings the sums to the containers' ledgers about every second.
///
/// A node that is killed loses what it counted since: the month's figure may be low by a second's traffic of a node,
/// never high.
package final class UsageMeter: Sendable {
    private struct Count {
        /// Not yet brought to the ledger.
        var waiting: Int64 = 0
        /// On its way there.
        var sending: Int64 = 0
        /// What the ledger said last when it was asked in that month, by this node's clock.
        var total: Int64 = 0
        var month: UInt64 = 0
        /// What callers without a session carried through this node in a month, as far as it was counted.
        var strangers: (month: UInt64, bytes: Int64) = (0, 0)
    }

    private static let intervalMilliseconds: UInt64 = 1_000
    /// Databases whose last warning is remembered.
    private static let warnedMax = 10_000

    private let counts = Mutex<[DatabaseKey: Count]>([:])
    /// A level is told again after an hour: what is deleted and filled again on one shard changes nothing in the
    /// ledger.
    private static let warnAgainMilliseconds: Int64 = 3_600_000

    /// Where requests wait that lack some of a database's quota.
    let allotments = EscrowRequests()
    private let warned = Mutex<[DatabaseKey: (level: QuotaWarning, time: Int64)]>([:])
    private let work: PeriodicTask

    init(platform: any NodePlatform) { work = PeriodicTask(platform: platform) }

    /// Counts the bytes of a request and its answer.
    func carried(_ bytes: Int, for database: DatabaseKey) {
        guard database.scope == .public else { return }
        counts.withLock { $0[database, default: Count()].waiting += Int64(bytes) }
    }

    /// Counts the bytes of a request without a session and its answer, up to so many in a month.
    ///
    /// It is in memory: a node that is restarted begins at 0.
    func carriedByStrangers(_ bytes: Int, for database: DatabaseKey, month: UInt64, max: Int64) {
        guard database.scope == .public else { return }
        counts.withLock { counts in
            var count = counts[database, default: Count()]
            if count.strangers.month != month { count.strangers = (month, 0) }
            let counted = min(Int64(bytes), Swift.max(0, max - count.strangers.bytes))
            count.strangers.bytes += counted
            count.waiting += counted
            counts[database] = count
        }
    }

    /// Bytes that callers without a session carried through this node in the month.
    func strangersTransfer(of database: DatabaseKey, month: UInt64) -> Int64 {
        counts.withLock { counts in
            counts[database].flatMap { $0.strangers.month == month ? $0.strangers.bytes : nil } ?? 0
        }
    }

    /// Bytes carried in the month, as far as this node knows.
    package func transfer(of database: DatabaseKey, month: UInt64) -> Int64 {
        counts.withLock { counts in
            guard let count = counts[database] else { return 0 }
            return count.waiting + count.sending + (count.month == month ? count.total : 0)
        }
    }

    /// Whether the ledger told of the month.
    func knows(_ database: DatabaseKey, month: UInt64) -> Bool {
        counts.withLock { $0[database]?.month == month }
    }

    /// Takes over what the ledger says, unless it told meanwhile what it counted.
    func learn(_ database: DatabaseKey, _ ledger: LedgerState, month: UInt64) {
        let total = ledger.transferMonth >= month ? Int64(clamping: ledger.transferBytes) : 0
        counts.withLock { counts in
            guard counts[database]?.month != month else { return }
            counts[database, default: Count()].total = total
            counts[database]?.month = month
        }
    }

    /// Tells that a database comes near its quota: once a level and node, and again where it was farther from it
    /// meanwhile or an hour has passed.
    /// - Parameter level: nil where it is not near.
    func warn(_ database: DatabaseKey, _ level: QuotaWarning?, now: Int64, _ tell: (String) -> Void) {
        let isNew = warned.withLock { warned in
            guard let level else {
                warned[database] = nil
                return false
            }
            if let last = warned[database], last.level >= level, now - last.time < Self.warnAgainMilliseconds {
                warned[database]?.level = level
                return false
            }
            if warned.count >= Self.warnedMax { warned.removeAll() }
            warned[database] = (level, now)
            return true
        }
        guard isNew, let level else { return }
        let whose = database.scope == .public ? "the public database" : "the private data of \(database.owner)"
        tell(
            "quota: \(whose) in container '\(database.container)' (\(database.environment.rawValue)) has taken "
                + "\(level.share) of what it may; see `zonekeeper usage --container \(database.container)`")
    }

    func start(_ service: RecordService) {
        work.start(everyMilliseconds: Self.intervalMilliseconds) { [weak self] in await self?.flush(service) }
    }

    /// Ends the work beside the requests, after bringing what waits.
    func stop(_ service: RecordService) async {
        work.stop()
        await flush(service)
    }

    private func flush(_ service: RecordService) async {
        let waiting = counts.withLock { counts in
            let waiting = counts.filter { $0.value.waiting > 0 }
            for (database, count) in waiting {
                counts[database]?.waiting = 0
                counts[database]?.sending += count.waiting
            }
            return waiting
        }
        let month = QuotaTransfer.month(of: service.now)
        for (database, count) in waiting.sorted(by: { $0.key.container < $1.key.container }) {
            let command = QuotaCommand.addTransfer(
                QuotaTransfer(ledger: database, month: month, bytes: UInt64(count.waiting)))
            var (total, isKept) = (Int64?.none, false)
            do {
                let bytes = try await service.node.router.submit(
                    GroupCommand(ShardCommand.record(.quota(command))), to: service.ledgerGroup(of: database),
                    by: service.deadline())
                // A ledger does not take a month that is to come: then its own counts here too.
                if case .quota(.transfer(_, let sum)) = try RecordOutcome(decoding: bytes) {
                    total = Int64(clamping: sum)
                }
            } catch ClusterError.unavailable {
                isKept = true
            } catch {
                // Counted or not: counting it twice would be worse than losing a second's traffic.
            }
            counts.withLock { [total, isKept] counts in
                counts[database]?.sending -= count.waiting
                if isKept { counts[database]?.waiting += count.waiting }
                guard let total else { return }
                counts[database]?.total = total
                counts[database]?.month = month
            }
        }
    }
}

/// What the databases of a container environment hold, gathered from all shards.
package struct ContainerUsage {
    /// One database over all shards.
    package struct Database {
        package var key: DatabaseKey
        /// Of the whole database, also where the page tells of some of its zones only.
        package var used = QuotaAmounts.zero
        package var allotted = QuotaAmounts.zero
        /// By name in byte order; a zone is on one shard.
        package var zones: [ZoneUsage] = []
        /// What shards' counters have beyond the sums of their zones', where a recount was asked for and this is the
        /// first page to tell of the database.
        package var unattributed: [QuotaAmounts] = []

        /// What the recounts of this page make of `used`.
        package var recount: QuotaAmounts {
            var sum = unattributed.reduce(used) { $0 - $1 }
            for zone in zones { sum = sum + ((zone.recount ?? zone.used) - zone.used) }
            return sum
        }

        /// Whether each shard's and each zone's counters are right: faults that make up for each other are faults.
        package var isEqual: Bool {
            unattributed.allSatisfy { $0 == .zero } && zones.allSatisfy { $0.recount == nil || $0.recount == $0.used }
        }
    }

    /// By scope and owner.
    package var databases: [Database] = []
    /// Where the page ends, if another one follows.
    package var next: UsagePosition?

    /// Asks every shard for its next page; what all of them have told of is complete.
    package static func page(
        _ request: UsageRequest, in service: RecordService, by deadline: Deadline
    ) async throws(RequestFailure) -> ContainerUsage {
        var pages: [UsagePage] = []
        for group in service.node.map.groups.dropFirst() {
            pages.append(try unpacked(try await service.answer(to: .usage(request), from: group, by: deadline).bytes))
        }
        return ContainerUsage(pages, of: request)
    }

    /// One page out of one page of each shard.
    init(_ pages: [UsagePage], of request: UsageRequest) {
        next = pages.compactMap(\.next).min()
        var sums: [DatabaseKey: Database] = [:]
        for part in pages.flatMap(\.databases) { sums[part.key, default: Database(key: part.key)].add(part) }
        databases = sums.values.sorted { UsagePosition(database: $0.key) < UsagePosition(database: $1.key) }
        if let after = request.after, after.zone != nil {
            // The page before told of it.
            for position in databases.indices where databases[position].key == after.database {
                databases[position].unattributed = []
            }
        }
        guard let next else { return }
        databases.removeAll { UsagePosition(database: $0.key, zone: "") > next }
        for position in databases.indices where databases[position].key == next.database {
            let key = databases[position].key
            databases[position].zones.removeAll { UsagePosition(database: key, zone: $0.name) > next }
        }
    }

    /// What one database holds; nothing where no shard knows it.
    package static func used(
        _ database: DatabaseKey, in service: RecordService, by deadline: Deadline
    ) async throws(RequestFailure) -> QuotaAmounts {
        try await page(UsageRequest(of: database), in: service, by: deadline).databases.first?.used ?? .zero
    }

    /// The bytes that this month's requests for a public database carried, as this node knows, and may carry.
    package static func transfer(
        of database: DatabaseKey, in service: RecordService, _ directory: DirectorySnapshot, by deadline: Deadline
    ) async throws(RequestFailure) -> (used: Int64, limit: Int64) {
        let limit = transferLimit(of: database, in: directory)
        let month = QuotaTransfer.month(of: service.now)
        if limit != ContainerLimit.unlimited, !service.usage.knows(database, month: month) {
            service.usage.learn(database, try await service.ledger(of: database, by: deadline), month: month)
        }
        return (service.usage.transfer(of: database, month: month), limit)
    }

    /// The bytes that a month's requests for a public database may carry.
    static func transferLimit(of database: DatabaseKey, in directory: DirectorySnapshot) -> Int64 {
        directory.limits(of: database.container).transferBytesPerMonth(
            users: directory.userCount(of: database.container))
    }
}

extension ContainerUsage.Database {
    fileprivate mutating func add(_ part: DatabaseUsage) {
        used = used + part.used
        allotted = allotted + part.allotted
        zones = (zones + part.zones).sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        unattributed.append(part.unattributed)
    }
}
