import Cluster
package import Directory
import Logging
import RaftCore
package import RecordModel
package import RecordStore
import Synchronization

/// How much there may be: what databases may hold, and the allotments that shards ask ledgers for before a database
/// grows on them.
package final class DatabaseQuotas: Sendable {
    private let node: ClusterNode
    private let cluster: ClusterCalls
    private let logger: Logger
    /// Where requests wait that lack some of a database's quota.
    private let allotments = EscrowRequests()
    private let warned = Mutex<[DatabaseKey: (level: QuotaWarning, time: Int64)]>([:])

    /// Databases whose last warning is remembered.
    private static let warnedMax = 10_000
    /// A level is told again after an hour: what is deleted and filled again on one shard changes nothing in the
    /// ledger.
    private static let warnAgainMilliseconds: Int64 = 3_600_000

    init(on node: ClusterNode, logger: Logger) {
        self.node = node
        self.logger = logger
        cluster = ClusterCalls(of: node)
    }

    /// Milliseconds since 1970.
    var now: Int64 { node.platform.clock.wallMilliseconds }

    /// What a database may hold, by the limits of a directory, and their version.
    package func quota(
        of database: DatabaseKey, in directory: DirectorySnapshot
    ) -> (cap: QuotaAmounts, epoch: UInt64) {
        let limits = directory.limits(of: database.container)
        var cap =
            switch database.scope {
            case .public:
                QuotaAmounts(
                    bytes: limits.databaseBytes(users: directory.userCount(of: database.container)),
                    records: limits[.databaseRecords],
                    assets: limits.assetBytes(users: directory.userCount(of: database.container)))
            case .private, .shared:
                QuotaAmounts(
                    bytes: limits[.userBytes], records: limits[.userRecords], assets: limits[.userAssetBytes])
            }
        // Builds from before assets do not know the field, and there are none while they take part.
        if !node.hasAssets { cap.assets = 0 }
        return (cap, directory.limitsEpoch(of: database.container))
    }

    func ledgerGroup(of database: DatabaseKey) -> GroupID {
        node.map.group(of: ZoneKey(database: database, name: "_ledger"))
    }

    func submit(
        _ command: QuotaCommand, to group: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) -> QuotaOutcome {
        switch try await cluster.submit(.record(.quota(command)), to: group, by: deadline) {
        case .quota(let outcome): return outcome
        case .refused(let error): throw RequestFailure(error)
        default: throw .otherAnswer
        }
    }

    /// Has a shard allotted what a command lacks of a database's quota, or this node told of the newer limits that the
    /// shard knows.
    ///
    /// The ledger gives some more than is needed, so that few saves have to ask. Where it has not enough left, the
    /// other shards give back what they do not use; where that is not enough either, this shard gets whatever is left.
    /// - Returns: whether to try the command again as it was; if not, what does not fit is over the quota.
    func allot(
        _ need: QuotaNeed, under terms: QuotaTerms, of database: DatabaseKey, to shard: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) -> Bool {
        guard need.epoch <= terms.epoch else {
            try await cluster.refreshDirectory()
            return true
        }
        let place = EscrowRequests.Place(database: database, shard: shard)
        return try await allotments.ask(need, at: place) { ask in
            do throws(RequestFailure) {
                let escrow = QuotaEscrow(quotas: self, ask: ask, terms: terms, place: place, deadline: deadline)
                return .success(try await escrow.run())
            } catch {
                return .failure(error)
            }
        }
    }

    /// What a database's ledger knows.
    package func ledger(of database: DatabaseKey, by deadline: Deadline) async throws(RequestFailure) -> LedgerState {
        try unpacked(
            try await cluster.answer(to: .ledger(database), from: ledgerGroup(of: database), by: deadline).bytes)
    }

    /// What a shard holds of a database; nil where it does not know it.
    func usage(
        of database: DatabaseKey, on shard: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) -> DatabaseUsage? {
        guard
            case .found(let answer) = try await cluster.read(
                .usage(UsageRequest(of: database)), from: shard, by: deadline)
        else { throw .otherAnswer }
        return try unpacked(answer.bytes, as: UsagePage.self).databases.first
    }

    func isShard(_ group: GroupID) -> Bool { node.map.groups.contains(group) }

    /// Logs that a database comes near its quota: once a level and node, and again where it was farther from it
    /// meanwhile or an hour has passed.
    func warn(_ database: DatabaseKey, cap: QuotaAmounts, free: QuotaAmounts) {
        let (level, now) = (QuotaWarning(cap: cap, free: free), now)
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
        let text =
            "quota: \(whose) in container '\(database.container)' (\(database.environment.rawValue)) has taken "
            + "\(level.share) of what it may; see `zonekeeper usage --container \(database.container)`"
        logger.warning("\(text)")
    }
}

/// How near a quota is.
package enum QuotaWarning: Int, Hashable, Sendable, Comparable {
    case eighty = 80
    case ninety = 90
    case full = 100

    /// - Parameter free: what is left of the cap.
    package init?(cap: Int64, free: Int64) {
        guard cap > 0, cap != ContainerLimit.unlimited else { return nil }
        let used = Double(cap - min(free, cap)) / Double(cap)
        switch used {
        case 1...: self = .full
        case 0.9...: self = .ninety
        case 0.8...: self = .eighty
        default: return nil
        }
    }

    /// By what is nearest.
    init?(cap: QuotaAmounts, free: QuotaAmounts) {
        let warnings = [
            Self(cap: cap.bytes, free: free.bytes), Self(cap: cap.records, free: free.records),
            Self(cap: cap.assets, free: free.assets),
        ]
        guard let nearest = warnings.compactMap(\.self).max() else { return nil }
        self = nearest
    }

    /// As in `of the limit is used`.
    package var share: String { self == .full ? "all" : "\(rawValue) % or more" }

    /// By the part of the cap that is used; `full` is the greatest.
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
