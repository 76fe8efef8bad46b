import PeerTransport
import RaftCore
import Storage

/// Holds what a replica that sends a message is at against what all replicas of its group are at, which none of them
/// can see: that a majority has what is committed; that a majority elected a leader, and that it has what was committed
/// before; that members change step by step; that a lease rests on promises that last longer; that reads see what
/// earlier leaders committed; that what a replica says is on its disk before; and that a restart loses nothing that was
/// acknowledged.
struct RaftProofs {
    /// A replica and its clock.
    struct Witness {
        var raft: Raft
        var clock: SimulatedClock
        /// Which life of its process it is in.
        var life: Int
        /// Whether it may have lost what it had.
        var mayHaveLost: Bool
        /// Until when its process stood still last.
        var pausedUntil: UInt64 = 0
        /// When its clocks last came to disagree, on its own, as its process must have noticed by now; nil for never,
        /// or in doubt.
        var disagreedAt: MonotonicTime?
        /// Whether its clock stood still, and it need not have noticed yet.
        var mayNotKnowTime = false
        /// What its log has durably; nil for nothing.
        var logged: () -> RecoveredGroup? = { nil }
    }

    private typealias Reign = RaftWatch.Reign
    private typealias Member = RaftWatch.Member

    /// What a replica said that it has durably of a leader's log.
    private struct Acknowledged {
        var term: Term
        var position: LogPosition
    }

    private var acknowledged: [Member: Acknowledged] = [:]
    private var lastVotes: [Member: HardState] = [:]
    /// Up to where a term's leader heard that replicas have its log.
    private var matches: [Reign: [ReplicaID: LogIndex]] = [:]
    /// Where the logs of candidates end.
    private var candidates: [Reign: [ReplicaID: LogPosition]] = [:]
    /// The latest round of heartbeats of which a term's leader heard an answer.
    private var rounds: [Reign: [ReplicaID: UInt64]] = [:]
    /// Whose votes came, by candidate.
    private var votes: [Reign: [ReplicaID: Set<ReplicaID>]] = [:]
    /// What was committed in a group when a reign began.
    private var before: [Reign: LogPosition] = [:]
    /// Leaders that asked another replica to take over.
    private var leaving: Set<Reign> = []
    private(set) var committed: [GroupID: LogPosition] = [:]
    /// The first position of each run of terms in what was committed.
    private var committedRuns: [GroupID: [LogPosition]] = [:]
    /// Up to where a term's leader has sent a replica its log.
    private var sent: [Reign: [ReplicaID: LogIndex]] = [:]
    /// What a term's leader counts replicas for, as far as their disks were looked at.
    private var counted: [Reign: [ReplicaID: LogIndex]] = [:]

    /// Takes note of what a message says; its sender may be gone.
    mutating func note(_ sent: PeerMessage) {
        let (message, reign) = (sent.message, Reign(group: sent.group, term: sent.message.term))
        switch message.body {
        case .voteRequest(let lastLog, _): candidates[reign, default: [:]][message.from] = lastLog
        case .appendRequest(let request):
            let last = request.entries.last?.index ?? request.previous.index
            let before = self.sent[reign]?[message.to] ?? .zero
            if last > before { self.sent[reign, default: [:]][message.to] = last }
        case .timeoutNow: leaving.insert(reign)
        default: break
        }
    }

    /// Takes note of an answer that is about to reach whom it is for.
    mutating func noteArrival(_ arrived: PeerMessage) {
        let (message, reign) = (arrived.message, Reign(group: arrived.group, term: arrived.message.term))
        switch message.body {
        case .appendResponse(.accepted(let match)):
            matches[reign, default: [:]][message.from] = max(matches[reign]?[message.from] ?? .zero, match)
        case .heartbeatResponse(let round):
            rounds[reign, default: [:]][message.from] = max(rounds[reign]?[message.from] ?? 0, round)
        case .voteResponse(granted: true): votes[reign, default: [:]][message.to, default: []].insert(message.from)
        default: break
        }
    }

