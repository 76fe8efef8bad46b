import Logging
import NIOCore
import RaftCore
import Storage

// What a node does when its disk is full. What was accepted goes on with the room that was kept for it, the raft log's
// reserve segment and `SpaceReserve`; commands that free room are taken, others are refused. Once both reserves are
// there again, all is as before.
extension Lane {
    /// How often a node that is short of space looks whether there is some.
    private static let lookMilliseconds: UInt64 = 1_000

    struct Space {
        /// Whether the disk was found full and the reserves are not known to be there again.
        var isShort = false
        var nextLook = MonotonicTime.zero
        var isLooking = false
    }

    /// Something found the disk full: a submission to the log, or a database.
    func foundFull() {
        enterDiskFull()
        spaceReserve.release()
    }

    /// Takes nothing that grows, until both reserves are there.
    func enterDiskFull() {
        guard !space.isShort else { return }
        logger.error("the disk is full: until it has space again this node takes only reads and deletions")
        space.isShort = true
        space.nextLook = now.adding(milliseconds: Self.lookMilliseconds)
    }

    /// Looks whether the reserves can be made again.
    func regainSpace(now: MonotonicTime) {
        guard space.isShort, space.nextLook <= now, !space.isLooking, !submissions.isStalled else { return }
        space.isLooking = true
        do throws(QueueFull) {
            try pools.upkeep.submit { [self] isActive in
                let isRegained = isActive && log.restoreReserve() && (try? spaceReserve.restore()) == true
                eventLoop.execute { self.looked(isRegained: isRegained) }
            }
        } catch {
            looked(isRegained: false)
        }
    }

    private func looked(isRegained: Bool) {
        space.isLooking = false
        space.nextLook = now.adding(milliseconds: Self.lookMilliseconds)
        guard isRegained, space.isShort, !submissions.isStalled else { return }
        space.isShort = false
        logger.notice("the disk has space again: everything is taken as before")
    }

    /// Refuses the proposals that a disk without space, or a log that has as much waiting as it may, cannot take.
    func admitted(_ proposals: [Replica.Proposal]) -> [Replica.Proposal] {
        guard space.isShort || submissions.isStalled else { return proposals }
        return proposals.filter { proposal in
            if !submissions.isStalled, GroupCommand.isFreeing(proposal.command) { return true }
            proposal.completion(.failure(space.isShort ? .diskFull : .overloaded))
            return false
        }
    }
}
