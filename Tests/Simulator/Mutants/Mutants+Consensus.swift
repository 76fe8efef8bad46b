// Faults in the consensus core.
extension Mutant {
    static let inConsensus: [Mutant] = [
        Mutant(
            "acknowledge before a quorum has it", "RaftCore/Leadership.swift",
            "        guard let reached, reached > committed,",
            """
                    let counted: LogIndex? = PLANTED(replica.log.last.index, reached)
                    guard let reached = counted, reached > committed,
            """),
        Mutant(
            "count half of the voters as a majority", "RaftCore/Configuration.swift", "return count > voters.count / 2",
            "return PLANTED(count >= voters.count / 2, count > voters.count / 2)"),
        Mutant(
            "campaign without asking for pre-votes", "RaftCore/Raft+Elections.swift",
            "if replica.isOnlyVoter {", "if replica.isOnlyVoter || PLANTED {"),
        Mutant(
            "vote for another one in the same term", "RaftCore/Raft+Elections.swift",
            "let isFree = vote == message.from", "let isFree = PLANTED || vote == message.from"),
        Mutant(
            "vote for whoever has a shorter log",
            Edit(
                "RaftCore/Raft+Elections.swift", "guard isFree, lastLog.isAtLeastAsUpToDate(as: self.lastLog) else {",
                "guard isFree, PLANTED || lastLog.isAtLeastAsUpToDate(as: self.lastLog) else {"),
            Edit(
                "RaftCore/Raft+Elections.swift",
                "guard message.term > term, lastLog.isAtLeastAsUpToDate(as: self.lastLog) else {",
                "guard message.term > term, PLANTED || lastLog.isAtLeastAsUpToDate(as: self.lastLog) else {")),
        Mutant(
            "vote although a leader was promised time",
            Edit(
                "RaftCore/Raft+Elections.swift", "if !mayVote || hasLiveLeader && !isTransfer { return }",
                "if !mayVote || hasLiveLeader && !isTransfer, !PLANTED { return }"),
            Edit(
                "RaftCore/Raft+Elections.swift", "if !mayVote || hasLiveLeader { return }",
                "if !mayVote || hasLiveLeader, !PLANTED { return }"),
            Edit(
                "RaftCore/Raft.swift", "if !mayVote || hasLiveLeader && !isTransfer { return }",
                "if !mayVote || hasLiveLeader && !isTransfer, !PLANTED { return }")),
        Mutant(
            "forget at a restart that a leader was promised time",
            hiddenBy: "who starts asks all others first, and the leader is heard again meanwhile",
            "RaftCore/ElectionTimer.swift", "if !isNew { votesFrom", "if !(PLANTED), !isNew { votesFrom"),
        Mutant(
            "campaign at once when the connection to a leader breaks",
            "RaftCore/ElectionTimer.swift", "let promised = max(replica.now, contact",
            "let promised = PLANTED ? replica.now : max(replica.now, contact"),
        Mutant(
            "read without asking whether another one leads", "RaftCore/Leadership.swift",
            "if replica.canServeReads && (replica.isOnlyVoter ||",
            "if replica.canServeReads && (PLANTED || replica.isOnlyVoter ||"),
        Mutant(
            "trust a lease for twenty times its time",
            Edit(
                "RaftCore/Leadership.swift", ".map { replica.now < $0 } ?? false",
                """
                .map {
                            PLANTED(replica.now < $0.adding(nanoseconds: 40_000_000_000), replica.now < $0)
                        } ?? false
                """),
            Edit(
                "RaftCore/Leadership.swift", "if replica.now >= quorumDeadline(in: replica) {",
                "if replica.now >= quorumDeadline(in: replica), !PLANTED {")),
        Mutant(
            "append after a gap", "RaftCore/ReplicaState.swift", "guard log.contains(request.previous) else {",
            "guard PLANTED || log.contains(request.previous) else {"),
        Mutant(
            "tell followers to commit what they may not have",
            Edit(
                "RaftCore/Leadership.swift", "let commit = min(replica.log.announced, follower.match)",
                "let commit = PLANTED(replica.log.committed, min(replica.log.announced, follower.match))"),
            Edit(
                "RaftCore/ReplicaState.swift", "commitAsFollower(through: min(request.commit, matched))",
                "commitAsFollower(through: PLANTED(min(request.commit, log.last.index), min(request.commit, matched)))"
            )),
        Mutant(
            "the leader counts itself before its log is durable",
            Edit(
                "RaftCore/Leadership.swift", "voter == replica.id ? replica.log.durable :",
                "voter == replica.id ? PLANTED(replica.log.last.index, replica.log.durable) :"),
            // What it lacks itself it would neither answer for nor tell.
            Edit(
                "RaftCore/RaftLog.swift", "{ min(committed, durable) }",
                "{ PLANTED(committed, min(committed, durable)) }"),
            Edit(
                "RaftCore/RaftLog.swift", "precondition(reported <= durable,",
                "precondition(PLANTED || reported <= durable,")),
    ]
}
