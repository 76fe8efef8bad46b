import Foundation
import Logging
import RaftCore
import Storage

/// Moves what the shard databases' write-ahead logs hold into the databases, off the apply threads, and tells the raft log what
/// it need not keep any more.
final class Checkpointer: @unchecked Sendable {
    // `isStopping` and `isDone` are touched only with `condition` locked; everything else belongs to the thread.
    private let condition = NSCondition()
    private var isStopping = false
    /// True before the start as well as after the end.
    private var isDone = true
    private let appliers: [Applier]
    private let log: RaftLog
    private let settings: CheckpointSettings
    private let logger: Logger
    private var lastCheckpoint: [GroupID: MonotonicTime] = [:]

    init(appliers: [Applier], log: RaftLog, settings: CheckpointSettings, logger: Logger) {
        self.appliers = appliers
        self.log = log
        self.settings = settings
        self.logger = logger
    }

    func start() {
        isDone = false
        let thread = Thread { [self] in run() }
        thread.name = "checkpoint"
        thread.start()
    }

    /// Ends the thread and waits for its end.
    func stop() {
        condition.lock()
        isStopping = true
        condition.signal()
        while !isDone { condition.wait() }
        condition.unlock()
    }

    /// Checkpoints everything; for a graceful stop, after the thread ended.
    func checkpointAll() {
        for applier in appliers { checkpoint(applier) }
    }

    private func run() {
        while waitForNextRound() {
            let pinning = Set(log.pinningGroups)
            let now = MonotonicTime.current
            for applier in appliers {
                let wal = applier.database.walBytes
                let due = (lastCheckpoint[applier.group] ?? .zero).adding(milliseconds: settings.ageMilliseconds)
                guard wal > settings.walBytesMax || pinning.contains(applier.group) || (wal > 0 && due <= now) else {
                    continue
                }
                checkpoint(applier)
                lastCheckpoint[applier.group] = now
            }
            log.collect()
        }
        condition.lock()
        isDone = true
        condition.broadcast()
        condition.unlock()
    }

    private func waitForNextRound() -> Bool {
        condition.lock()
        defer { condition.unlock() }
        if isStopping { return false }
        _ = condition.wait(until: Date(timeIntervalSinceNow: Double(settings.intervalMilliseconds) / 1_000))
        return !isStopping
    }

    private func checkpoint(_ applier: Applier) {
        do {
            let database = applier.database
            let mark = try database.read { try AppliedState.mark(of: $0) }
            // Under steady writes there is always a frame that a passive checkpoint did not see, so the WAL never starts over
            // by itself. What is left after the passive part is small, and the writer waits for that only.
            let isOverdue = database.walBytes > 4 * settings.walBytesMax
            guard try isOverdue ? database.truncateWAL() : database.checkpoint() else { return }
            log.setDurableIndex(mark, of: applier.group)
        } catch {
            logger.error("group \(applier.group): checkpoint failed: \(error)")
        }
    }
}