    /// Judges the sender of a message that was noted.
    /// - Parameters:
    ///   - sender: who sends the message.
    ///   - now: true time.
    ///   - witness: another replica of the group, where its process runs.
    /// - Returns: what is wrong; nil if nothing is.
    mutating func judge(
        _ sent: PeerMessage, by sender: Witness, at now: UInt64, _ witness: (ReplicaID) -> Witness?
    ) -> String? {
        let (group, message, raft) = (sent.group, sent.message, sender.raft)
        let member = Member(group: group, replica: message.from)
        let reign = Reign(group: group, term: message.term)
        let fault =
            remembers(member, sender) ?? isAheadOfDisk(message, sender) ?? acknowledgesUnsent(message, in: reign, raft)
            ?? commitsAnother(group, raft)
        if let fault { return "group \(group): \(message.from) \(fault)" }
        switch message.body {
        case .appendResponse(.accepted(let match)): note(match, of: member, message.term, sender)
        case .voteResponse(granted: true):
            lastVotes[member] = HardState(term: message.term, vote: message.to)
            if let fault = mayNotVote(message, in: reign, raft) { return "group \(group): \(fault)" }
        case .preVoteRequest where raft.role == .preCandidate && message.term == raft.term.next:
            if RaftInspector(raft).hearsLeader(at: sender.clock.local(at: now)) {
                return "group \(group): \(raft.id) campaigns while its promise to the leader holds"
            }
        default: break
        }
        // A message may leave later than it was made.
        guard raft.role == .leader, raft.term == message.term else { return nil }
        return proves(group, sender, at: now, witness).map {
            "group \(group): \(raft.id), which leads term \(raft.term), \($0)"
        }
    }

    private mutating func proves(
        _ group: GroupID, _ sender: Witness, at now: UInt64, _ witness: (ReplicaID) -> Witness?
    ) -> String? {
        let raft = sender.raft
        let leader = RaftInspector(raft)
        return wasElected(group, raft, leader) ?? changesStepByStep(raft, leader) ?? hasMajority(group, sender, leader)
            ?? countsMore(group, raft, leader, witness) ?? readsLate(group, raft, leader)
            ?? overstays(group, sender, leader, at: now, witness) ?? hasOldLease(sender, leader, at: now)
            ?? outlastsMajority(sender, at: now) ?? isReadBehind(raft, at: now, witness)
    }

    private mutating func note(_ match: LogIndex, of member: Member, _ term: Term, _ sender: Witness) {
        guard sender.raft.term == term, let entry = RaftInspector(sender.raft).term(at: match) else { return }
        if let known = acknowledged[member], known.term == term, known.position.index >= match { return }
        acknowledged[member] = Acknowledged(term: term, position: LogPosition(index: match, term: entry))
    }

    /// What a message binds its sender to is on its disk before: the term, a vote, and the entries that it says it has.
    private func isAheadOfDisk(_ message: Message, _ sender: Witness) -> String? {
        let logged = sender.logged() ?? RecoveredGroup()
        let (state, end) = (logged.hardState, logged.end)
        let durable = RaftInspector(sender.raft).durableIndex
        if durable > end { return "takes what is up to \(durable) for durable, and its log ends at \(end) on its disk" }
        // Of two logs that have entries of one term at one place, all before is the same.
        if let there = logged.term(at: durable), let here = RaftInspector(sender.raft).term(at: durable), here != there
        {
            return "takes \(durable) of term \(here) for durable, and its disk has an entry of term \(there) there"
        }
        switch message.body {
        case .preVoteRequest, .preVoteResponse: return nil
        default: if state.term < message.term { return "speaks in term \(message.term), and its disk has \(state)" }
        }
        // In a later term all of it may be another's by now.
        guard state.term == message.term else { return nil }
        switch message.body {
        case .voteRequest where state.vote != message.from: return "asks for votes, and its disk has \(state)"
        case .voteResponse(granted: true) where state.vote != message.to:
            return "votes for \(message.to), and its disk has \(state)"
        case .appendResponse(.accepted(let match)) where match > end:
            return "acknowledges \(match), and its log ends at \(end) on its disk"
        default: return nil
        }
    }

