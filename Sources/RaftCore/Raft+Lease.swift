extension Raft {
    /// When the lease ends (dissertation section 6.4.1): nobody else leads, and nothing is committed but by this replica,
    /// before that. Nil if this replica does not lead, has no lease, or gave it up.
    ///
    /// It is counted from the *sending* of the latest round that a majority of the configuration in force has answered; each
    /// member's answer stands for itself, so the count holds across changes of members. `DESIGN.md` has the proof.
    var leaseEnd: MonotonicTime? {
        guard role == .leader, let lease = settings.lease, !isLeaseGivenUp else { return nil }
        // One more than the time, so that 0 means never, whatever the clock's origin.
        let since = Quorum.reached(configuration) { voter in
            let sentAt = voter == id ? now : followers.first { $0.id == voter }?.confirmedAt
            return sentAt.map { $0.adding(nanoseconds: 1).nanoseconds } ?? 0
        }
        guard let since, since > 0 else { return nil }
        return MonotonicTime(nanoseconds: since - 1).adding(nanoseconds: lease.nanoseconds)
    }

    /// Whether a read may be served without asking anyone.
    var isLeaseHeld: Bool { leaseEnd.map { now < $0 } ?? false }
}
