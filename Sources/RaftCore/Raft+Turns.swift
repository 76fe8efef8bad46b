/// Elections after the connection to a leader broke, which a killed process's does at once.
///
/// Election timeouts are long because silence may have many reasons, and random because nobody knows who else heard nothing. A
/// broken connection says more: those who follow the same leader most likely lost it too. So they take turns, in an order that
/// all know, and the first begins as soon as the promise to that leader is over. Turns only say when a replica campaigns; votes
/// are given as ever.
extension Raft {
    /// A leader whose connection broke, in the term in which it led.
    struct LostLeader: Hashable, Sendable {
        var id: ReplicaID
        var term: Term
        /// Who has won nothing by then waits as if there had been no connection.
        var until: MonotonicTime
        /// There is a connection again. It may be to a process that knows nothing of having led.
        var isBack = false
    }

    /// Who campaigns when: `count` replicas, each for `nanoseconds`, this one at `place`.
    struct Turns: Hashable, Sendable {
        var count: UInt64
        var place: UInt64
        var nanoseconds: UInt64
    }

    /// There is a connection to a replica, for the first time or again after `peerDisconnected`. A leader that is heard over it is followed as before.
    public mutating func peerConnected(_ replica: ReplicaID) {
        if lostLeader?.id == replica { lostLeader?.isBack = true }
    }

    /// Waits for this replica's first turn, if that comes before its election timeout is over.
    mutating func loseLeader() {
        precondition(role == .follower, "replica \(id) lost its leader as a \(role)")
        guard let leader, let contact = lastLeaderContact else { return }
        let promised = max(now, contact.adding(milliseconds: settings.patienceMilliseconds))
        lostLeader = LostLeader(
            id: leader, term: term, until: promised.adding(milliseconds: settings.electionTimeoutMilliseconds))
        guard let turns else { return }
        electionDeadline = min(
            electionDeadline, promised.adding(nanoseconds: turns.place * turns.nanoseconds + dither(turns)))
    }

    /// Nil where no leader was lost in this term, or a while ago, and for who is no voter of the configuration in force.
    var turns: Turns? {
        guard let lost = lostLeader, lost.term == term, now < lost.until else { return nil }
        let voters = configuration.all.filter { configuration.isVoter($0) && $0 != lost.id }
        guard let place = voters.firstIndex(of: id) else { return nil }
        let count = UInt64(voters.count)
        // Counted from the first one's place.
        let turn = (UInt64(place) + count - settings.firstTurn % count) % count
        return Turns(count: count, place: turn, nanoseconds: settings.heartbeatIntervalMilliseconds * 1_000_000)
    }

    /// At most half a turn, so that two whose turns began at different times do not meet each time.
    mutating func dither(_ turns: Turns) -> UInt64 {
        UInt64.random(in: 0...turns.nanoseconds / 2, using: &generator)
    }
}
