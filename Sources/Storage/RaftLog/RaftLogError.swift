import Glibc
package import RaftCore

/// Why the log did not do what it was asked.
package enum RaftLogError: Error, Hashable, Sendable {
    /// Another process, or another part of this one, has the log open. A retry helps once it is closed.
    case locked(path: String)
    /// Data that was durable is damaged, or its disk cannot read it any more. Nothing was changed or removed; the replicas
    /// need a good copy from their peers.
    case corrupt(segment: String, position: Int, detail: String)
    /// No room on the disk. Nothing of the submission was written; a retry helps once there is room.
    case diskFull
    /// A call failed for good; what it wrote may or may not be durable. Every later submission fails the same way: the
    /// node must stop.
    case failed(errno: Int32, operation: String)
    /// Too many bytes wait already. Nothing was written; a retry helps later.
    case overloaded
    /// The log is closed.
    case closed
    /// A submission before this one was refused, and the log was told to halt then; see `RaftLog.resume`.
    case halted
    /// The submission's entries do not follow the group's log, which ends at `last`: an earlier submission failed, or
    /// the caller is wrong. Nothing of the submission was written.
    case outOfOrder(group: GroupID, first: LogIndex, last: LogIndex)
    /// An entry that fits in no segment. Nothing of the submission was written; a retry does not help.
    case tooLarge(bytes: Int, bytesMax: Int)
}

extension DiskError {
    /// Whether there is no room, by the disk or by a quota.
    var isDiskFull: Bool { code == ENOSPC || code == EDQUOT }
}

extension RaftLogError {
    /// The log's view of a failed call.
    init(_ error: DiskError) {
        self = error.isDiskFull ? .diskFull : .failed(errno: error.code, operation: "\(error.operation) \(error.path)")
    }

    /// What it says that a part of the log cannot be read: a sector that is lost is damage, as one is that holds something else.
    init(reading error: DiskError, of segment: String, at position: Int) {
        self =
            error.code == EIO
            ? .corrupt(segment: segment, position: position, detail: "cannot be read: \(error)") : RaftLogError(error)
    }
}
