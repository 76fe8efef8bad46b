package import KeyValueStore
import RecordModel
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
    /// Moves a reader of a user's notifications, or removes what a subscriber has. The outcome is a
    /// `LogReaderOutcome`.
    case reader(LogReaderCommand)
}

extension ShardCommand {
    /// Whose request it carries out; nil for a shard's own work and an administrator's.
    var container: String? {
        switch self {
        case .record(.modifyRecords(let command)): command.zone.database.container
        case .record(.modifyZone(let command)): command.zone.database.container
        case .keyValue(let command): command.store.container
        case .subscriptions(let command): command.subscriber.container
        default: nil
        }
    }

    /// Whether it only removes something, or does a bounded part of the work that frees room.
    var isFreeing: Bool {
        switch self {
        case .record(.modifyRecords(let command)):
            command.operations.allSatisfy { [.delete, .forceDelete].contains($0.kind) }
        case .record(.modifyZone(let command)): command.kind == .delete
        case .record(.maintain), .record(.quota): true
        case .keyValue(let command): command.writes.allSatisfy { $0.value == nil }
        case .removeContainer, .acknowledge, .reader(.forget): true
        case .record(.installSchema), .startIncarnation, .subscriptions, .deliver, .reader(.move): false
        }
    }
}

extension ShardCommand: WireUnion {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .record(let command): command.write(1, to: &writer)
        case .keyValue(let command): command.write(2, to: &writer)
        case .startIncarnation(let incarnation): writer.field(3, incarnation)
        case .removeContainer(let name): writer.field(4, name)
        case .subscriptions(let command): command.write(5, to: &writer)
        case .deliver(let delivery): delivery.write(6, to: &writer)
        case .acknowledge(let acknowledgement): acknowledgement.write(7, to: &writer)
        case .reader(let command): command.write(8, to: &writer)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .record(try reader.message())
        case 2: self = .keyValue(try reader.message())
        case 3: self = .startIncarnation(try reader.unsigned())
        case 4: self = .removeContainer(try reader.string())
        case 5: self = .subscriptions(try reader.message())
        case 6: self = .deliver(try reader.message())
        case 7: self = .acknowledge(try reader.message())
        case 8: self = .reader(try reader.message())
        default: return nil
        }
    }
}

/// What became of `ShardCommand.removeContainer`.
struct ContainerRemoval: Hashable, Sendable, WireMessage {
    /// Whether nothing of the container is left on the shard.
    var isDone: Bool

    init(isDone: Bool) { self.isDone = isDone }

    static var blank: Self { ContainerRemoval(isDone: false) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &isDone)
    }
}
