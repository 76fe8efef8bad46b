extension Raft {
    /// Someone wants to lead this term (dissertation sections 3.4 and 3.6.1). The vote is durable before it is told.
    mutating func receiveVoteRequest(lastLog: LogPosition, isTransfer: Bool, _ message: Message) {
        if !mayVote || hasLiveLeader && !isTransfer { return }
        let isFree = hardState.vote == message.from || hardState.vote == nil && leader == nil
        guard isFree, lastLog.isAtLeastAsUpToDate(as: log.last) else {
            send(.voteResponse(granted: false), to: message.from)
            return
        }
        precondition(role == .follower || role == .preCandidate, "a \(role) votes for \(message.from)")
        if role == .preCandidate { becomeFollower(term: term, leader: nil) }
        hardState.vote = message.from
        resetElectionTimer()
        send(.voteResponse(granted: true), to: message.from)
    }
}
