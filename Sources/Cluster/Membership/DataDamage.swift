import GRDB
import Storage

/// Whether an error means that data of this node are damaged, so that trying again does not help and a good copy is needed.
enum DataDamage {
    static func isDamage(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError:
            [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode.primaryResultCode)
        case is StorageMismatch: true
        case RaftLogError.corrupt: true
        default: false
        }
    }
}
