extension Raft {
    /// Someone voted. The answer is of this term, so it is to this campaign.
    mutating func receiveVoteResponse(granted: Bool, _ message: Message) {
        guard role == .candidate else { return }
        addBallot(message.from, granted: granted)
        countVotes()
    }
}
