/// When a replica campaigns, and when it votes: how long it waits for a leader, and what it promised to one.
///
/// After the connection to a leader broke it waits for less. The connections of a killed process break at once.
///
/// Election timeouts are long because silence may have many reasons, and random because a replica does not know which
/// others heard nothing either. A broken connection says more: the other followers of that leader most likely lost it,
/// too. So they campaign in turns, in an order that all know, and the first begins as soon as the promise to that
/// leader has expired. Turns only decide when a replica campaigns; the rules of voting stay the same.
struct ElectionTimer: Hashable, Sendable {
    /// When the replica campaigns if it hears no leader and votes for nobody.
    private(set) var deadline: MonotonicTime
    private var generator: SplitMix64
    private var lastLeaderContact: MonotonicTime?
    /// The leader whose connection broke, until it is heard over a new one.
    private(set) var lostLeader: LostLeader?
    /// Before this time no vote is granted.
    private var votesFrom: MonotonicTime

    /// - Parameter replica: as it was on disk.
    init(_ replica: ReplicaState, seed: UInt64) {
        deadline = replica.now
        generator = SplitMix64(seed: seed)
        votesFrom = replica.now
        // A group of one has no other candidate, so there is nothing to wait for.
        if replica.isOnlyVoter { return }
        let isNew = replica.log.last == .zero && replica.hardState == HardState()
        let settings = replica.settings
        if !isNew { votesFrom = replica.now.adding(milliseconds: 2 * settings.electionTimeoutMilliseconds) }
        reset(replica)
    }

    /// Whether the replica may vote at all. It need not be a voter by its own configuration: an entry that it lacks may
    /// have made it one. The candidate decides which votes count (dissertation section 4.1).
    func mayVote(at time: MonotonicTime) -> Bool { time >= votesFrom }

    /// Whether a leader was heard so recently that no other may be elected.
    func hasLiveLeader(at time: MonotonicTime, _ settings: RaftSettings) -> Bool {
        guard let contact = lastLeaderContact else { return false }
        return time < contact.adding(milliseconds: settings.patienceMilliseconds)
    }

    /// Draws the next election timeout from `[t, 2t)`; where the leader was lost, waits for this replica's next turn.
    mutating func reset(_ replica: ReplicaState) {
        if let turns = turns(of: replica) {
            deadline = replica.now.adding(nanoseconds: turns.count * turns.nanoseconds + dither(turns))
        } else {
            let least = replica.settings.electionTimeoutNanoseconds
            deadline = replica.now.adding(nanoseconds: least + UInt64.random(in: 0..<least, using: &generator))
        }
    }

    /// The leader of this term was heard.
    mutating func heard(_ leader: ReplicaID, by replica: ReplicaState) {
        lastLeaderContact = replica.now
        // A dead leader's last messages may be read after its end was noticed, so only a new connection ends the turns.
        let isStillLost = lostLeader.map { $0.id == leader && $0.term == replica.term && !$0.isBack } ?? false
        lostLeader = nil
        reset(replica)
        if isStillLost { lost(leader, by: replica) }
    }

    /// The connection to the leader of this term broke: waits for this replica's first turn, if that comes before its
    /// election timeout is over.
    mutating func lost(_ leader: ReplicaID, by replica: ReplicaState) {
        guard let contact = lastLeaderContact else { return }
        let settings = replica.settings
        let promised = max(replica.now, contact.adding(milliseconds: settings.patienceMilliseconds))
        lostLeader = LostLeader(
            id: leader, term: replica.term, until: promised.adding(milliseconds: settings.electionTimeoutMilliseconds))
        guard let turns = turns(of: replica) else { return }
        deadline = min(deadline, promised.adding(nanoseconds: turns.place * turns.nanoseconds + dither(turns)))
    }

    /// There is a connection to a replica again.
    mutating func connected(_ peer: ReplicaID) {
        if lostLeader?.id == peer { lostLeader?.isBack = true }
    }

    /// This replica leads, and has promised nothing to others.
    mutating func led() { lastLeaderContact = nil }

    /// Nil if no leader was lost recently in this term, or this replica is not a voter of the configuration in force.
    private func turns(of replica: ReplicaState) -> Turns? {
        guard let lost = lostLeader, lost.term == replica.term, replica.now < lost.until else { return nil }
        let configuration = replica.configuration
        let voters = configuration.all.filter { configuration.isVoter($0) && $0 != lost.id }
        guard let place = voters.firstIndex(of: replica.id) else { return nil }
        let count = UInt64(voters.count)
        // Counted from the first one's place.
        let turn = (UInt64(place) + count - replica.settings.firstTurn % count) % count
        return Turns(count: count, place: turn, nanoseconds: replica.settings.heartbeatIntervalMilliseconds * 1_000_000)
    }

    /// At most half a turn, so that two replicas whose turns began at different times do not always collide.
    private mutating func dither(_ turns: Turns) -> UInt64 {
        UInt64.random(in: 0...turns.nanoseconds / 2, using: &generator)
    }
}

/// The order of campaigns: `count` replicas have `nanoseconds` each, and this one's turn is number `place`.
struct Turns: Hashable, Sendable {
    var count: UInt64
    var place: UInt64
    var nanoseconds: UInt64
}

/// A leader whose connection broke, in the term in which it led.
struct LostLeader: Hashable, Sendable {
    var id: ReplicaID
    var term: Term
    /// After this time, replicas wait as if the connection had not told them anything.
    var until: MonotonicTime
    /// Whether there is a connection again. It may be to a restarted process that no longer leads.
    var isBack = false
}

/// Answers to this replica's request for votes, in the order in which they came.
struct Ballots: Hashable, Sendable {
    private var answers: [Answer] = []

    private struct Answer: Hashable, Sendable {
        var voter: ReplicaID
        var isGranted: Bool
    }

    /// Notes an answer; the first of each voter counts.
    mutating func add(_ voter: ReplicaID, granted: Bool) {
        guard !answers.contains(where: { $0.voter == voter }) else { return }
        answers.append(Answer(voter: voter, isGranted: granted))
    }

    /// How the election stands.
    func result(in configuration: Configuration) -> Quorum.Result {
        Quorum.election(configuration) { voter in answers.first { $0.voter == voter }?.isGranted }
    }
}
