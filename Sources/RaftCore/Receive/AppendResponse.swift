extension Raft {
    /// A follower took entries, or could not.
    mutating func receiveAppendResponse(_ response: AppendResponse, _ message: Message) {
        guard role == .leader, let offset = followers.firstIndex(where: { $0.id == message.from }) else { return }
        followers[offset].lastHeard = now
        switch response {
        case .accepted(let match): accepted(match, by: offset)
        case .rejected(let previous, let hint): rejected(previous: previous, hint: hint, by: offset)
        }
    }

    private mutating func accepted(_ match: LogIndex, by offset: Int) {
        precondition(
            match <= log.last.index, "\(followers[offset].id) has \(match), but the leader's log ends at \(log.last)")
        let isNews = followers[offset].acknowledged(match, last: log.last.index, now: now)
        switch followers[offset].state {
        case .probe:
            // An older answer says nothing about where the logs agree now.
            if followers[offset].match == match { followers[offset].becomeReplicate() }
        case .snapshot:
            // The snapshot is installed, or was not needed, once the log holds what follows.
            if isNews, match >= log.snapshot.index { followers[offset].becomeReplicate() }
        case .replicate:
            break
        }
        let follower = followers[offset].id
        if isNews { advanceCommit() }
        // A commit may end this reign, or change who follows.
        guard role == .leader, let offset = followers.firstIndex(where: { $0.id == follower }) else { return }
        replicate(to: offset)
        if follower == transfer?.target { askTarget() }
    }

    private mutating func rejected(previous: LogIndex, hint: LogPosition, by offset: Int) {
        let match = followers[offset].match
        switch followers[offset].state {
        case .snapshot:
            return
        case .replicate:
            // Older than what was accepted since: a late answer.
            if previous <= match { return }
            followers[offset].becomeProbe(next: match.next)
        case .probe:
            if previous.next != followers[offset].next || previous <= match { return }
            // Without an index that may agree, the one before the snapshot makes a snapshot due.
            let agreed = log.greatestIndex(through: hint.index, termAtMost: hint.term) ?? log.snapshot.index.previous
            followers[offset].becomeProbe(next: max(min(previous, agreed.next), match.next))
        }
        replicate(to: offset)
    }
}
