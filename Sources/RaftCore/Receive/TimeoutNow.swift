extension Raft {
    /// The leader hands over: campaigns at once, without asking whether others still hear the leader (dissertation
    /// section 3.10).
    mutating func receiveTimeoutNow(_ message: Message) {
        guard role == .follower, leader == message.from, isPromotable else { return }
        campaign(isTransfer: true)
    }
}
