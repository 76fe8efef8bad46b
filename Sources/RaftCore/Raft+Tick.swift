extension Raft {
    /// Time went by. To be called at or after the `wakeAt` of the latest effects; calling it more often does no harm.
    public mutating func tick(now: MonotonicTime) -> Effects {
        begin(now)
        if role == .leader {
            if self.now >= quorumDeadline {
                becomeFollower(term: term, leader: nil)
            } else {
                expireTransfer()
                if self.now >= heartbeatDeadline { startRound() }
            }
        } else if self.now >= electionDeadline {
            if isPromotable {
                startElection()
            } else {
                resetElectionTimer()
            }
        }
        return finish()
    }

    /// When a leader that hears nothing more gives up (dissertation section 6.2): when the promises of the majority that was
    /// last heard are over, and another may lead.
    var quorumDeadline: MonotonicTime {
        let heard = Quorum.reached(configuration) { voter in
            voter == id ? now : followers.first { $0.id == voter }?.lastHeard ?? .zero
        }
        return (heard ?? .zero).adding(milliseconds: settings.patienceMilliseconds)
    }

    /// Draws the next election timeout from `[t, 2t)`; where the leader was lost, waits for this replica's next turn.
    mutating func resetElectionTimer() {
        if let turns {
            electionDeadline = now.adding(nanoseconds: turns.count * turns.nanoseconds + dither(turns))
        } else {
            let least = settings.electionTimeoutNanoseconds
            electionDeadline = now.adding(nanoseconds: least + UInt64.random(in: 0..<least, using: &generator))
        }
    }

    /// Whether this replica may campaign: it votes in the configuration in force, or did before one that may never be
    /// committed without it (dissertation section 4.2.2).
    var isPromotable: Bool {
        if pendingInstall != nil { return false }
        let committed = configurations.lastIndex { $0.index <= commitIndex } ?? 0
        return configurations[committed...].contains { $0.configuration.isVoter(id) }
    }

    /// Whether a leader was heard so short a time ago that no other may be elected.
    var hasLiveLeader: Bool {
        if role == .leader { return true }
        guard let contact = lastLeaderContact else { return false }
        return now < contact.adding(milliseconds: settings.patienceMilliseconds)
    }
}
