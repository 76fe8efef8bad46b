extension Raft {
    /// A follower lives and follows. That ends the wait of a probe, and shows whether appends were lost.
    mutating func receiveHeartbeatResponse(round answered: UInt64, _ message: Message) {
        guard role == .leader, let offset = followers.firstIndex(where: { $0.id == message.from }) else { return }
        precondition(answered <= round, "\(message.from) answers round \(answered), the latest is \(round)")
        followers[offset].lastHeard = now
        followers[offset].confirmed(answered, sentAt: rounds.sentAt(answered))
        followers[offset].resume()
        if isStalled(followers[offset]) {
            followers[offset].becomeProbe(next: followers[offset].match.next)
        }
        replicate(to: offset)
        advanceReads()
    }

    /// Whether appends under way have brought nothing for two heartbeat intervals, though the follower answers. If it
    /// is merely slow, probing costs one append that it has already.
    private func isStalled(_ follower: Progress) -> Bool {
        guard follower.state == .replicate, !follower.inflights.isEmpty else { return false }
        return now >= follower.lastProgress.adding(milliseconds: 2 * settings.heartbeatIntervalMilliseconds)
    }
}
