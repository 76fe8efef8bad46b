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
    /// This replica.
    public let id: ReplicaID
    /// Times and limits, which do not change while the replica runs.
    public let settings: RaftSettings
    /// What the replica is doing.
    public internal(set) var role = Role.follower
    /// The leader of this term, if known.
    public internal(set) var leader: ReplicaID?
    /// Everything up to here is committed. `Effects.commitIndex` may lag behind it until this replica's log is durable.
    public internal(set) var commitIndex: LogIndex
    /// What the last leader that was heard said is committed. It is not kept over a restart.
    public internal(set) var leaderCommit: LeaderCommit?

    // Fields are internal because the handlers live in files of their own; nothing outside of this module can touch
    // them.

    var log: RaftLog
    /// The snapshot's configuration and those of the log, oldest first; the last is in force.
    var configurations: [ConfigurationAt]
    var hardState: HardState
    var durableHardState: HardState
    var emittedHardState: HardState
    /// What the state machine has.
    var appliedIndex: LogIndex
    /// What the shell was told that it may apply.
    var reportedCommit: LogIndex
    /// A snapshot that the shell is installing. Until it is done the replica neither appends nor campaigns nor applies.
    var pendingInstall: SnapshotMark?
    /// A match that was not durable when the leader of this term asked, and that no later effects would tell it of.
    var owedMatch: LogPosition?

    var now: MonotonicTime
    var generator: SplitMix64
    var electionDeadline: MonotonicTime
    var lastLeaderContact: MonotonicTime?
    /// The leader whose connection broke, until it is heard over a new one.
    var lostLeader: LostLeader?
    /// Before this time no vote is granted.
    var votesFrom: MonotonicTime
    /// Answers of the election under way, in the order in which they came.
    var ballots: [Ballot] = []
    var isTransferElection = false

    // Only while leading:
    var followers: [Progress] = []
    var heartbeatDeadline = MonotonicTime.zero
    var round: UInt64 = 0
    var reads = PendingReads()
    /// Bytes of the entries in memory that are not committed.
    var uncommittedBytes = 0
    /// The rounds of heartbeats whose answers may still prolong the lease.
    var rounds = HeartbeatRounds()
    /// Replicas that the change under way removes. They are told when it is committed.
    var leaving: [ReplicaID] = []
    /// Whether another replica was asked to take over in this term. It may do so at any later time, and voters then do
    /// not wait for this leader, so there is no lease until the next term.
    var isLeaseGivenUp = false

    var output = Effects()
    var reportedRole: RoleChange

    /// A replica as it was on disk. Call `tick` next, which says when to wake up.
    /// - Precondition: `restored` is consistent; see `RestoredState`.
    public init(id: ReplicaID, settings: RaftSettings, seed: UInt64, restored: RestoredState, now: MonotonicTime) {
        settings.check()
        self.id = id
        self.settings = settings
        log = RaftLog(restored)
        hardState = restored.hardState
        durableHardState = restored.hardState
        emittedHardState = restored.hardState
        precondition(hardState.term >= log.last.term, "term \(hardState.term), but the log ends at \(log.last)")
        precondition(
            restored.applied >= log.snapshot.index && restored.applied <= log.last.index,
            "applied to \(restored.applied), but the log is \(log.snapshot)...\(log.last)")
        commitIndex = restored.applied
        appliedIndex = restored.applied
        reportedCommit = restored.applied
        configurations = [
            ConfigurationAt(index: log.snapshot.index, configuration: restored.snapshot.configuration)
        ]
        for next in restored.configurations {
            precondition(next.index > configurations[configurations.count - 1].index, "configurations out of order")
            precondition(next.index <= log.last.index, "a configuration at \(next.index) after the end \(log.last)")
            configurations.append(next)
        }
        self.now = now
        generator = SplitMix64(seed: seed)
        electionDeadline = now
        votesFrom = now
        reportedRole = RoleChange(role: .follower, term: restored.hardState.term, leader: nil)
        let isNew = log.last == .zero && hardState == HardState()
        if !isNew && !isOnlyVoter { votesFrom = now.adding(milliseconds: 2 * settings.electionTimeoutMilliseconds) }
        // A group of one has no other candidate, so there is nothing to wait for.
        if !isOnlyVoter { resetElectionTimer() }
    }

    /// The latest term that this replica has seen.
    public var term: Term { hardState.term }
    /// The last entry of the log, durable or not.
    public var lastLog: LogPosition { log.last }
    /// Everything up to here is compacted away.
    public var snapshotPosition: LogPosition { log.snapshot }
    /// The configuration in force: the latest in the log, committed or not (dissertation section 4.1).
    public var configuration: Configuration {
        precondition(!configurations.isEmpty, "no configuration")
        return configurations[configurations.count - 1].configuration
    }

    /// Whether the configuration in force is known to be committed. While it is not, or is joint, members are changing.
    public var isConfigurationCommitted: Bool {
        precondition(!configurations.isEmpty, "no configuration")
        return configurations[configurations.count - 1].index <= commitIndex
    }

    /// Entries from memory: at least one if there is one, and no more than `bytesMax` bytes.
    /// - Returns: nil if `from` is no longer in memory; the shell then reads its own log.
    public func entries(from: LogIndex, through: LogIndex, bytesMax: Int) -> [Entry]? {
        log.cached(from: from, through: through, bytesMax: bytesMax)
    }

    /// Whether this replica is all it takes for a majority.
    var isOnlyVoter: Bool { Quorum.isMajority(configuration) { $0 == id } }
}

