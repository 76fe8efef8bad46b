import Cluster
import PeerTransport
import RaftCore
import Storage

/// Holds the members that each replica goes by against what was sent and committed: they are those of the snapshot and
/// of the log that it has, in memory and on its disk; and no replica is given up before it is known to be out of force.
struct RaftMembers {
    /// A change that takes replicas out of force, while its last entry is not committed.
    private struct Leave {
        var position: LogPosition
        var leader: ReplicaID
        /// The replicas and which life of its process each was in.
        var replicas: [(id: ReplicaID, life: Int)]
    }

    /// The entries with members that leaders sent, by index.
    private var sent: [GroupID: [(position: LogPosition, configuration: Configuration)]] = [:]
    private var committed: [GroupID: [LogIndex: Configuration]] = [:]
    private var leaves: [GroupID: Leave] = [:]

    /// Takes note of what a message says; its sender may be gone.
    mutating func note(_ message: PeerMessage) {
        guard case .appendRequest(let request) = message.message.body else { return }
        for entry in request.entries {
            guard case .configuration(let configuration) = entry.payload else { continue }
            var known = sent[message.group] ?? []
            let place = known.firstIndex { $0.position.index > entry.index } ?? known.count
            if known.contains(where: { $0.position == entry.position }) { continue }
            known.insert((entry.position, configuration), at: place)
            sent[message.group] = known
        }
    }

    /// Judges a replica.
    /// - Parameters:
    ///   - payload: what the entry at a position is, where it was ever sent.
    ///   - witness: a replica of the group, where its process runs and has it.
    ///   - life: which life the process on a node is in that takes part; nil for none.
    /// - Returns: what is wrong; nil if nothing is.
    mutating func judge(
        _ group: GroupID, _ sender: RaftProofs.Witness, payload: (LogPosition) -> Entry.Payload?,
        _ witness: (ReplicaID) -> RaftProofs.Witness?, life: (NodeID) -> Int?
    ) -> String? {
        let raft = sender.raft
        let inspector = RaftInspector(raft)
        let fault =
            goesByItsLog(group, raft, inspector, payload) ?? goesByItsSnapshot(group, raft, inspector)
            ?? isWrittenDown(sender.logged(), payload)
        if let fault { return "group \(group): \(raft.id) \(fault)" }
        noteLeave(group, raft, inspector, witness)
        return isGivenUp(group, witness, life)
    }

    private mutating func goesByItsLog(
        _ group: GroupID, _ raft: Raft, _ inspector: RaftInspector, _ payload: (LogPosition) -> Entry.Payload?
    ) -> String? {
        let own = inspector.configurations.dropFirst()
        for known in own {
            guard let term = inspector.term(at: known.index) else {
                return "goes by \(known.configuration) at \(known.index), which its log does not have"
            }
            if let fault = Self.contradiction(known.index, term, known.configuration, payload) { return fault }
            guard known.index <= raft.commitIndex else { continue }
            if let other = committed[group, default: [:]].updateValue(known.configuration, forKey: known.index),
                other != known.configuration
            {
                return "has \(known.configuration) committed at \(known.index), and another has \(other)"
            }
        }
        for entry in (sent[group] ?? []).reversed() {
            guard entry.position.index > raft.snapshotPosition.index else { break }
            guard inspector.term(at: entry.position.index) == entry.position.term else { continue }
            if !own.contains(where: { $0.index == entry.position.index }) {
                return "does not go by \(entry.configuration), which its log has at \(entry.position)"
            }
        }
        return nil
    }

    private static func contradiction(
        _ index: LogIndex, _ term: Term, _ configuration: Configuration, _ payload: (LogPosition) -> Entry.Payload?
    ) -> String? {
        let position = LogPosition(index: index, term: term)
        guard let sent = payload(position), sent != .configuration(configuration) else { return nil }
        return "goes by \(configuration) at \(position), where its log has something else"
    }

    private func goesByItsSnapshot(_ group: GroupID, _ raft: Raft, _ inspector: RaftInspector) -> String? {
        guard let first = inspector.configurations.first else { return "has no members at all" }
        let index = raft.snapshotPosition.index
        guard first.index == index else {
            return "goes by the members at \(first.index), and its snapshot stands at \(index)"
        }
        guard let last = sent[group]?.last(where: { $0.position.index <= index }),
            let known = committed[group]?[last.position.index], known != first.configuration
        else { return nil }
        return "goes by \(first.configuration) with a snapshot at \(index), where \(known) is in force"
    }

    /// What its next start would find.
    private func isWrittenDown(_ logged: RecoveredGroup?, _ payload: (LogPosition) -> Entry.Payload?) -> String? {
        guard let logged else { return nil }
        for known in logged.configurations {
            guard let term = logged.terms.last(where: { $0.index <= known.index })?.term else { continue }
            if let fault = Self.contradiction(known.index, term, known.configuration, payload) {
                return "on its disk \(fault)"
            }
        }
        return nil
    }

    // MARK: Replicas that leave

    /// Takes note of a change that a leader has in its log and does not know to be committed.
    private mutating func noteLeave(
        _ group: GroupID, _ raft: Raft, _ inspector: RaftInspector, _ witness: (ReplicaID) -> RaftProofs.Witness?
    ) {
        let all = inspector.configurations
        guard raft.role == .leader, all.count > 1, let last = all.last, !last.configuration.isJoint,
            last.index > raft.commitIndex, let term = inspector.term(at: last.index), term == raft.term
        else { return }
        let position = LogPosition(index: last.index, term: term)
        if leaves[group]?.position == position { return }
        let gone = all[all.count - 2].configuration.all.filter { !last.configuration.contains($0) && $0 != raft.id }
        let replicas = gone.compactMap { id in witness(id).map { (id, $0.life) } }
        if !replicas.isEmpty { leaves[group] = Leave(position: position, leader: raft.id, replicas: replicas) }
    }

    /// Whether a replica is gone while its leader, the only one to say that it may go, does not know that.
    private mutating func isGivenUp(
        _ group: GroupID, _ witness: (ReplicaID) -> RaftProofs.Witness?, _ life: (NodeID) -> Int?
    ) -> String? {
        guard let leave = leaves[group] else { return nil }
        guard let leader = witness(leave.leader)?.raft, leader.role == .leader, leader.term == leave.position.term,
            leader.commitIndex < leave.position.index
        else {
            leaves[group] = nil
            return nil
        }
        guard let gone = leave.replicas.first(where: { life($0.id.node) == $0.life && witness($0.id) == nil }) else {
            return nil
        }
        return "group \(group): \(gone.id) is given up, and nobody knows \(leave.position), which has it leave, "
            + "to be committed"
    }
}
