package import RecordModel
package import Wire

/// What a change on one group does on another.
package enum Effect: Hashable, Sendable {
    /// Match a subscription here from now on; one of the same name is replaced.
    case watch(Watcher)
    /// Match it here no more.
    case unwatch(subscriber: DatabaseKey, scope: Scope, id: String)
    /// Tell a subscriber of a change.
    case notify(Match)
    /// Effects were dropped before this one, because too many waited.
    case lost
    /// Changes of a container were dropped before they were matched. From `FeatureLevel.exactNotifications` on, as what
    /// follows.
    case lostOf(container: String)
    /// Something was lost on its way from the receiver: it is to send copies of all its users' subscriptions again.
    case resend
    /// A life of a zone has ended: a subscription that is bound to it ends, too, unless it was saved for a later one.
    /// From `FeatureLevel.boundSubscriptions` on.
    case end(subscriber: DatabaseKey, ZoneKey, life: UInt64, id: String)
}

/// Effects of one group on another, in order.
package struct OutboxDelivery: Hashable, Sendable {
    /// The number of the group whose changes they come from.
    package var source: UInt64
    /// The incarnation of its streams: sequences of another one are others.
    package var incarnation: UInt64
    /// The sequence of the first effect; those that follow count up.
    package var first: UInt64
    /// At least one.
    package var effects: [Effect]

    package init(source: UInt64, incarnation: UInt64, first: UInt64, effects: [Effect]) {
        self.source = source
        self.incarnation = incarnation
        self.first = first
        self.effects = effects
    }

    /// The sequence of the last effect.
    package var last: UInt64 { first &+ UInt64(effects.count) &- 1 }

    /// Effects of one delivery.
    package static let effectsMax = 200
    /// Bytes of the effects of one delivery, give or take one effect.
    package static let bytesMax = 512 << 10
}

/// A destination has applied the effects up to a sequence.
package struct OutboxAcknowledgement: Hashable, Sendable {
    /// The number of the group that the effects are for.
    package var destination: UInt64
    /// The incarnation of the source's streams.
    package var incarnation: UInt64
    /// The sequence of the last effect that was applied.
    package var through: UInt64

    package init(destination: UInt64, incarnation: UInt64, through: UInt64) {
        self.destination = destination
        self.incarnation = incarnation
        self.through = through
    }
}

/// What became of a delivery.
package struct OutboxReceipt: Hashable, Sendable {
    /// Whether everything up to the delivery's last effect is applied; if not, the stream's incarnation is over.
    package var isTaken: Bool
    /// Whether something was lost on its way: tokens have ended.
    package var hasLost = false
}

/// The last effect for a destination when something was asked for.
package struct OutboxMark: Hashable, Sendable {
    /// The number of the group that the effects are for.
    package var destination: UInt64
    /// Counts up.
    package var sequence: UInt64
}

extension Effect: WireUnion {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .watch(let watcher): watcher.write(1, to: &writer)
        case .unwatch(let subscriber, let scope, let id): writer.parts(2, subscriber, scope, id)
        case .notify(let match): match.write(3, to: &writer)
        case .lost: writer.field(4, true)
        case .lostOf(let container): writer.field(5, container)
        case .resend: writer.field(6, true)
        case .end(let subscriber, let zone, let life, let id): writer.parts(7, subscriber, zone, life, id)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .watch(try reader.message())
        case 2: self = try reader.parts { .unwatch(subscriber: $0, scope: $1, id: $2) }
        case 3: self = .notify(try reader.message())
        case 4: self = try reader.flag(.lost)
        case 5: self = .lostOf(container: try reader.string())
        case 6: self = try reader.flag(.resend)
        case 7: self = try reader.parts { .end(subscriber: $0, $1, life: $2, id: $3) }
        default: return nil
        }
    }
}

extension OutboxDelivery: WireMessage {
    package static var blank: Self { OutboxDelivery(source: 0, incarnation: 0, first: 0, effects: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &source)
        try wire.required(2, &incarnation)
        try wire.required(3, &first)
        try wire.field(4, &effects)
    }
}

extension OutboxAcknowledgement: WireMessage {
    package static var blank: Self { OutboxAcknowledgement(destination: 0, incarnation: 0, through: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &destination)
        try wire.required(2, &incarnation)
        try wire.required(3, &through)
    }
}

extension OutboxReceipt: WireMessage {
    package static var blank: Self { OutboxReceipt(isTaken: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &isTaken)
        try wire.field(2, &hasLost, unless: false)
    }
}

extension OutboxMark: WireMessage {
    package static var blank: Self { OutboxMark(destination: 0, sequence: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &destination)
        try wire.required(2, &sequence)
    }
}
