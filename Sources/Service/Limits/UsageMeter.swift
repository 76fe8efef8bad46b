import Authorization
import Cluster
package import Directory
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

    private let counts = Mutex<[DatabaseKey: Count]>([:])
    private let node: ClusterNode
    private let quotas: DatabaseQuotas
    private let work: PeriodicTask

    init(on node: ClusterNode, quotas: DatabaseQuotas) {
        self.node = node
        self.quotas = quotas
        work = PeriodicTask(platform: node.platform)
    }

    private var month: UInt64 { QuotaTransfer.month(of: node.platform.clock.wallMilliseconds) }

    /// Counts bytes that a request for public data and its answer carried.
    ///
    /// What callers without a session carried is in memory: a node that is restarted begins at 0.
    /// - Parameter name: who asked, as the stamps of records name them. What callers without a session carry beyond
    ///   their part of the month is not counted: it would be taken from the users.
    package func carried(_ bytes: Int, for database: DatabaseKey, of name: String) {
        guard database.scope == .public else { return }
        guard name == Caller.anonymousName else {
            return counts.withLock { $0[database, default: Count()].waiting += Int64(bytes) }
        }
        let (month, limit) = (month, strangersLimit(of: database, in: node.directory.snapshot))
        counts.withLock { counts in
            var count = counts[database, default: Count()]
            if count.strangers.month != month { count.strangers = (month, 0) }
            let counted = min(Int64(bytes), max(0, limit - count.strangers.bytes))
            count.strangers.bytes += counted
            count.waiting += counted
            counts[database] = count
        }
    }

    /// Bytes that this node lets callers without a session carry in a month: a quarter of the container's, in equal
    /// parts for the nodes.
    private func strangersLimit(of database: DatabaseKey, in directory: DirectorySnapshot) -> Int64 {
        let limit = ContainerUsage.transferLimit(of: database, in: directory)
        return limit == ContainerLimit.unlimited ? limit : limit / 4 / Int64(max(1, node.map.nodes.count))
    }

    private func strangersTransfer(of database: DatabaseKey) -> Int64 {
        let month = month
        return counts.withLock { counts in
            counts[database].flatMap { $0.strangers.month == month ? $0.strangers.bytes : nil } ?? 0
        }
    }

    /// - Parameter name: who asks, as the stamps of records name them.
    /// - Throws: `QUOTA_EXCEEDED` where the month's transfer of public data, or the part of callers without a session,
    ///   is used up, which keeps data from growing and nothing else.
    func requireTransfer(
        for database: DatabaseKey, of name: String, in directory: DirectorySnapshot, by deadline: Deadline
    ) async throws(RequestFailure) {
        guard database.scope == .public else { return }
        if name == Caller.anonymousName {
            let (used, part) = (strangersTransfer(of: database), strangersLimit(of: database, in: directory))
            let who = "callers without a session of container '\(database.container)' have, through this node,"
            if used >= part { throw Self.transferUsedUp(who, used, part) }
        }
        let (used, limit) = try await transfer(of: database, in: directory, by: deadline)
        if used >= limit { throw Self.transferUsedUp("container '\(database.container)' has", used, limit) }
    }

    private static func transferUsedUp(_ who: String, _ used: Int64, _ limit: Int64) -> RequestFailure {
        var failure = RequestFailure(
            .quotaExceeded,
            "\(who) carried \(used) of the \(limit) bytes that are allowed in a month; reading and deleting go on, "
                + "saving does when the month ends or the limit is raised (`zonekeeper limits set`)")
        failure.rule = RequestRefusal(
            rule: ContainerLimit.transferBytesPerMonth.rawValue, limit: limit, used: used)
        return failure
    }

    /// The bytes that this month's requests for a public database carried, as this node knows, and may carry.
    package func transfer(
        of database: DatabaseKey, in directory: DirectorySnapshot, by deadline: Deadline
    ) async throws(RequestFailure) -> (used: Int64, limit: Int64) {
        let limit = ContainerUsage.transferLimit(of: database, in: directory)
        let month = month
        if limit != ContainerLimit.unlimited, !knows(database, month: month) {
            learn(database, try await quotas.ledger(of: database, by: deadline), month: month)
        }
        return (transfer(of: database, month: month), limit)
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
    private func learn(_ database: DatabaseKey, _ ledger: LedgerState, month: UInt64) {
        let total = ledger.transferMonth >= month ? Int64(clamping: ledger.transferBytes) : 0
        counts.withLock { counts in
            guard counts[database]?.month != month else { return }
            counts[database, default: Count()].total = total
            counts[database]?.month = month
        }
    }

    func start() {
        work.start(everyMilliseconds: Self.intervalMilliseconds) { [weak self] in await self?.flush() }
    }

    /// Ends the work beside the requests, after bringing what waits.
    func stop() async {
        work.stop()
        await flush()
    }

    private func flush() async {
        let waiting = counts.withLock { counts in
            let waiting = counts.filter { $0.value.waiting > 0 }
            for (database, count) in waiting {
                counts[database]?.waiting = 0
                counts[database]?.sending += count.waiting
            }
            return waiting
        }
        let month = month
        for (database, count) in waiting.sorted(by: { $0.key.container < $1.key.container }) {
            let command = QuotaCommand.addTransfer(
                QuotaTransfer(ledger: database, month: month, bytes: UInt64(count.waiting)))
            var (total, isKept) = (Int64?.none, false)
            do {
                let bytes = try await node.router.submit(
                    GroupCommand(ShardCommand.record(.quota(command))), to: quotas.ledgerGroup(of: database),
                    by: node.deadline())
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
        /// The database; without an owner where only sums were asked for.
        package var key: DatabaseKey
        /// Of the whole database, also where the page tells of some of its zones only.
        package var used = QuotaAmounts.zero
        /// What its shards may hold in all without asking the ledger; zero where only sums were asked for.
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
            pages.append(
                try unpacked(try await service.cluster.answer(to: .usage(request), from: group, by: deadline).bytes))
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
