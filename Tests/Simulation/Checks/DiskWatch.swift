import Cluster
import Foundation
import GRDB
import PeerTransport
import RaftCore
import Storage

/// Looks at what a node has on its disk when it speaks to others: nothing that it wrote waits to be synced; its folder
/// says which start this is, and that it has the replica that speaks; what its log let go is in a database that a power
/// failure leaves; and no replica speaks for two folders.
struct DiskWatch {
    private struct Speaker: Hashable {
        var group: GroupID
        var replica: ReplicaID
    }

    private struct Voice: Hashable {
        var node: Int
        var life: Int
        var speaker: Speaker
    }

    /// What `node.json` says, read without the code that wrote it.
    private struct Account: Decodable {
        struct Held: Decodable {
            var generation: UInt64
            var isGone: Bool?
        }
        var incarnation: UInt64
        var bootCounter: UInt64
        var replicas: [String: Held]?
    }

    /// Whose folder's number each replica spoke for.
    private var incarnations: [Speaker: UInt64] = [:]
    /// The last start of each folder that spoke.
    private var starts: [UInt64: UInt64] = [:]
    private var heard: Set<Voice> = []
    /// Where the log of each replica began when it was last looked at.
    private var begins: [Voice: LogIndex] = [:]
    private var looks = 0

    /// Judges a node that sends a message.
    /// - Parameters:
    ///   - logged: what the log has of the sender's replica.
    ///   - place: where a file may be written that nobody else uses.
    mutating func judge(
        _ sent: PeerMessage, by node: SimulatedNode, _ logged: RecoveredGroup?, place: String
    ) -> String? {
        guard let disk = node.disk, let cluster = node.cluster else { return nil }
        if !node.mayFail, !node.hasBeenFull, disk.failures == 0, let path = disk.unsyncedPath {
            return "node \(node.number) speaks before \(path) is synced"
        }
        let speaker = Speaker(group: sent.group, replica: sent.message.from)
        let voice = Voice(node: node.number, life: node.life, speaker: speaker)
        if heard.insert(voice).inserted, let fault = knowsItself(speaker, node, cluster.identity) {
            return "node \(node.number) speaks for \(speaker.replica) of group \(sent.group), and \(fault)"
        }
        guard let logged, let before = begins.updateValue(logged.firstIndex, forKey: voice),
            before < logged.firstIndex, !node.hasLostData
        else { return nil }
        looks += 1
        // It takes as long as a hundred other checks.
        guard looks % 4 == 0 else { return nil }
        return isKept(sent.group, through: logged.firstIndex.previous, at: node, place)
    }

    private mutating func knowsItself(
        _ speaker: Speaker, _ node: SimulatedNode, _ identity: NodeIdentity
    ) -> String? {
        let bytes = (try? readWholeFile(at: node.folder + "/node.json")) ?? []
        guard let account = try? JSONDecoder().decode(Account.self, from: Data(bytes)) else {
            return "its folder does not say whose it is"
        }
        guard account.incarnation == identity.incarnation, account.bootCounter == identity.bootCounter else {
            return "its folder does not say which start this is"
        }
        let generation = speaker.replica.generation
        guard let held = account.replicas?["\(speaker.group)"], held.generation == generation else {
            return "its folder does not have that replica"
        }
        let (known, start) = (starts[identity.incarnation] ?? 0, identity.bootCounter >> 32)
        if start < known, !node.hasLostData { return "start \(start) of its folder comes after start \(known)" }
        starts[identity.incarnation] = max(known, start)
        let other = incarnations.updateValue(identity.incarnation, forKey: speaker)
        return other == nil || other == identity.incarnation ? nil : "another folder spoke for that one"
    }

    /// Whether the database of a group has everything through an index, also where the power fails now.
    private func isKept(_ group: GroupID, through index: LogIndex, at node: SimulatedNode, _ place: String) -> String? {
        let path = ClusterReplica.database(of: group, in: node.folder)
        guard DatabaseNames.former(of: path) == nil else {
            return "group \(group): the log of node \(node.number) begins behind \(index), and the name of the database"
                + " that has that is not synced"
        }
        for suffix in ["", "-wal", "-shm", DatabaseImage.keptSuffix] { try? removeFile(at: place + suffix) }
        do {
            try DatabaseImage.writeLeast(of: path, to: place)
            let database = try DatabaseQueue(path: place)
            defer { try? database.close() }
            node.world.met(.judgedDatabase)
            let mark = try database.read { try AppliedRow.mark(of: $0) }
            if mark.position.index >= index { return nil }
            return "group \(group): the log of node \(node.number) begins behind \(index), and its database has"
                + " durably what is up to \(mark.position.index)"
        } catch {
            return "group \(group): the log of node \(node.number) begins behind \(index), and its database would be"
                + " damaged by a power failure: \(error)"
        }
    }
}

/// Where a node keeps what it has of a replica.
enum ClusterReplica {
    static func database(of group: GroupID, in folder: String) -> String {
        guard let shard = group.shard else { return folder + "/directory.sqlite" }
        let number = String(shard)
        return "\(folder)/shards/\(String(repeating: "0", count: 4 - number.count))\(number).sqlite"
    }
}

/// Holds what a node finds in its log at a start against what was durable at its end.
struct LogWatch {
    private var ends: [Int: (folder: String, groups: [GroupID: RecoveredGroup])] = [:]

    /// A process has ended, and left this in its log.
    /// - Parameter groups: nil where it had not read its log.
    mutating func ended(_ node: SimulatedNode, _ groups: [GroupID: RecoveredGroup]?) {
        if let groups = groups ?? ends[node.number]?.groups { ends[node.number] = (node.folder, groups) }
    }

    /// - Returns: what is wrong with what a process has found; nil if nothing is.
    mutating func opened(_ node: SimulatedNode, _ found: (GroupID) -> RecoveredGroup?) -> String? {
        guard let end = ends.removeValue(forKey: node.number), end.folder == node.folder, !node.hasLostData,
            !node.hasBeenFull, !node.mayFail
        else { return nil }
        for group in end.groups.keys.sorted() {
            // It may have been given up at the end.
            guard let before = end.groups[group], let after = found(group) else { continue }
            if let loss = Self.loss(of: before, after) {
                return "group \(group): node \(node.number) finds another log than it left: \(loss)"
            }
        }
        return nil
    }

    private static func loss(of before: RecoveredGroup, _ after: RecoveredGroup) -> String? {
        let (old, new) = (before.hardState, after.hardState)
        if new.term < old.term || new.term == old.term && old.vote != nil && old.vote != new.vote {
            return "\(new) after \(old)"
        }
        let last = before.lastLog
        if after.end < last.index || after.term(at: last.index).map({ $0 != last.term }) ?? false {
            // What was on its way may have taken the place of entries.
            guard after.lastLog.term > last.term || new.term > old.term else {
                return "it ends at \(after.lastLog), and ended at \(last)"
            }
        }
        for known in before.configurations where known.index >= after.firstIndex {
            guard let term = after.term(at: known.index), before.term(at: known.index) == term else { continue }
            if !after.configurations.contains(known) { return "\(known.configuration) at \(known.index) is gone" }
        }
        return nil
    }
}
