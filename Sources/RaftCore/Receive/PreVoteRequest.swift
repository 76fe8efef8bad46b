extension Raft {
    /// Someone asks whether this replica would vote for it (dissertation section 9.6). Answering changes nothing here.
    mutating func receivePreVoteRequest(lastLog: LogPosition, _ message: Message) {
        if !mayVote || hasLiveLeader { return }
        guard message.term > term, lastLog.isAtLeastAsUpToDate(as: log.last) else {
            send(.preVoteResponse(granted: false), to: message.from)
            return
        }
        // In the term that the sender would campaign in, so that it can tell which campaign is meant.
        let answer = Message(from: id, to: message.from, term: message.term, body: .preVoteResponse(granted: true))
        output.sendNow.append(answer)
    }
}
