import Foundation
import GRDB
import NIOCore
package import RaftCore
import RecordModel
import Storage
package import Wire

/// What a node says of its replica of a group to another one, whose own is damaged.
package struct ReplicaCondition: Hashable, Sendable, WireMessage {
    /// The replica of the answering node; the asking node ignores one that its map does not name.
    package var replica: ReplicaID
    /// Everything up to here is in the replica's database.
    package var applied: LogIndex
    /// Whether the last entry that it was given could be applied.
    package var applies: Bool
    /// Whether something of it was found to be damaged.
    package var isDamaged: Bool
    /// Whether it votes, so that it has, or will have, everything that was acknowledged.
    package var isVoter: Bool

    /// Whether others may rely on it.
    package var isSound: Bool { applies && !isDamaged && isVoter }

    package init(
        _ replica: ReplicaID, applied: LogIndex, applies: Bool = true, isDamaged: Bool = false, isVoter: Bool = true
    ) {
        self.replica = replica
        self.applied = applied
        self.applies = applies
        self.isDamaged = isDamaged
        self.isVoter = isVoter
    }

    package static var blank: Self { ReplicaCondition(ReplicaID(0), applied: .zero, applies: false, isVoter: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &replica)
        try wire.field(2, &applied)
        try wire.field(3, &applies)
        try wire.field(4, &isDamaged)
        try wire.field(5, &isVoter)
    }
}

/// Damage to a replica on this node.
///
/// It votes and acknowledges until a committed configuration is without it: the directory gives its node a later
/// replica, and the group's leader exchanges them. Only then it is given up. So nothing that was acknowledged depends
/// on what is lost, however many replicas are damaged at the same time. And it is exchanged only where another one is
/// known to be sound: were all, for a fault that they share, nothing would be left.
package struct ReplicaDamage: Sendable {
    /// The error that showed the damage, for the log and the status of the group.
    package var error: any Error
    /// What the replica cannot do.
    package var kind: Kind
    /// Of the replica. A later one is not damaged by this.
    package var generation: UInt64
    /// Whether it was said that no better copy is known.
    package var isTold = false

    /// Ascending by what is left of it.
    package enum Kind: Int, Sendable {
        /// Read its log back for a follower. Its database is sound.
        case loading
        /// Apply the entry after the last that it applied.
        case applying
        /// Be read, or agree with the others.
        case reading
        /// Be opened; it takes no part.
        case opening
    }

    package init(_ error: any Error, _ kind: Kind, generation: UInt64) {
        self.error = error
        self.kind = kind
        self.generation = generation
    }

    /// What becomes of the replica.
    package enum Verdict: Hashable, Sendable {
        case exchange
        /// It went on by itself.
        case recovered
        /// No other replica is known to be better.
        case keep
    }

    /// Pure.
    /// - Parameters:
    ///   - own: the replica here; nil where it is not open.
    ///   - others: what the other nodes say of theirs, as far as they answered.
    package func verdict(own: ReplicaCondition?, others: [ReplicaCondition]) -> Verdict {
        let sound = others.filter(\.isSound)
        guard kind == .applying, let own else { return sound.isEmpty ? .keep : .exchange }
        if own.applies { return .recovered }
        // An entry that no replica applies is at fault itself.
        return sound.contains { $0.applied > own.applied } ? .exchange : .keep
    }
}

/// What an error says of the data of this node.
enum DataDamage {
    /// Unreadable or changed parts of the file. Failed writes are not damage: space, permissions or a cable may be
    /// missing.
    private static let unreadable: [ResultCode] = [
        .SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ, .SQLITE_IOERR_CORRUPTFS, .SQLITE_IOERR_DATA,
    ]

    /// Whether they are damaged, so that trying again does not help and a good copy is needed.
    static func isDamage(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError:
            [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode.primaryResultCode)
                || unreadable.contains(error.extendedResultCode)
        case is StorageMismatch, is RowDecodingError: true
        case RaftLogError.corrupt: true
        default: false
        }
    }

    /// Whether the stored data do not accept a committed entry. If the entry is at fault, the other replicas do not
    /// accept it either; else the data here are damaged. Errors that a later version of the machine may handle are not
    /// damage.
    static func keepsFromApplying(_ error: any Error) -> Bool {
        if let error = error as? DatabaseError,
            [.SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_ERROR].contains(error.resultCode.primaryResultCode)
        {
            return true
        }
        return error is InvariantViolation || isDamage(error)
    }
}

/// Sets aside the contents of a data folder that must not take part any longer: moves them into a folder `lost-N`
/// within, where they can be inspected, so that the node begins with an empty one.
///
/// The folder's account says so first and goes last: an interrupted move is continued at the next start. What the node
/// remembers of its peers stays.
enum Quarantine {
    /// What is moved, in this order.
    private static let names = [
        "log", "shards", "snapshots", "directory.sqlite", "directory.sqlite-wal", "directory.sqlite-shm",
        "restored.json",
        "node.json",
    ]

    /// Whether the folder must be set aside before its log is opened, and why.
    /// - Throws: `NodeStartError` if the folder's account cannot be read.
    static func reason(of folder: String) throws -> String? {
        let log = folder + "/log"
        let hasLog = try exists(log + "/identity") && listFolder(at: log).contains { $0.hasSuffix(".seg") }
        guard let identity = try NodeFolder.read(folder) else {
            let remains = try remains(in: folder)
            return remains.isEmpty
                ? nil : "\(folder)/node.json is missing, but \(remains.joined(separator: ", ")) are there"
        }
        if let discard = identity.discard { return discard.reason }
        guard identity.hasTakenPart, !hasLog else { return nil }
        return "\(folder)/log is missing, and with it what this node voted and acknowledged"
    }

