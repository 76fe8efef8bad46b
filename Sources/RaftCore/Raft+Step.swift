/// The frame round every event.
extension Raft {
    /// Begins an event.
    mutating func begin(_ time: MonotonicTime) {
        now = max(now, time)
        precondition(output == Effects(), "an event inside an event")
    }

    /// Ends an event: says what it changed and takes its effects.
    mutating func finish() -> Effects {
        reportCommit()
        let mustPersist = !output.append.isEmpty || !output.sendAfterPersist.isEmpty || hardState != emittedHardState
        if hardState != durableHardState && mustPersist {
            output.hardState = hardState
            emittedHardState = hardState
        }
        precondition(
            output.sendAfterPersist.isEmpty || output.hardState != nil || !output.append.isEmpty,
            "\(output.sendAfterPersist.count) messages wait for a persist that is not asked for")
        let current = RoleChange(role: role, term: term, leader: leader)
        if current != reportedRole {
            output.roleChange = current
            reportedRole = current
        }
        output.wakeAt = wakeTime
        checkInvariants()
        defer { output = Effects() }
        return output
    }

    private var wakeTime: MonotonicTime {
        guard role == .leader else { return electionDeadline }
        let deadline = min(heartbeatDeadline, quorumDeadline)
        return transfer.map { min($0.deadline, deadline) } ?? deadline
    }

    /// Sends a message that binds this replica only as far as its term and vote do.
    ///
    /// An answer given in a term that a crash could make this replica forget would be a promise forgotten, so it
    /// waits until the term is durable.
    mutating func send(_ body: Message.Body, to receiver: ReplicaID) {
        precondition(receiver != id, "replica \(id) sends to itself")
        let message = Message(from: id, to: receiver, term: term, body: body)
        if hardState == durableHardState {
            output.sendNow.append(message)
        } else {
            output.sendAfterPersist.append(message)
        }
    }

    private mutating func reportCommit() {
        guard pendingInstall == nil else { return }
        let applicable = announcedCommit
        guard applicable > reportedCommit else { return }
        reportedCommit = applicable
        output.commitIndex = applicable
    }

    private func checkInvariants() {
        precondition(log.snapshot.index <= appliedIndex, "applied \(appliedIndex), snapshot \(log.snapshot)")
        precondition(appliedIndex <= reportedCommit, "applied \(appliedIndex) of \(reportedCommit)")
        precondition(reportedCommit <= commitIndex, "reported \(reportedCommit) of \(commitIndex)")
        precondition(reportedCommit <= log.durable, "reported \(reportedCommit), durable \(log.durable)")
        precondition(commitIndex <= log.last.index, "committed \(commitIndex), log ends at \(log.last)")
        precondition(log.last.term <= term, "the log ends at \(log.last) in term \(term)")
        precondition((role == .leader) == (leader == id), "role \(role), leader \(String(describing: leader))")
        precondition(role == .leader || followers.isEmpty && reads.count == 0, "a \(role) with a leader's state")
        precondition(role == .follower || pendingInstall == nil, "a \(role) that installs a snapshot")
        precondition(role == .leader || transfer == nil && !isLeaseGivenUp, "a \(role) that hands over")
        let members = configuration
        precondition(
            role != .leader || members.isJoint
                || followers.count + (members.contains(id) ? 1 : 0) == members.voters.count + members.learners.count,
            "\(followers.count) followers in \(members)")
    }
}
