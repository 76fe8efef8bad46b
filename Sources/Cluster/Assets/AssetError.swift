import Storage

/// Why an asset's bytes cannot be had or kept.
package enum AssetError: Error, Hashable, Sendable, CustomStringConvertible {
    /// More bytes than are taken. Nothing is kept.
    case tooLarge(limit: UInt64)
    /// The disk of this node has no room for files. Nothing is kept; another node may have room.
    case diskFull
    /// No node that could be asked has the file, or has it whole.
    case missing
    /// Too much is being done already, or too few nodes can be reached. It may be tried again.
    case unavailable(String)

    /// What was wrong and what to do about it.
    package var description: String {
        switch self {
        case .tooLarge(let limit): "the file has more than \(limit) bytes"
        case .diskFull: "the disk of this node has no room for files: make room on it, or use another node"
        case .missing: "no node that can be reached has the file's bytes"
        case .unavailable(let reason): reason
        }
    }

    /// What an error of a file means to who asked.
    init(_ error: any Error) {
        switch error {
        case let error as AssetError: self = error
        case let error as DiskError where error.isDiskFull: self = .diskFull
        case is QueueFull: self = .unavailable("this node has as many files in work as it may; try again")
        default: self = .unavailable("\(error)")
        }
    }
}