    /// Moves everything aside.
    /// - Returns: where it is.
    /// - Throws: `NodeStartError` if another process uses the folder, or `DiskError`.
    static func run(_ folder: String, because reason: String, on disk: any LogDisk) throws -> String {
        var lock: FolderLock?
        if exists(folder + "/log") {
            lock = try FolderLock(path: folder + "/log/lock")
            guard lock != nil else {
                throw NodeStartError("another process is using \(folder): stop it first")
            }
        }
        let target = try prepare(folder, because: reason, on: disk)
        let path = "\(folder)/\(target)"
        try makeFolder(at: path)
        for name in names where exists("\(folder)/\(name)") {
            if name == "node.json" {
                try fsyncFolder(at: path)
                try fsyncFolder(at: folder)
            }
            try renameFile(at: "\(folder)/\(name)", to: "\(path)/\(name)")
        }
        try fsyncFolder(at: path)
        try fsyncFolder(at: folder)
        withExtendedLifetime(lock) {}
        return path
    }

    /// The name of the next folder to move things to.
    static func freeName(in folder: String) -> String {
        var number = 1
        while exists("\(folder)/lost-\(number)") { number += 1 }
        return "lost-\(number)"
    }

    /// The folders of data that were set aside, or given up as damaged.
    static func leftovers(in folder: String) throws -> [String] {
        try listFolder(at: folder).filter { $0.hasPrefix("lost-") || $0 == "damaged" }.sorted()
    }

    /// Writes down that the data are given up, and where to.
    /// - Returns: the name of the folder that they go to.
    private static func prepare(_ folder: String, because reason: String, on disk: any LogDisk) throws -> String {
        let identity = try NodeFolder.read(folder)
        if let discard = identity?.discard { return discard.folder }
        let target = freeName(in: folder)
        if var identity {
            identity.discard = NodeIdentity.Discard(reason: reason, folder: target)
            try NodeFolder.write(identity, to: folder, on: disk)
        }
        return target
    }

    private static func remains(in folder: String) throws -> [String] {
        var remains = ["directory.sqlite"].filter { exists("\(folder)/\($0)") }
        if exists(folder + "/shards") {
            remains += try listFolder(at: folder + "/shards").filter { $0.hasSuffix(".sqlite") }.map { "shards/\($0)" }
        }
        return remains
    }

    private static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
}

/// What is known to be wrong with this node's replicas. Their leads go elsewhere, and who mends them is told.
final class ReplicaHealth: @unchecked Sendable {
    // Touched on the lane's event loop only, which makes it safe to share.
    private let context: LaneContext
    private let transfers: LeadTransfers
    /// Called when a replica's data are damaged.
    var onDamage: @Sendable (GroupID, ReplicaDamage) -> Void = { _, _ in }

    init(_ context: LaneContext, _ transfers: LeadTransfers) { (self.context, self.transfers) = (context, transfers) }

    /// A replica's data are damaged: told once for each, and again where it is worse than it was.
    func damaged(_ group: GroupID, _ error: any Error, _ kind: ReplicaDamage.Kind) {
        context.eventLoop.preconditionInEventLoop()
        guard let replica = context.replicas[group],
            replica.damage.map({ $0.kind.rawValue < kind.rawValue }) ?? true
        else { return }
        let damage = ReplicaDamage(error, kind, generation: replica.raft.id.generation)
        replica.damage = damage
        transfers.hurry()
        onDamage(group, damage)
    }

    /// The data of this node's replica differ from the others', unless it is another one by now.
    func distrust(_ group: GroupID, _ replica: ReplicaID, at index: LogIndex) {
        guard context.replicas[group]?.raft.id == replica else { return }
        let error = StorageMismatch("at \(index) the data differ from those of the other nodes, which agree")
        damaged(group, error, .reading)
    }

    /// A replica that could not apply an entry could after all.
    func recovered(_ group: GroupID) {
        context.eventLoop.preconditionInEventLoop()
        let replica = context.replicas[group]
        if replica?.damage?.kind == .applying { replica?.damage = nil }
    }

    /// This build cannot apply the next entry of a replica: it keeps its log and votes, answers nothing that it has not
    /// applied, and waits for a build that can.
    func stopped(_ replica: Replica, by error: BuildTooOld) {
        replica.tooOld = error
        replica.applyFailure = error.description
        // Trying again changes nothing.
        replica.nextApply = MonotonicTime(nanoseconds: .max)
        replica.failReads(replica.refusal ?? .unavailable(error.description))
        transfers.hurry()
    }

    /// The condition of this node's replica; nil without one, or while the node is not accepted.
    func condition(of group: GroupID) -> ReplicaCondition? {
        context.eventLoop.preconditionInEventLoop()
        guard !context.peers.trust.isHeld, let replica = context.replicas[group] else { return nil }
        return ReplicaCondition(
            replica.raft.id, applied: replica.applied, applies: replica.applyFailure == nil,
            isDamaged: replica.damage != nil, isVoter: replica.raft.configuration.voters.contains(replica.raft.id))
    }
}
