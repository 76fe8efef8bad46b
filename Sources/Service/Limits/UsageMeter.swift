import Cluster
import RaftCore
package import RecordModel
import RecordStore
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
        /// What the ledger said last when it was asked in that month, by this node's clock.
        var total: Int64 = 0
        var month: UInt64 = 0
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
    package func carried(_ bytes: Int, for database: DatabaseKey) {
        guard database.scope == .public else { return }
        counts.withLock { $0[database, default: Count()].waiting += Int64(bytes) }
    }

    /// Bytes carried in the month, as far as this node knows.
    package func transfer(of database: DatabaseKey, month: UInt64) -> Int64 {
        counts.withLock { counts in
            guard let count = counts[database] else { return 0 }
            return count.waiting + (count.month == month ? count.total : 0)
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
            for database in waiting.keys { counts[database]?.waiting = 0 }
            return waiting
        }
        let month = QuotaTransfer.month(of: service.now)
        for (database, count) in waiting.sorted(by: { $0.key.container < $1.key.container }) {
            let command = QuotaCommand.addTransfer(
                QuotaTransfer(ledger: database, month: month, bytes: UInt64(count.waiting)))
            do {
                let bytes = try await service.node.router.submit(
                    GroupCommand(ShardCommand.record(.quota(command))), to: service.ledgerGroup(of: database),
                    by: service.deadline())
                guard case .quota(.transfer(_, let total)) = try RecordOutcome(decoding: bytes) else {
                    continue
                }
                // A ledger does not take a month that is to come: then its own counts here too.
                counts.withLock { counts in
                    counts[database]?.total = Int64(clamping: total)
                    counts[database]?.month = month
                }
            } catch ClusterError.unavailable {
                counts.withLock { $0[database]?.waiting += count.waiting }
            } catch {
                // Counted or not: counting it twice would be worse than losing a second's traffic.
            }
        }
    }
}
