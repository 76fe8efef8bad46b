import Logging
import NIOCore
import RaftCore
import Storage

// What a node does when its disk is full. What was accepted goes on with the room that was kept for it, the raft log's reserve segment and
// `SpaceReserve`; commands that free room are taken, others are refused. Once both reserves are there again, all is as before.
extension Lane {
    /// How often a node that is short of space looks whether there is some.
    private static let lookMilliseconds: UInt64 = 1_000

    struct Space {
        /// Whether the disk was found full and the reserves are not known to be there again.
        var isShort = false
        /// Submissions that found even the reserve full, in order.
        var stalled: [Submission] = []
        var nextLook = MonotonicTime.zero
        var isLooking = false
    }

    /// Something found the disk full: a submission to the log, or a database.
    func foundFull(_ submission: Submission?) {
        beShort()
        spaceReserve.release()
        if let submission { space.stalled.append(submission) }
    }

    /// Takes nothing that grows, until both reserves are there.
    func beShort() {
        guard !space.isShort else { return }
        logger.error("the disk is full: until it has space again this node takes only reads and deletions")
        space.isShort = true
        space.nextLook = now.adding(milliseconds: Self.lookMilliseconds)
    }

    /// Tries again what is stalled, and looks whether the reserves can be made again.
    func regainSpace(now: MonotonicTime) {
        guard space.isShort else { return }
        if submissionsUnderway == 0, !space.stalled.isEmpty {
            let submissions = space.stalled
            space.stalled = []
            log.resume()
            for submission in submissions { submit(submission) }
        }
        guard space.nextLook <= now, !space.isLooking, space.stalled.isEmpty else { return }
        space.isLooking = true
        blockingPool.run { [self] in
            let isRegained = log.restoreReserve() && (try? spaceReserve.restore()) == true
            eventLoop.execute { [self] in
                space.isLooking = false
                space.nextLook = self.now.adding(milliseconds: Self.lookMilliseconds)
                guard isRegained, space.isShort, space.stalled.isEmpty else { return }
                space.isShort = false
                logger.notice("the disk has space again: everything is taken as before")
            }
        }
    }

    /// Refuses the proposals that a disk without space cannot take.
    func takenWithSpaceThereIs(_ proposals: [Replica.Proposal]) -> [Replica.Proposal] {
        guard space.isShort else { return proposals }
        return proposals.filter { proposal in
            if space.stalled.isEmpty, GroupCommand.isFreeing(proposal.command) { return true }
            proposal.completion(.failure(.diskFull))
            return false
        }
    }
}
