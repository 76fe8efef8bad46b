extension Raft {
    /// The leader of this term lives, and tells what is committed of the entries it knows to be here.
    mutating func receiveHeartbeatRequest(commit: LogIndex, round: UInt64, _ message: Message) {
        heardLeader(message.from)
        heardCommit(commit, from: message.from)
        commitAsFollower(through: commit)
        send(.heartbeatResponse(round: round), to: message.from)
    }
}