    /// A replica tells a leader of what that one sent it, or what is committed: the rest may be another leader's.
    private func acknowledgesUnsent(_ message: Message, in reign: Reign, _ raft: Raft) -> String? {
        guard raft.term == reign.term else { return nil }
        let most = max(sent[reign]?[raft.id] ?? .zero, raft.commitIndex)
        if case .appendResponse(.accepted(let match)) = message.body, match > most {
            return "acknowledges \(match) in term \(reign.term), whose leader has sent it no more than \(most)"
        }
        guard raft.role == .follower, let owed = RaftInspector(raft).owedMatch, owed > most else { return nil }
        return "is to acknowledge \(owed) in term \(reign.term), whose leader has sent it no more than \(most)"
    }

    /// Whether it takes for committed what is not what a leader committed there.
    private func commitsAnother(_ group: GroupID, _ raft: Raft) -> String? {
        let index = raft.commitIndex
        guard index > raft.snapshotPosition.index, let known = committed[group], index <= known.index,
            let term = RaftInspector(raft).term(at: index),
            let run = committedRuns[group]?.last(where: { $0.index <= index }), run.term != term
        else { return nil }
        return "takes \(index) of term \(term) for committed, which is of term \(run.term)"
    }

    /// Votes stay, and so does what a leader was told to be durable. In a later term that may have been replaced.
    private func remembers(_ member: Member, _ sender: Witness) -> String? {
        guard !sender.mayHaveLost else { return nil }
        let raft = sender.raft
        if let vote = lastVotes[member], raft.term <= vote.term, RaftInspector(raft).hardState != vote {
            return "gave its vote by \(vote), and forgot it"
        }
        guard let known = acknowledged[member], raft.term <= known.term,
            raft.snapshotPosition.index < known.position.index
        else { return nil }
        if RaftInspector(raft).term(at: known.position.index) == known.position.term { return nil }
        return "acknowledged \(known.position), and its log ends at \(raft.lastLog) now"
    }

    /// Why a replica may not vote for another: it has more in its log.
    private func mayNotVote(_ message: Message, in reign: Reign, _ raft: Raft) -> String? {
        // It may have heard from the new leader by now, and have its entries, where a full disk kept the vote waiting.
        guard raft.term == reign.term, raft.leader == nil, raft.lastLog.term < reign.term,
            let last = candidates[reign]?[message.to],
            (last.term, last.index) < (raft.lastLog.term, raft.lastLog.index)
        else { return nil }
        return "\(message.from), whose log ends at \(raft.lastLog), votes for \(message.to), whose log ends at \(last)"
    }

    /// Counts by itself: the product's count is under test too.
    private static func isMajority(_ configuration: Configuration, where holds: (ReplicaID) -> Bool) -> Bool {
        func isMajority(of voters: [ReplicaID]) -> Bool { 2 * voters.filter(holds).count > voters.count }
        return isMajority(of: configuration.voters)
            && (configuration.outgoing.isEmpty || isMajority(of: configuration.outgoing))
    }

    private mutating func wasElected(_ group: GroupID, _ raft: Raft, _ leader: RaftInspector) -> String? {
        let reign = Reign(group: group, term: raft.term)
        guard before[reign] == nil else { return nil }
        // It may be seen first when a later leader has committed more.
        let known = committed[group].flatMap { $0.term < raft.term ? $0 : nil } ?? .zero
        before[reign] = known
        let voters = votes[reign]?[raft.id, default: []].union([raft.id]) ?? [raft.id]
        let inForce = leader.configurations.last { leader.term(at: $0.index) != raft.term }
        if let inForce, !Self.isMajority(inForce.configuration, where: { voters.contains($0) }) {
            return "was elected by \(voters.sorted()) alone"
        }
        guard known.index > raft.snapshotPosition.index, leader.term(at: known.index) != known.term else { return nil }
        return "lacks \(known), which is committed: its log ends at \(raft.lastLog)"
    }

