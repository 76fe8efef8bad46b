import PeerTransport
import RaftCore

/// Reads every Raft message that a living process sends, and holds it against Raft's promises: one leader a term, one
/// vote a term, no campaign that nobody agreed to, one entry at a position; and nobody falls back into a term that is
/// over for it.
struct RaftWatch {
    struct Reign: Hashable {
        var group: GroupID
        var term: Term
    }

    private struct Ballot: Hashable {
        var group: GroupID
        var voter: ReplicaID
        var term: Term
    }

    private struct Place: Hashable {
        var group: GroupID
        var position: LogPosition
    }

    struct Member: Hashable {
        var group: GroupID
        var replica: ReplicaID
    }

    private var leaders: [Reign: ReplicaID] = [:]
    private var votes: [Ballot: ReplicaID] = [:]
    /// Who said that it would vote for a replica in a term.
    private var preVotes: [Ballot: [ReplicaID]] = [:]
    private var entries: [Place: Entry.Payload] = [:]
    /// The highest term that each replica has spoken in.
    private var terms: [Member: Term] = [:]
    /// Who leads each group, as far as anyone has said.
    private(set) var reigns: [GroupID: (term: Term, leader: ReplicaID)] = [:]
    private(set) var elections = 0
    private(set) var transfers = 0
    /// What the last message is an instance of.
    private(set) var situations: [Situation] = []
    /// The group in which the sender of the last message has become the leader.
    private(set) var newReign: GroupID?
    /// The members that the last message was the first to tell of.
    private(set) var newMembers: Configuration?
    /// The newest term of an entry at each index that was sent.
    private var sentTerms: [GroupID: [LogIndex: Term]] = [:]

    /// - Returns: what is wrong with the message; nil if nothing is.
    mutating func judge(_ sent: PeerMessage) -> String? {
        let (group, message) = (sent.group, sent.message)
        (situations, newReign, newMembers) = ([], nil, nil)
        switch message.body {
        case .preVoteRequest, .preVoteResponse: break
        default:
            let member = Member(group: group, replica: message.from)
            if let other = terms[member], other > message.term {
                return "group \(group): \(message.from) has spoken in term \(other), and now in \(message.term)"
            }
            terms[member] = message.term
        }
        switch message.body {
        case .appendRequest(let request):
            return leads(message.from, group, message.term) ?? hold(request.entries, group, by: message.from)
        case .heartbeatRequest: return leads(message.from, group, message.term)
        case .timeoutNow:
            transfers += 1
            return leads(message.from, group, message.term)
        case .preVoteResponse(granted: true):
            preVotes[Ballot(group: group, voter: message.to, term: message.term), default: []].append(message.from)
        case .voteRequest(_, isTransfer: false):
            // A group of one asks nobody; of more, at least one other must have agreed.
            if preVotes[Ballot(group: group, voter: message.from, term: message.term)] == nil {
                return "group \(group): \(message.from) campaigns in term \(message.term) without a pre-vote"
            }
        case .voteRequest(_, isTransfer: true): situations.append(.transferElection)
        case .voteResponse(granted: true):
            let ballot = Ballot(group: group, voter: message.from, term: message.term)
            if let other = votes.updateValue(message.to, forKey: ballot), other != message.to {
                return "group \(group): \(message.from) voted for \(other) and \(message.to) in term \(message.term)"
            }
        default: break
        }
        return nil
    }

    /// What the entry at a position is; nil where no leader sent it.
    func payload(of group: GroupID, at position: LogPosition) -> Entry.Payload? {
        entries[Place(group: group, position: position)]
    }

    private mutating func leads(_ leader: ReplicaID, _ group: GroupID, _ term: Term) -> String? {
        if let other = leaders[Reign(group: group, term: term)] {
            return other == leader ? nil : "group \(group): \(other) and \(leader) both lead term \(term)"
        }
        leaders[Reign(group: group, term: term)] = leader
        if reigns[group].map({ $0.term < term }) ?? true { reigns[group] = (term, leader) }
        elections += 1
        newReign = group
        return nil
    }

    private mutating func hold(_ sent: [Entry], _ group: GroupID, by leader: ReplicaID) -> String? {
        for entry in sent {
            let place = Place(group: group, position: entry.position)
            if let other = entries[place] {
                if other != entry.payload { return "group \(group): \(leader) has another entry at \(entry.position)" }
            } else {
                entries[place] = entry.payload
                note(entry, group)
            }
        }
        return nil
    }

    private mutating func note(_ entry: Entry, _ group: GroupID) {
        if case .configuration(let configuration) = entry.payload {
            newMembers = configuration
            if configuration.isJoint { situations.append(.jointConfiguration) }
        }
        let other = sentTerms[group, default: [:]].updateValue(entry.term, forKey: entry.index)
        if let other, other < entry.term { situations.append(.overwrittenEntry) }
    }
}
