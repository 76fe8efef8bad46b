import Cluster
package import Directory
import RaftCore
package import RecordModel
package import RecordStore

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
            guard case .found(let found) = try await service.read(.usage(request), from: group, by: deadline) else {
                throw RequestFailure(.internalError, "the shard gave an answer to another question")
            }
            pages.append(try unpacked(found.bytes))
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
        let limit = directory.limits(of: database.container).transferBytesPerMonth(
            users: directory.userCount(of: database.container))
        let month = QuotaTransfer.month(of: service.now)
        if limit != ContainerLimit.unlimited, !service.usage.knows(database, month: month) {
            service.usage.learn(database, try await service.ledger(of: database, by: deadline), month: month)
        }
        return (service.usage.transfer(of: database, month: month), limit)
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