    /// Entries of this term make those before them committed, so only they are counted.
    private mutating func hasMajority(_ group: GroupID, _ sender: Witness, _ leader: RaftInspector) -> String? {
        let raft = sender.raft
        let (last, known) = (raft.commitIndex, committed[group]?.index ?? .zero)
        guard last > known, let term = leader.term(at: last) else { return nil }
        committed[group] = LogPosition(index: last, term: term)
        note(committedAfter: known, through: last, in: group, leader)
        guard term == raft.term else { return nil }
        let reign = Reign(group: group, term: term)
        let own = sender.logged()?.end ?? .zero
        func isHeld(_ index: LogIndex, by configuration: Configuration) -> Bool {
            Self.isMajority(configuration) { voter in
                if voter == raft.id { return own >= index }
                return matches[reign]?[voter].map { $0 >= index } ?? false
            }
        }
        let configurations = leader.configurations
        // A configuration was in force until it was committed.
        let alone = configurations.first {
            $0.index > known && $0.index <= last && !isHeld($0.index, by: $0.configuration)
        }
        if let alone { return "commits \(alone.configuration) at \(alone.index), which its majorities lack" }
        // The rest was committed under that one, or under one that came after it since.
        let first = configurations.lastIndex { $0.index <= last } ?? 0
        return configurations[first...].contains { isHeld(last, by: $0.configuration) }
            ? nil : "commits \(last), which a majority of \(configurations[first].configuration) lacks"
    }

    private mutating func note(
        committedAfter known: LogIndex, through last: LogIndex, in group: GroupID, _ leader: RaftInspector
    ) {
        var runs = committedRuns[group] ?? []
        var index = known.next
        while index <= last {
            if let term = leader.term(at: index), runs.last?.term != term {
                runs.append(LogPosition(index: index, term: term))
            }
            index = index.next
        }
        committedRuns[group] = runs
    }

    /// Whether a leader counts a follower for more of its log than that one has on its disk. In a later term another
    /// leader may have taken it away.
    private mutating func countsMore(
        _ group: GroupID, _ raft: Raft, _ leader: RaftInspector, _ witness: (ReplicaID) -> Witness?
    ) -> String? {
        let reign = Reign(group: group, term: raft.term)
        for (replica, match) in leader.matches where match > counted[reign]?[replica] ?? .zero {
            guard let other = witness(replica), !other.mayHaveLost, other.raft.term == raft.term else { continue }
            counted[reign, default: [:]][replica] = match
            let logged = other.logged() ?? RecoveredGroup()
            guard logged.end >= match else {
                return "counts \(replica) up to \(match), whose log ends at \(logged.end) on its disk"
            }
            if let there = logged.term(at: match), let here = leader.term(at: match), there != here {
                return "counts \(replica) for \(match) of term \(here), whose disk has one of term \(there) there"
            }
        }
        return nil
    }

    private func changesStepByStep(_ raft: Raft, _ leader: RaftInspector) -> String? {
        for (old, new) in zip(leader.configurations, leader.configurations.dropFirst()) {
            let (from, to) = (old.configuration, new.configuration)
            guard !from.voters.isEmpty else { continue }
            let isStep = to.isJoint ? !from.isJoint && to.outgoing == from.voters : to.voters == from.voters
            guard isStep else { return "has \(to) at \(new.index) after \(from)" }
            if let fresh = to.voters.first(where: { !from.contains($0) }) {
                return "has \(fresh) vote by \(to) at \(new.index), which has not learnt by \(from)"
            }
            if leader.term(at: new.index) == raft.term, raft.commitIndex < old.index {
                return "has \(to) at \(new.index) before \(from) at \(old.index) is committed"
            }
        }
        return nil
    }

    private func readsLate(_ group: GroupID, _ raft: Raft, _ leader: RaftInspector) -> String? {
        let reign = Reign(group: group, term: raft.term)
        let known = before[reign] ?? .zero
        let early = leader.answeredRounds.first { $0.round > rounds[reign]?[$0.replica] ?? 0 }
        if let early { return "counts round \(early.round) as answered by \(early.replica), which has not" }
        guard let index = leader.readIndexes.first(where: { $0 < known.index }) else { return nil }
        return "reads at \(index), though \(known) was committed before its term"
    }

