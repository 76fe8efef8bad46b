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
    /// Removes a part of what is left of a container that is purged (`ContainerEnd.purge`). The outcome says whether
    /// nothing is left: `ContainerRemoval`.
    case removeContainer(String)
    /// Saves and deletes a user's subscriptions. The outcome is a `SubscriptionsOutcome`.
    case subscriptions(ModifySubscriptions)
    /// Applies effects of another group's changes. The outcome is an `OutboxReceipt`.
    case deliver(OutboxDelivery)
    /// Removes effects that were delivered.
    case acknowledge(OutboxAcknowledgement)
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
        case .removeContainer, .acknowledge: true
        case .record(.installSchema), .startIncarnation, .subscriptions, .deliver: false
        }
    }
}

extension ShardCommand: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .record(let command): writer.field(1) { command.encode(to: &$0) }
        case .keyValue(let command): writer.field(2) { command.encode(to: &$0) }
        case .startIncarnation(let incarnation): writer.field(3, incarnation)
        case .removeContainer(let name): writer.field(4, name)
        case .subscriptions(let command): writer.field(5) { command.encode(to: &$0) }
        case .deliver(let delivery): writer.field(6) { delivery.encode(to: &$0) }
        case .acknowledge(let acknowledgement): writer.field(7) { acknowledgement.encode(to: &$0) }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var command: ShardCommand?
        while let field = try reader.nextField() {
            switch field {
            case 1: command = .record(try reader.message())
            case 2: command = .keyValue(try reader.message())
            case 3: command = .startIncarnation(try reader.unsigned())
            case 4: command = .removeContainer(try reader.string())
            case 5: command = .subscriptions(try reader.message())
            case 6: command = .deliver(try reader.message())
            case 7: command = .acknowledge(try reader.message())
            default: try reader.skip()
            }
        }
        guard let command else { throw .missingField(1) }
        self = command
    }
}

/// What became of `ShardCommand.removeContainer`.
struct ContainerRemoval: Hashable, Sendable, WireCodable {
    /// Whether nothing of the container is left on the shard.
    var isDone: Bool

    init(isDone: Bool) { self.isDone = isDone }

    /// 1 whether it is done.
    func encode(to writer: inout WireWriter) { writer.field(1, isDone) }

    init(from reader: inout WireReader) throws(WireError) {
        isDone = false
        while let field = try reader.nextField() {
            if field == 1 { isDone = try reader.bool() } else { try reader.skip() }
        }
    }
}
