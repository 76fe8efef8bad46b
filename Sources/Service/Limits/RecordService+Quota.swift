import Authorization
import Cluster
package import Directory
import RaftCore
package import RecordModel
package import RecordStore
import Wire

// How much there may be: the allotments that shards ask ledgers for before a database grows on them.
extension RecordService {
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

    /// The group that holds a database's ledger.
    func ledgerGroup(of database: DatabaseKey) -> GroupID {
        node.map.group(of: ZoneKey(database: database, name: "_ledger"))
    }

    /// Has a quota command applied.
    func submitQuota(
        _ command: QuotaCommand, to group: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) -> QuotaOutcome {
        switch try await submit(.record(.quota(command)), to: group, by: deadline) {
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
            try await refreshDirectory()
            return true
        }
        let place = EscrowRequests.Place(database: database, shard: shard)
        return try await usage.allotments.ask(need, at: place) { ask in
            do throws(RequestFailure) {
                return .success(try await QuotaEscrow(self, ask, under: terms, at: place, by: deadline).run())
            } catch {
                return .failure(error)
            }
        }
    }

    /// What a database's ledger knows.
    package func ledger(of database: DatabaseKey, by deadline: Deadline) async throws(RequestFailure) -> LedgerState {
        try unpacked(
            try await answer(to: .ledger(database), from: ledgerGroup(of: database), by: deadline).bytes)
    }

    /// Logs, once in a while, that a database comes near its quota.
    func warn(_ database: DatabaseKey, cap: QuotaAmounts, free: QuotaAmounts) {
        usage.warn(database, QuotaWarning(cap: cap, free: free), now: now) { text in peerExchange.warn(text) }
    }

    /// Counts bytes that a request for public data and its answer carried.
    /// - Parameter name: who asked, as the stamps of records name them. What callers without a session carry beyond
    ///   their part of the month is not counted: it would be taken from the users.
    package func carried(_ bytes: Int, for database: DatabaseKey, of name: String) {
        guard name == Caller.anonymousName else { return usage.carried(bytes, for: database) }
        usage.carriedByStrangers(
            bytes, for: database, month: QuotaTransfer.month(of: now),
            max: strangersTransfer(of: database, in: directory))
    }

    /// Bytes that this node lets callers without a session carry in a month: a quarter of the container's, in equal
    /// parts for the nodes.
    private func strangersTransfer(of database: DatabaseKey, in directory: DirectorySnapshot) -> Int64 {
        let limit = ContainerUsage.transferLimit(of: database, in: directory)
        return limit == ContainerLimit.unlimited ? limit : limit / 4 / Int64(max(1, node.map.nodes.count))
    }

    /// - Parameter name: who asks, as the stamps of records name them.
    /// - Throws: `QUOTA_EXCEEDED` where the month's transfer of public data, or the part of callers without a session,
    ///   is used up, which keeps data from growing and nothing else.
    func requireTransfer(
        for database: DatabaseKey, of name: String, in directory: DirectorySnapshot, by deadline: Deadline
    ) async throws(RequestFailure) {
        guard database.scope == .public else { return }
        if name == Caller.anonymousName {
            let part = strangersTransfer(of: database, in: directory)
            let used = usage.strangersTransfer(of: database, month: QuotaTransfer.month(of: now))
            let who = "callers without a session of container '\(database.container)' have, through this node,"
            if used >= part { throw Self.transferUsedUp(who, used, part) }
        }
        let (used, limit) = try await ContainerUsage.transfer(of: database, in: self, directory, by: deadline)
        if used >= limit { throw Self.transferUsedUp("container '\(database.container)' has", used, limit) }
    }

    private static func transferUsedUp(_ who: String, _ used: Int64, _ limit: Int64) -> RequestFailure {
        var failure = RequestFailure(
            .quotaExceeded,
            "\(who) carried \(used) of the \(limit) bytes that are allowed in a month; reading and deleting go on, saving does "
                + "when the month ends or the limit is raised (`zonekeeper limits set`)")
        failure.rule = RequestRefusal(
            rule: ContainerLimit.transferBytesPerMonth.rawValue, limit: limit, used: used)
        return failure
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

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