    /// Whether its lease outlasts what a majority promised.
    private func overstays(
        _ group: GroupID, _ sender: Witness, _ leader: RaftInspector, at now: UInt64,
        _ witness: (ReplicaID) -> Witness?
    ) -> String? {
        let (raft, local) = (sender.raft, sender.clock.local(at: now))
        guard let end = leader.leaseEnd, end > local, !sender.mayNotKnowTime else { return nil }
        if leaving.contains(Reign(group: group, term: raft.term)) { return "has a lease, though it hands over" }
        let last = now + sender.clock.trueDuration(of: end.nanoseconds - local.nanoseconds - 1)
        let isKept = Self.isMajority(raft.configuration) { voter in
            guard voter != raft.id, let other = witness(voter) else { return true }
            // In a later term it may be by an answer that came late, and have voted for nobody there.
            let isFree = other.raft.leader == nil && RaftInspector(other.raft).hardState.vote == nil
            return (other.raft.term <= raft.term || isFree)
                && RaftInspector(other.raft).keepsQuiet(at: other.clock.local(at: last))
        }
        return isKept ? nil : "has a lease until \(last) ns, and no majority that votes for nobody until then"
    }

    /// Whether its lease rests on what was sent before its clocks came to disagree: it may have stood still for longer
    /// than it knows.
    private func hasOldLease(_ sender: Witness, _ leader: RaftInspector, at now: UInt64) -> String? {
        guard let since = sender.disagreedAt, sender.pausedUntil + 500 * World.millisecond < now,
            let lease = sender.raft.settings.lease, let end = leader.leaseEnd
        else { return nil }
        // What clocks may differ in speed is taken off.
        guard end < since.adding(milliseconds: lease.promiseMilliseconds * 9 / 10) else { return nil }
        return "has a lease until \(end), by answers from before its clocks came to disagree at \(since)"
    }

    /// Whether a leader of an earlier term, which has not heard of this one yet, would answer a read without what this
    /// one has committed. A copy of it is asked.
    private func isReadBehind(_ raft: Raft, at now: UInt64, _ witness: (ReplicaID) -> Witness?) -> String? {
        for voter in raft.configuration.voters where voter != raft.id {
            guard let other = witness(voter), other.raft.role == .leader, other.raft.term < raft.term,
                other.pausedUntil < now, !other.mayNotKnowTime
            else { continue }
            var deposed = other.raft
            let effects = deposed.read(.max, now: other.clock.local(at: now))
            guard let read = effects.reads.first(where: { $0.id == .max }), read.index < raft.commitIndex else {
                continue
            }
            return
                "has committed \(raft.commitIndex), and \(voter), which led term \(deposed.term), "
                + "reads at \(read.index)"
        }
        return nil
    }

    /// Whether it goes on for longer than a majority promised it when they were last heard: another may lead by then.
    func outlastsMajority(_ leader: Witness, at now: UInt64) -> String? {
        let raft = leader.raft
        // A process that stood still has not looked at its clock, nor has one that has to start again without its data.
        guard raft.role == .leader, !leader.mayHaveLost, leader.pausedUntil + World.second < now else { return nil }
        let promise = raft.settings.lease?.promiseMilliseconds ?? raft.settings.electionTimeoutMilliseconds
        let (local, followers) = (leader.clock.local(at: now), raft.status.followers)
        // It looks at its clock ten times a second at least.
        let isHeard = Self.isMajority(raft.configuration) { voter in
            guard voter != raft.id, let follower = followers.first(where: { $0.id == voter }) else { return true }
            return local <= follower.lastHeard.adding(milliseconds: promise + promise / 4 + 200)
        }
        return isHeard ? nil : "has heard no majority of \(raft.configuration) for more than \(promise) ms"
    }
}

extension RecoveredGroup {
    /// The last entry that is there, or its effect.
    var end: LogIndex { max(lastLog.index, snapshot?.position.index ?? .zero) }

    /// The term of an entry that is there.
    func term(at index: LogIndex) -> Term? {
        index >= firstIndex && index <= lastLog.index ? terms.last { $0.index <= index }?.term : nil
    }
}
