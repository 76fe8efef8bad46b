package import Wire

/// What the payload of a log entry asks of a group.
package enum GroupCommand: Sendable {
    /// A command of the group's state machine.
    case machine([UInt8])
    /// Every replica hashes its state at this index and keeps the result.
    case hashState
}

extension GroupCommand: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .machine(let command): writer.field(1, command)
        case .hashState: writer.field(2, true)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var command: GroupCommand?
        while let field = try reader.nextField() {
            switch field {
            case 1: command = .machine(try reader.array())
            case 2: command = try reader.bool() ? .hashState : nil
            default: try reader.skip()
            }
        }
        guard let command else { throw .missingField(1) }
        self = command
    }
}
