/// One replica of one Raft group, as a value: events in, effects out.
///
/// It follows Ongaro's dissertation "Consensus: bridging theory and practice" (2014), with leadership transfer (section
/// 3.10), learners and joint configurations (4.2, 4.3), check-quorum (6.2), ReadIndex and leases (6.4), pre-vote (9.6)
/// and pipelined appends (10.2.1). Each mutating method is an event and returns what the shell has to do; `now` is
/// passed in and must not go back (if it does, it counts as standing still). The same events always give the same
/// effects.
///
/// Where it differs from the dissertation: a replica grants no vote for one maximum election timeout after its start,
/// because it cannot know whom it promised to keep quiet; entries are applied only when they are durable on this
/// replica too; members change by joint configurations only, also where one server would do (see `DESIGN.md`).
///
/// A violated precondition means corruption or a shell that broke the contract: the replica must not go on.
public struct Raft: Hashable, Sendable {
    /// What the replica is doing.
    public internal(set) var role = Role.follower
    /// The leader of this term, if known.
    public internal(set) var leader: ReplicaID?
    /// What the last leader that was heard said is committed. It is not kept over a restart.
    public private(set) var leaderCommit: LeaderCommit?

    // Internal because elections and the shell's events have files of their own.

    /// What the replica has in every role.
    var replica: ReplicaState
    /// What it has while it leads, and only then.
    var leadership: Leadership?
    var timer: ElectionTimer
    var ballots = Ballots()

    /// A replica as it was on disk. Call `tick` next, which says when to wake up.
    /// - Precondition: `restored` is consistent; see `RestoredState`.
    public init(id: ReplicaID, settings: RaftSettings, seed: UInt64, restored: RestoredState, now: MonotonicTime) {
        settings.check()
        replica = ReplicaState(id: id, settings: settings, restored: restored, now: now)
        timer = ElectionTimer(replica, seed: seed)
    }

    /// This replica.
    public var id: ReplicaID { replica.id }
    /// Times and limits, which do not change while the replica runs.
    public var settings: RaftSettings { replica.settings }
    /// The latest term that this replica has seen.
    public var term: Term { replica.term }
    /// Everything up to here is committed. `Effects.commitIndex` may lag behind it until this replica's log is durable.
    public var commitIndex: LogIndex { replica.log.committed }
    /// The last entry of the log, durable or not.
    public var lastLog: LogPosition { replica.log.last }
    /// Everything up to here is compacted away.
    public var snapshotPosition: LogPosition { replica.log.snapshot }
    /// The configuration in force: the latest in the log, committed or not (dissertation section 4.1).
    public var configuration: Configuration { replica.configuration }
    /// Whether the configuration in force is known to be committed. While it is not, or is joint, members are changing.
    public var isConfigurationCommitted: Bool { replica.isConfigurationCommitted }

    /// Entries from memory: at least one if there is one, and no more than `bytesMax` bytes.
    /// - Returns: nil if `from` is no longer in memory; the shell then reads its own log.
    public func entries(from: LogIndex, through: LogIndex, bytesMax: Int) -> [Entry]? {
        replica.log.cached(from: from, through: through, bytesMax: bytesMax)
    }
}

/// The frame round every event.
extension Raft {
    /// Begins an event.
    mutating func begin(_ time: MonotonicTime) { replica.begin(time) }

    /// Ends an event: says what it changed and takes its effects.
    mutating func finish() -> Effects {
        replica.reportCommit()
        checkInvariants()
        let wakeAt = leadership?.wakeTime(in: replica) ?? timer.deadline
        return replica.outbox.take(RoleChange(role: role, term: term, leader: leader), wakeAt: wakeAt)
    }

    /// Sends a message that binds this replica only as far as its term and vote do.
    mutating func send(_ body: Message.Body, to receiver: ReplicaID) { replica.outbox.send(body, to: receiver) }

    private func checkInvariants() {
        replica.checkInvariants()
        precondition((role == .leader) == (leader == id), "role \(role), leader \(String(describing: leader))")
        precondition((role == .leader) == (leadership != nil), "a \(role) with or without a leader's state")
        precondition(role == .follower || replica.pendingInstall == nil, "a \(role) that installs a snapshot")
        leadership?.checkInvariants(in: replica)
    }

    /// A message arrived. It is ignored if it is addressed to another replica, if it is malformed, or if it is a
    /// response of a replica outside of the configuration in force.
    public mutating func receive(_ message: Message, now: MonotonicTime) -> Effects {
        begin(now)
        if message.to == id, message.from != id, counts(message), message.term > .zero {
            if message.term > term {
                receiveLater(message)
            } else if message.term < term {
                receiveEarlier(message)
            } else {
                receiveCurrent(message)
            }
        }
        return finish()
    }

