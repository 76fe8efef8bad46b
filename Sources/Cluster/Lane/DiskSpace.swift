import Logging
import NIOCore
import RaftCore
import Storage
import Synchronization

/// What a node does when its disk is full. What was accepted goes on with the room that was kept for it, the raft log's
/// reserve segment and `SpaceReserve`; commands that free room are taken, others are refused. Once both reserves are
/// there again, all is as before.
final class DiskSpace: @unchecked Sendable {
    // What changes is touched on the lane's event loop only, which makes it safe to share.
    /// How often a node that is short of space looks whether there is some.
    private static let lookMilliseconds: UInt64 = 1_000

    private let platform: any NodePlatform
    private let log: RaftLog
    private let upkeep: BlockingPool
    private let logger: Logger
    private let reserve: SpaceReserve
    private let short = Atomic(false)
    private var nextLook = MonotonicTime.zero
    private var isLooking = false

    init(
        _ platform: any NodePlatform, _ settings: NodeSettings, log: RaftLog, upkeep: BlockingPool, _ logger: Logger
    ) {
        (self.platform, self.log, self.upkeep, self.logger) = (platform, log, upkeep, logger)
        reserve = SpaceReserve(folder: settings.dataPath, bytes: settings.spaceReserveBytes, disk: settings.log.disk)
    }

    /// Whether the disk was found full and the reserves are not known to be there again. Any thread.
    private(set) var isShort: Bool {
        get { short.load(ordering: .relaxed) }
        set { short.store(newValue, ordering: .relaxed) }
    }

    /// Makes the reserve for databases.
    func start() {
        try? upkeep.submit { [self] isActive in
            guard isActive else { return }
            // Started on a full disk, it must not take what is left for anything but reads and deletions.
            do {
                if try !reserve.restore() { platform.eventLoop.execute { [self] in enter() } }
            } catch {
                logger.warning("no room can be kept back for a full disk: \(error)")
            }
        }
    }

    /// Something found the disk full: a submission to the log, or a database.
    func foundFull() {
        enter()
        reserve.release()
    }

    /// Takes nothing that grows, until both reserves are there.
    private func enter() {
        guard !isShort else { return }
        logger.error("the disk is full: until it has space again this node takes only reads and deletions")
        isShort = true
        nextLook = platform.clock.now.adding(milliseconds: Self.lookMilliseconds)
    }

    /// Looks whether the reserves can be made again.
    /// - Parameter isStalled: whether the log has not taken all that it was to have.
    func regain(now: MonotonicTime, unless isStalled: @escaping @Sendable () -> Bool) {
        guard isShort, nextLook <= now, !isLooking, !isStalled() else { return }
        isLooking = true
        do throws(QueueFull) {
            try upkeep.submit { [self] isActive in
                let isRegained = isActive && log.restoreReserve() && (try? reserve.restore()) == true
                platform.eventLoop.execute { self.looked(isRegained: isRegained, isStalled) }
            }
        } catch {
            looked(isRegained: false, isStalled)
        }
    }

    private func looked(isRegained: Bool, _ isStalled: () -> Bool) {
        isLooking = false
        nextLook = platform.clock.now.adding(milliseconds: Self.lookMilliseconds)
        guard isRegained, isShort, !isStalled() else { return }
        isShort = false
        logger.notice("the disk has space again: everything is taken as before")
    }
}
