package import RecordModel
package import Wire

/// What the payload of a log entry asks of a group.
package enum GroupCommand: Sendable, WireUnion {
    /// A command of the group's state machine.
    case machine([UInt8])
    /// The same, of a command that frees more than it takes: it is taken on a full disk, too.
    case freeing([UInt8])
    /// Every replica hashes its state at this index and keeps the result.
    case hashState
    /// The same of a bounded part of the state, which begins after the cursor.
    case scrub(after: [UInt8])
    /// From here on the group's commands are applied at this feature level; a lower one than is in force changes
    /// nothing.
    case raise(FeatureLevel)

    /// What has a shard's group do a command.
    package init(_ command: ShardCommand) {
        let bytes = command.encoded()
        self = command.isFreeing ? .freeing(bytes) : .machine(bytes)
    }

    /// Whether an encoded command is taken on a full disk.
    static func isFreeing(_ encoded: [UInt8]) -> Bool {
        if case .freeing? = try? GroupCommand(decoding: encoded) { true } else { false }
    }

    package func encode(to writer: inout WireWriter) {
        switch self {
        case .machine(let command): writer.field(1, command)
        case .freeing(let command): writer.field(3, command)
        case .hashState: writer.field(2, true)
        case .scrub(let cursor): writer.field(4, cursor)
        case .raise(let level): writer.field(5, level.rawValue)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .machine(try reader.array())
        case 2: self = try reader.flag(.hashState)
        case 3: self = .freeing(try reader.array())
        case 4: self = .scrub(after: try reader.array())
        case 5: self = .raise(FeatureLevel(try reader.unsigned()))
        default: return nil
        }
    }
}
