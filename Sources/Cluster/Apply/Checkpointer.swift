import Logging
import RaftCore
import Storage
import Synchronization

/// Checkpoints the shard databases, off the apply threads, and tells the raft log what it need not keep.
final class Checkpointer: Sendable {
    private let holdings: HostedGroups
    private let log: RaftLog
    private let settings: CheckpointSettings
    private let logger: Logger
    /// Called for a damaged database.
    private let onDamage: @Sendable (GroupID, any Error) -> Void
    /// Called with the path of a database that could not be synced.
    private let onFailedSync: @Sendable (String) -> Void
    private let lastCheckpoint = Mutex<[GroupID: MonotonicTime]>([:])

    init(
        holdings: HostedGroups, log: RaftLog, settings: CheckpointSettings, logger: Logger,
        onDamage: @escaping @Sendable (GroupID, any Error) -> Void,
        onFailedSync: @escaping @Sendable (String) -> Void
    ) {
        self.holdings = holdings
        self.log = log
        self.settings = settings
        self.logger = logger
        self.onDamage = onDamage
        self.onFailedSync = onFailedSync
    }

    /// Checkpoints everything; for a graceful stop, after the last round.
    func checkpointAll() {
        for applier in holdings.all { checkpoint(applier) }
    }

    /// Checkpoints the databases for which it is time, but for those that are being copied: the others do not wait.
    /// One round at a time.
    func round(now: MonotonicTime) {
        let pinning = Set(log.pinningGroups)
        // Asked of the log, not of the WAL: that may be empty after a snapshot's copy, or a checkpoint that moved more
        // than its mark says, and the group would hold up the log until its next write.
        let uncheckpointed = log.uncheckpointedGroups
        for applier in holdings.all {
            let last = lastCheckpoint.withLock { $0[applier.group] } ?? .zero
            let isDue =
                uncheckpointed.contains(applier.group) && last.adding(milliseconds: settings.ageMilliseconds) <= now
            guard isDue || pinning.contains(applier.group) || applier.database.walBytes > settings.walBytesMax,
                !applier.database.isBeingCopied
            else { continue }
            checkpoint(applier)
            lastCheckpoint.withLock { $0[applier.group] = now }
        }
        log.collect()
    }

    private func checkpoint(_ applier: Applier) {
        do {
            let database = applier.database
            let mark = try database.read { try AppliedRow.mark(of: $0) }
            // Under steady writes there is always a frame that a passive checkpoint did not see, so the WAL never
            // starts over by itself. What is left after the passive part is small, and the writer waits for that only.
            let isOverdue = database.walBytes > 4 * settings.walBytesMax
            guard try isOverdue ? database.truncateWAL() : database.checkpoint() else { return }
            log.setDurableIndex(mark, of: applier.group)
        } catch ShardDatabaseError.failedSync(let path) {
            logger.error("group \(applier.group): syncing \(path) failed")
            onFailedSync(path)
        } catch {
            logger.error("group \(applier.group): checkpoint failed: \(error)")
            if DataDamage.isDamage(error) { onDamage(applier.group, error) }
        }
    }
}