/// The frame round every event.
extension Raft {
    /// Begins an event.
    mutating func begin(_ time: MonotonicTime) {
        now = max(now, time)
        precondition(output == Effects(), "an event inside an event")
    }

    /// Ends an event: says what it changed and takes its effects.
    mutating func finish() -> Effects {
        reportCommit()
        let mustPersist = !output.append.isEmpty || !output.sendAfterPersist.isEmpty || hardState != emittedHardState
        if hardState != durableHardState && mustPersist {
            output.hardState = hardState
            emittedHardState = hardState
        }
        precondition(
            output.sendAfterPersist.isEmpty || output.hardState != nil || !output.append.isEmpty,
            "\(output.sendAfterPersist.count) messages wait for a persist that is not asked for")
        let current = RoleChange(role: role, term: term, leader: leader)
        if current != reportedRole {
            output.roleChange = current
            reportedRole = current
        }
        output.wakeAt = wakeTime
        checkInvariants()
        defer { output = Effects() }
        return output
    }

    private var wakeTime: MonotonicTime {
        role == .leader ? min(heartbeatDeadline, quorumDeadline) : electionDeadline
    }

    /// Sends a message that binds this replica only as far as its term and vote do.
    ///
    /// An answer given in a term that a crash could make this replica forget would be a promise forgotten, so it
    /// waits until the term is durable.
    mutating func send(_ body: Message.Body, to receiver: ReplicaID) {
        precondition(receiver != id, "replica \(id) sends to itself")
        let message = Message(from: id, to: receiver, term: term, body: body)
        if hardState == durableHardState {
            output.sendNow.append(message)
        } else {
            output.sendAfterPersist.append(message)
        }
    }

    private mutating func reportCommit() {
        guard pendingInstall == nil else { return }
        let applicable = announcedCommit
        guard applicable > reportedCommit else { return }
        reportedCommit = applicable
        output.commitIndex = applicable
    }

    private func checkInvariants() {
        precondition(log.snapshot.index <= appliedIndex, "applied \(appliedIndex), snapshot \(log.snapshot)")
        precondition(appliedIndex <= reportedCommit, "applied \(appliedIndex) of \(reportedCommit)")
        precondition(reportedCommit <= commitIndex, "reported \(reportedCommit) of \(commitIndex)")
        precondition(reportedCommit <= log.durable, "reported \(reportedCommit), durable \(log.durable)")
        precondition(commitIndex <= log.last.index, "committed \(commitIndex), log ends at \(log.last)")
        precondition(log.last.term <= term, "the log ends at \(log.last) in term \(term)")
        precondition((role == .leader) == (leader == id), "role \(role), leader \(String(describing: leader))")
        precondition(role == .leader || followers.isEmpty && reads.count == 0, "a \(role) with a leader's state")
        precondition(role == .follower || pendingInstall == nil, "a \(role) that installs a snapshot")
        precondition(role == .leader || !isLeaseGivenUp, "a \(role) that hands over")
        let members = configuration
        precondition(
            role != .leader || members.isJoint
                || followers.count + (members.contains(id) ? 1 : 0) == members.voters.count + members.learners.count,
            "\(followers.count) followers in \(members)")
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
            if now < votesFrom || hasLiveLeader && !isTransfer { return }
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
        case .appendResponse(let response): receiveAppendResponse(response, message)
        case .heartbeatRequest(let commit, let round): receiveHeartbeatRequest(commit: commit, round: round, message)
        case .heartbeatResponse(let round): receiveHeartbeatResponse(round: round, message)
        case .timeoutNow: receiveTimeoutNow(message)
        }
    }
}

/// An answer to this replica's request for votes.
struct Ballot: Hashable, Sendable {
    var voter: ReplicaID
    var granted: Bool
}