    /// Whether the message counts. Requests count from any sender: this replica may lack the entry that made the sender
    /// a member, and must follow it and vote for it all the same (dissertation section 4.1). Responses count only from
    /// members: a removed replica may have gone on to a later term.
    private func counts(_ message: Message) -> Bool {
        switch message.body {
        case .preVoteRequest, .voteRequest, .appendRequest, .heartbeatRequest, .timeoutNow:
            return true
        case .preVoteResponse, .voteResponse, .appendResponse, .heartbeatResponse:
            return configuration.contains(message.from) || configuration.voters.isEmpty
        }
    }

    /// A message of a later term: this replica is behind, unless the message only asks or must be kept out.
    private mutating func receiveLater(_ message: Message) {
        switch message.body {
        case .preVoteRequest(let lastLog):
            receivePreVoteRequest(lastLog: lastLog, message)
            return
        case .preVoteResponse(granted: true):
            // It repeats the term that this replica would campaign in.
            receivePreVoteResponse(granted: true, message)
            return
        case .voteRequest(_, let isTransfer):
            // Taking over the term would depose a leader that is alive (dissertation section 4.2.3), or one that this
            // replica may have heard just before it was restarted.
            if !mayVote || hasLiveLeader && !isTransfer { return }
            becomeFollower(term: message.term, leader: nil)
        case .appendRequest, .heartbeatRequest:
            becomeFollower(term: message.term, leader: message.from)
        case .preVoteResponse, .voteResponse, .appendResponse, .heartbeatResponse, .timeoutNow:
            becomeFollower(term: message.term, leader: nil)
        }
        receiveCurrent(message)
    }

    /// A message of an earlier term. The response to a request tells the sender the current term.
    private mutating func receiveEarlier(_ message: Message) {
        switch message.body {
        case .preVoteRequest: send(.preVoteResponse(granted: false), to: message.from)
        case .voteRequest: send(.voteResponse(granted: false), to: message.from)
        case .appendRequest, .heartbeatRequest: send(.heartbeatResponse(round: 0), to: message.from)
        case .preVoteResponse, .voteResponse, .appendResponse, .heartbeatResponse, .timeoutNow: break
        }
    }

    private mutating func receiveCurrent(_ message: Message) {
        precondition(message.term == term, "a message of term \(message.term) in term \(term)")
        switch message.body {
        case .preVoteRequest(let lastLog): receivePreVoteRequest(lastLog: lastLog, message)
        case .preVoteResponse(let granted): receivePreVoteResponse(granted: granted, message)
        case .voteRequest(let lastLog, let isTransfer):
            receiveVoteRequest(lastLog: lastLog, isTransfer: isTransfer, message)
        case .voteResponse(let granted): receiveVoteResponse(granted: granted, message)
        case .appendRequest(let request): receiveAppendRequest(request, message)
        case .appendResponse(let response):
            let reign = leadership?.receive(response, from: message.from, in: &replica)
            if reign == .isOver { becomeFollower(term: term, leader: nil) }
        case .heartbeatRequest(let commit, let round): receiveHeartbeatRequest(commit: commit, round: round, message)
        case .heartbeatResponse(let round): leadership?.receive(answerTo: round, from: message.from, in: &replica)
        case .timeoutNow: receiveTimeoutNow(message)
        }
    }

    /// The leader of this term sends entries (dissertation section 3.5).
    private mutating func receiveAppendRequest(_ request: AppendRequest, _ message: Message) {
        guard request.isWellFormed, request.entries.last?.term ?? request.previous.term <= term else { return }
        heardLeader(message.from)
        heardCommit(request.commit, from: message.from)
        replica.receive(request, from: message.from)
    }

    /// The leader of this term lives, and tells what is committed of the entries it knows to be here.
    private mutating func receiveHeartbeatRequest(commit: LogIndex, round: UInt64, _ message: Message) {
        heardLeader(message.from)
        heardCommit(commit, from: message.from)
        replica.commitAsFollower(through: commit)
        send(.heartbeatResponse(round: round), to: message.from)
    }

    /// A leader of this term reported its commit index.
    private mutating func heardCommit(_ index: LogIndex, from leader: ReplicaID) {
        guard let known = leaderCommit, known.leader == leader, known.term == term else {
            leaderCommit = LeaderCommit(leader: leader, term: term, index: index)
            return
        }
        leaderCommit?.index = max(known.index, index)
    }
}
