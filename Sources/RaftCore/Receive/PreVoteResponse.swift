extension Raft {
    /// Someone says whether it would vote for this replica. A yes is in the next term, a no in the voter's own.
    mutating func receivePreVoteResponse(granted: Bool, _ message: Message) {
        guard role == .preCandidate, message.term == (granted ? term.next : term) else { return }
        addBallot(message.from, granted: granted)
        countPreVotes()
    }
}
