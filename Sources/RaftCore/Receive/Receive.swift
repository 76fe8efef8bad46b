extension Raft {
    /// A message came from another replica. One meant for another replica is ignored, and so is one that no replica could
    /// have sent, or an answer of a replica outside of the configuration in force.
    public mutating func receive(_ message: Message, now: MonotonicTime) -> Effects {
        begin(now)
        if message.to == id, message.from != id, counts(message), message.term > .zero {
            if message.term > term {
                receiveLater(message)
            } else if message.term < term {
                receiveEarlier(message)
            } else {
                receiveCurrent(message)
            }
        }
        return finish()
    }

    /// Whether the message counts here. What others ask does whoever they are: this replica may lack the entry that made
    /// them members, and must accept their lead and vote for them all the same (dissertation section 4.1). Answers of
    /// those who are no members do not: a replica that was removed may have gone on to a later term.
    private func counts(_ message: Message) -> Bool {
        switch message.body {
        case .preVoteRequest, .voteRequest, .appendRequest, .heartbeatRequest, .timeoutNow:
            return true
        case .preVoteResponse, .voteResponse, .appendResponse, .heartbeatResponse:
            return configuration.contains(message.from) || configuration.voters.isEmpty
        }
    }

    /// A message of a later term: this replica is behind, unless the message only asks or must be kept out.
    private mutating func receiveLater(_ message: Message) {
        switch message.body {
        case .preVoteRequest(let lastLog):
            receivePreVoteRequest(lastLog: lastLog, message)
            return
        case .preVoteResponse(granted: true):
            // It repeats the term that this replica would campaign in.
            receivePreVoteResponse(granted: true, message)
            return
        case .voteRequest(_, let isTransfer):
            // Taking over the term would depose a leader that is alive (dissertation section 4.2.3), or one that this
            // replica may have heard just before it was restarted.
            if now < votesFrom || hasLiveLeader && !isTransfer { return }
            becomeFollower(term: message.term, leader: nil)
        case .appendRequest, .heartbeatRequest:
            becomeFollower(term: message.term, leader: message.from)
        case .preVoteResponse, .voteResponse, .appendResponse, .heartbeatResponse, .timeoutNow:
            becomeFollower(term: message.term, leader: nil)
        }
        receiveCurrent(message)
    }

    /// A message of an earlier term: whoever asks for something learns of this term by the answer.
    private mutating func receiveEarlier(_ message: Message) {
        switch message.body {
        case .preVoteRequest: send(.preVoteResponse(granted: false), to: message.from)
        case .voteRequest: send(.voteResponse(granted: false), to: message.from)
        case .appendRequest, .heartbeatRequest: send(.heartbeatResponse(round: 0), to: message.from)
        case .preVoteResponse, .voteResponse, .appendResponse, .heartbeatResponse, .timeoutNow: break
        }
    }

    private mutating func receiveCurrent(_ message: Message) {
        precondition(message.term == term, "a message of term \(message.term) in term \(term)")
        switch message.body {
        case .preVoteRequest(let lastLog): receivePreVoteRequest(lastLog: lastLog, message)
        case .preVoteResponse(let granted): receivePreVoteResponse(granted: granted, message)
        case .voteRequest(let lastLog, let isTransfer):
            receiveVoteRequest(lastLog: lastLog, isTransfer: isTransfer, message)
        case .voteResponse(let granted): receiveVoteResponse(granted: granted, message)
        case .appendRequest(let request): receiveAppendRequest(request, message)
        case .appendResponse(let response): receiveAppendResponse(response, message)
        case .heartbeatRequest(let commit, let round): receiveHeartbeatRequest(commit: commit, round: round, message)
        case .heartbeatResponse(let round): receiveHeartbeatResponse(round: round, message)
        case .timeoutNow: receiveTimeoutNow(message)
        }
    }
}
