@testable import RaftCore

/// The dissertation's promises (figure 3.2 and chapters 4 and 6), checked at every step of a simulation.
struct SimulationChecker {
    private var leaders: [Term: ReplicaID] = [:]
    private var votes: [Ballot: ReplicaID] = [:]
    /// The term of each index that some replica knew to be committed.
    private var committedTerms: [LogIndex: Term] = [:]
    private(set) var commit = LogIndex.zero
    /// What was applied, by index; once here it must never change.
    private(set) var applied: [Entry] = []
    private(set) var configuration: Configuration
    private var readFloors: [UInt64: LogIndex] = [:]

    private struct Ballot: Hashable {
        var voter: ReplicaID
        var term: Term
    }

    init(initial configuration: Configuration) { self.configuration = configuration }

    var appliedIndex: LogIndex { LogIndex(UInt64(applied.count)) }
    var elections: Int { leaders.count }

    // MARK: Replicas

    mutating func transition(from before: Raft, to after: Raft) throws {
        guard after.term >= before.term else { throw Violation("\(after.id) went back to term \(after.term)") }
        guard after.commitIndex >= before.commitIndex else { throw Violation("\(after.id) uncommitted entries") }
        if after.commitIndex > before.commitIndex { try committed(after) }
        guard after.role == .leader else { return }
        if before.role == .leader, before.term == after.term {
            guard after.lastLog.index >= before.lastLog.index else { throw Violation("leader \(after.id) cut its log") }
        } else {
            try elected(after)
        }
    }

    /// Election safety (section 3.4) and leader completeness (3.6.3).
    private mutating func elected(_ raft: Raft) throws {
        if let other = leaders[raft.term], other != raft.id {
            throw Violation("\(other) and \(raft.id) both lead term \(raft.term)")
        }
        leaders[raft.term] = raft.id
        guard commit > raft.replica.log.snapshot.index, let term = committedTerms[commit], term < raft.term else {
            return
        }
        guard raft.replica.log.term(at: commit) == term else {
            throw Violation("leader \(raft.id) of term \(raft.term) lacks \(commit)@\(term), which is committed")
        }
    }

    private mutating func committed(_ raft: Raft) throws {
        let index = raft.commitIndex
        guard let term = raft.replica.log.term(at: index) else { throw Violation("\(raft.id) has no term at \(index)") }
        if let known = committedTerms[index], known != term {
            throw Violation("\(raft.id) committed \(index)@\(term) where \(index)@\(known) was committed")
        }
        committedTerms[index] = term
        commit = max(commit, index)
    }

    /// A promise that leaves a replica is on its disk.
    mutating func sent(_ message: Message, disk: SimulatedNode.Disk) throws {
        switch message.body {
        case .voteResponse(granted: true):
            let ballot = Ballot(voter: message.from, term: message.term)
            if let other = votes[ballot], other != message.to {
                throw Violation("\(message.from) voted for \(other) and \(message.to) in term \(message.term)")
            }
            votes[ballot] = message.to
            guard disk.hardState.term >= message.term else {
                throw Violation("\(message.from) told its vote in term \(message.term) before it was durable")
            }
        case .appendResponse(.accepted(let match)):
            guard disk.lastLog.index >= match else {
                throw Violation("\(message.from) acknowledged \(match), but its disk ends at \(disk.lastLog)")
            }
        default: break
        }
    }

    // MARK: State machines

    mutating func apply(_ entry: Entry, by replica: ReplicaID) throws {
        let place = Int(entry.index.rawValue) - 1
        if place < applied.count {
            guard applied[place] == entry else {
                throw Violation("\(replica) applied \(entry.position) where \(applied[place].position) was applied")
            }
            return
        }
        guard place == applied.count else { throw Violation("\(replica) skipped to \(entry.position)") }
        applied.append(entry)
        if case .configuration(let next) = entry.payload { try change(to: next) }
    }

    /// Members change as section 4.3 says, one change after the other.
    private mutating func change(to next: Configuration) throws {
        let isRight =
            if configuration.isJoint {
                next == configuration.withoutOutgoing
            } else if next.isJoint {
                next.outgoing == configuration.voters
            } else {
                next.voters == configuration.voters
            }
        guard isRight else { throw Violation("\(configuration) became \(next)") }
        configuration = next
    }

    /// The configuration of a snapshot at `index`.
    func configuration(at index: LogIndex, bootstrap: Configuration) -> Configuration {
        for entry in applied[..<Int(index.rawValue)].reversed() {
            if case .configuration(let configuration) = entry.payload { return configuration }
        }
        return bootstrap
    }

    // MARK: Reads

    mutating func readInvoked(_ id: UInt64) { readFloors[id] = commit }

    /// Returns whether the read saw everything that was committed when it came (section 6.4).
    mutating func readAnswered(_ read: ReadReady) throws -> Bool {
        guard let floor = readFloors.removeValue(forKey: read.id) else {
            throw Violation("read \(read.id) was answered twice, or never asked")
        }
        return read.index >= floor
    }

    // MARK: Logs

    /// If two logs hold the same entry, everything before it is the same (section 3.5).
    func checkLogs(_ nodes: [SimulatedNode]) throws {
        for (place, left) in nodes.enumerated() where !left.isRetired {
            for right in nodes[(place + 1)...] where !right.isRetired {
                let from = max(left.disk.snapshot.position.index, right.disk.snapshot.position.index).next
                let one = left.disk.entries(from: from, through: left.disk.lastLog.index)
                let other = right.disk.entries(from: from, through: right.disk.lastLog.index)
                let pairs = Array(zip(one, other))
                guard let latest = pairs.lastIndex(where: { $0.0.position == $0.1.position }) else { continue }
                if let differing = pairs[...latest].first(where: { $0.0 != $0.1 }) {
                    throw Violation("\(left.id) and \(right.id) differ at \(differing.0.position)")
                }
            }
        }
    }
}
