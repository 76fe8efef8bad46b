package import KeyValueStore
package import RecordStore
package import Wire

/// What one log entry asks of a shard.
package enum ShardCommand: Sendable {
    case record(RecordCommand)
    case keyValue(KeyValueCommand)
    /// After a restore: every zone and store begins a new life under this number, so that tokens and tags of a future
    /// that was lost are known as such. A number that is not above what a zone has changes nothing.
    case startIncarnation(UInt64)
}

extension ShardCommand {
    /// Whether it only removes something, or does a bounded part of the work that frees room.
    var isFreeing: Bool {
        switch self {
        case .record(.modifyRecords(let command)):
            command.operations.allSatisfy { [.delete, .forceDelete].contains($0.kind) }
        case .record(.modifyZone(let command)): command.kind == .delete
        case .record(.maintain), .record(.quota): true
        case .keyValue(let command): command.writes.allSatisfy { $0.value == nil }
        case .record(.installSchema), .startIncarnation: false
        }
    }
}

extension ShardCommand: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .record(let command): writer.field(1) { command.encode(to: &$0) }
        case .keyValue(let command): writer.field(2) { command.encode(to: &$0) }
        case .startIncarnation(let incarnation): writer.field(3, incarnation)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var command: ShardCommand?
        while let field = try reader.nextField() {
            switch field {
            case 1: command = .record(try reader.message())
            case 2: command = .keyValue(try reader.message())
            case 3: command = .startIncarnation(try reader.unsigned())
            default: try reader.skip()
            }
        }
        guard let command else { throw .missingField(1) }
        self = command
    }
}
