import Logging
import NIOCore
import RaftCore
import Storage
import Wire

// The work that a state machine has of its own: index building, cascades, reclaiming. The leader proposes it in bounded
// parts, so that it is replicated like any command and requests get their turn in between.
extension Lane {
    /// How often databases are looked through for what time alone made due, such as tombstones past their age.
    private static let searchIntervalMilliseconds: UInt64 = 60_000
    /// How long a leader waits after a part that failed.
    private static let failurePauseMilliseconds: UInt64 = 1_000

    func maintain(now: MonotonicTime) {
        // These commands carry this node's time.
        guard clockWatch.errorMilliseconds == nil else { return }
        let wallTime = platform.clock.wallMilliseconds
        searchWork(now: now, wallTime: wallTime)
        for group in groups { maintain(group, now: now, wallTime: wallTime) }
    }

    private func maintain(_ group: GroupID, now: MonotonicTime, wallTime: Int64) {
        guard let replica = replicas[group], replica.raft.role == .leader, !submissions.isStalled,
            replica.applyFailure == nil, replica.transferUntil <= now,
            let due = replica.nextMaintenance, due <= now,
            let command = replica.applier.machine.maintenance(
                now: wallTime, at: replica.applier.level, random: platform.random)
        else { return }
        replica.nextMaintenance = nil
        propose(GroupCommand.freeing(command).encoded(), to: group) { [self] result in
            eventLoop.execute { self.didMaintain(group, since: now, result) }
        }
    }

    /// Work takes no more than every other moment: the next part waits as long as this one took. Urgent work goes on at
    /// once, or where clients' commands wait, after these.
    private func didMaintain(_ group: GroupID, since begin: MonotonicTime, _ result: Result<[UInt8], ReplicaError>) {
        let now = now
        switch result {
        case .success:
            guard let replica = replicas[group] else { return }
            let taken = (now.nanoseconds - begin.nanoseconds) / 1_000_000
            let isUrgent = replica.applier.machine.isUrgent
            replica.nextMaintenance = isUrgent ? now : now.adding(milliseconds: min(UInt64(taken), 1_000))
            if isUrgent, replica.proposals.isEmpty, clockWatch.errorMilliseconds == nil {
                maintain(group, now: now, wallTime: platform.clock.wallMilliseconds)
            }
        case .failure(let error):
            logger.debug("group \(group): its own work waits: \(error)")
            replicas[group]?.nextMaintenance = now.adding(milliseconds: Self.failurePauseMilliseconds)
        }
    }

    private func searchWork(now: MonotonicTime, wallTime: Int64) {
        guard nextWorkSearch <= now else { return }
        nextWorkSearch = now.adding(milliseconds: Self.searchIntervalMilliseconds)
        for group in groups where replicas[group]?.raft.role == .leader {
            guard let applier = replicas[group]?.applier else { continue }
            // If the queue is full, this is tried again in a minute.
            try? pools.upkeep.submit { [logger] isActive in
                guard isActive else { return }
                do {
                    try applier.database.read { try applier.machine.findWork(now: wallTime, in: $0) }
                } catch {
                    logger.error("group \(group): looking for due work failed: \(error)")
                }
            }
        }
    }
}

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
