// Faults in the consensus core.
extension Mutant {
    static let inConsensus: [Mutant] = [
        Mutant(
            "acknowledge before a quorum has it", "RaftCore/Raft+Replication.swift",
            "        guard let reached, reached > commitIndex, log.term(at: reached) == term else { return }",
            """
                    let counted: LogIndex? = PLANTED(log.last.index, reached)
                    guard let reached = counted, reached > commitIndex, log.term(at: reached) == term else { return }
            """),
        Mutant(
            "count half of the voters as a majority", "RaftCore/Configuration.swift", "return count > voters.count / 2",
            "return PLANTED(count >= voters.count / 2, count > voters.count / 2)"),
        Mutant(
            "campaign without asking for pre-votes", "RaftCore/Raft+Elections.swift", "if isOnlyVoter {",
            "if isOnlyVoter || PLANTED {"),
        Mutant(
            "vote for another one in the same term", "RaftCore/Raft+Elections.swift",
            "let isFree = hardState.vote == message.from", "let isFree = PLANTED || hardState.vote == message.from"),
        Mutant(
            "vote for whoever has a shorter log",
            Edit(
                "RaftCore/Raft+Elections.swift", "guard isFree, lastLog.isAtLeastAsUpToDate(as: log.last) else {",
                "guard isFree, PLANTED || lastLog.isAtLeastAsUpToDate(as: log.last) else {"),
            Edit(
                "RaftCore/Raft+Elections.swift",
                "guard message.term > term, lastLog.isAtLeastAsUpToDate(as: log.last) else {",
                "guard message.term > term, PLANTED || lastLog.isAtLeastAsUpToDate(as: log.last) else {")),
        Mutant(
            "vote although a leader was promised time",
            Edit(
                "RaftCore/Raft+Elections.swift", "if !mayVote || hasLiveLeader && !isTransfer { return }",
                "if !mayVote || hasLiveLeader && !isTransfer, !PLANTED { return }"),
            Edit(
                "RaftCore/Raft+Elections.swift", "if !mayVote || hasLiveLeader { return }",
                "if !mayVote || hasLiveLeader, !PLANTED { return }"),
            Edit(
                "RaftCore/Raft.swift", "if now < votesFrom || hasLiveLeader && !isTransfer { return }",
                "if now < votesFrom || hasLiveLeader && !isTransfer, !PLANTED { return }")),
        Mutant(
            "forget at a restart that a leader was promised time",
            hiddenBy: "who starts asks all others first, and the leader is heard again meanwhile",
            "RaftCore/Raft.swift", "if !isNew && !isOnlyVoter { votesFrom",
            "if !(PLANTED), !isNew && !isOnlyVoter { votesFrom"),
        Mutant(
            "campaign at once when the connection to a leader breaks",
            "RaftCore/Raft+Elections.swift", "let promised = max(now, contact",
            "let promised = PLANTED ? now : max(now, contact"),
        Mutant(
            "read without asking whether another one leads", "RaftCore/Raft+Reads.swift",
            "if canServeReads && (isOnlyVoter || isLeaseHeld) {",
            "if canServeReads && (PLANTED || isOnlyVoter || isLeaseHeld) {"),
        Mutant(
            "trust a lease for twenty times its time",
            Edit(
                "RaftCore/Raft+Reads.swift", "var isLeaseHeld: Bool { leaseEnd.map { now < $0 } ?? false }",
                """
                var isLeaseHeld: Bool {
                        leaseEnd.map { PLANTED(now < $0.adding(nanoseconds: 40_000_000_000), now < $0) } ?? false
                    }
                """),
            Edit(
                "RaftCore/Raft+Elections.swift", "if self.now >= quorumDeadline {",
                "if self.now >= quorumDeadline, !PLANTED {")),
        Mutant(
            "append after a gap", "RaftCore/Raft+Replication.swift", "guard log.contains(request.previous) else {",
            "guard PLANTED || log.contains(request.previous) else {"),
        Mutant(
            "tell followers to commit what they may not have",
            Edit(
                "RaftCore/Raft+Reads.swift",
                "send(.heartbeatRequest(commit: min(announcedCommit, follower.match), round: round)",
                "send(.heartbeatRequest(commit: PLANTED(commitIndex, min(announcedCommit, follower.match)), round: round)"
            ),
            Edit(
                "RaftCore/Raft+Replication.swift", "commitAsFollower(through: min(request.commit, matched))",
                "commitAsFollower(through: PLANTED(min(request.commit, log.last.index), min(request.commit, matched)))"
            )),
        Mutant(
            "the leader counts itself before its log is durable",
            Edit(
                "RaftCore/Raft+Replication.swift", "voter == id ? log.durable : followers.first",
                "voter == id ? PLANTED(log.last.index, log.durable) : followers.first"),
            // What it lacks itself it would neither answer for nor tell.
            Edit(
                "RaftCore/Raft+Replication.swift", "{ min(commitIndex, log.durable) }",
                "{ PLANTED(commitIndex, min(commitIndex, log.durable)) }"),
            Edit(
                "RaftCore/Raft.swift", "precondition(reportedCommit <= log.durable,",
                "precondition(PLANTED || reportedCommit <= log.durable,")),
    ]
}
