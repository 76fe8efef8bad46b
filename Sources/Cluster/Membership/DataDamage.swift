import GRDB
import RecordModel
import Storage

/// What an error says of the data of this node.
enum DataDamage {
    /// A part of the file that its disk gives back no more, or otherwise than it was written. What cannot be written is
    /// none of that: room, rights or a cable may be missing.
    private static let unreadable: [ResultCode] = [
        .SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ, .SQLITE_IOERR_CORRUPTFS, .SQLITE_IOERR_DATA,
    ]

    /// Whether they are damaged, so that trying again does not help and a good copy is needed.
    static func isDamage(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError:
            [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode.primaryResultCode)
                || unreadable.contains(error.extendedResultCode)
        case is StorageMismatch: true
        case RaftLogError.corrupt: true
        default: false
        }
    }

    /// Whether what is stored does not take an entry that is committed. If that is the entry's own fault, the other
    /// replicas do not take it either; else the data here are damaged. What a machine may do better later is none of
    /// that.
    static func keepsFromApplying(_ error: any Error) -> Bool {
        if let error = error as? DatabaseError,
            [.SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_ERROR].contains(error.resultCode.primaryResultCode)
        {
            return true
        }
        return error is InvariantViolation || isDamage(error)
    }
}
