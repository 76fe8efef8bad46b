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
}

/// Effects of one group on another, in order.
package struct OutboxDelivery: Hashable, Sendable {
    /// The number of the group whose changes they come from.
    package var source: UInt64
    /// The incarnation of its streams: sequences of another one are others.
    package var incarnation: UInt64
    /// The sequence of the first effect; those that follow count up.
    package var first: UInt64
    /// Encoded, at least one.
    package var effects: [[UInt8]]

    /// Creates a value from its parts.
    package init(source: UInt64, incarnation: UInt64, first: UInt64, effects: [[UInt8]]) {
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

    /// Creates a value from its parts.
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
    /// Whether something was lost on its way: everybody's tokens have ended.
    package var hasLost = false
    /// Creates a value from its parts.
    package init(isTaken: Bool) { self.isTaken = isTaken }
}

/// The last effect for a destination when something was asked for.
package struct OutboxMark: Hashable, Sendable {
    /// The number of the group that the effects are for.
    package var destination: UInt64
    /// Counts up.
    package var sequence: UInt64

    /// Creates a value from its parts.
    package init(destination: UInt64, sequence: UInt64) {
        self.destination = destination
        self.sequence = sequence
    }
}

extension Effect: WireCodable {
    /// 1 watch, 2 unwatch (1 subscriber, 2 scope, 3 id), 3 notify, 4 lost.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .watch(let watcher): writer.field(1) { watcher.encode(to: &$0) }
        case .unwatch(let subscriber, let scope, let id):
            writer.field(2) { writer in
                writer.field(1) { subscriber.encode(to: &$0) }
                writer.field(2, scope.rawValue)
                writer.field(3, id)
            }
        case .notify(let match): writer.field(3) { match.encode(to: &$0) }
        case .lost: writer.field(4, true)
        }
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        var effect: Effect?
        while let field = try reader.nextField() {
            switch field {
            case 1: effect = .watch(try reader.message())
            case 2: effect = try Self.unwatch(try reader.nested())
            case 3: effect = .notify(try reader.message())
            case 4: effect = try reader.bool() ? .lost : nil
            default: try reader.skip()
            }
        }
        guard let effect else { throw .missingField(1) }
        self = effect
    }

    private static func unwatch(_ nested: WireReader) throws(WireError) -> Effect {
        var reader = nested
        var (subscriber, scope, id): (DatabaseKey?, Scope?, String) = (nil, nil, "")
        while let field = try reader.nextField() {
            switch field {
            case 1: subscriber = try reader.message()
            case 2: scope = try reader.choice()
            case 3: id = try reader.string()
            default: try reader.skip()
            }
        }
        guard let subscriber, let scope else { throw .missingField(1) }
        return .unwatch(subscriber: subscriber, scope: scope, id: id)
    }
}

extension OutboxDelivery: WireCodable {
    /// Writes the binary form.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, source)
        writer.field(2, incarnation)
        writer.field(3, first)
        for effect in effects { writer.field(4, effect) }
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(source: 0, incarnation: 0, first: 0, effects: [])
        while let field = try reader.nextField() {
            switch field {
            case 1: source = try reader.unsigned()
            case 2: incarnation = try reader.unsigned()
            case 3: first = try reader.unsigned()
            case 4: effects.append(try Self.known(try reader.nested()))
            default: try reader.skip()
            }
        }
    }

    /// An effect that only a newer build knows stops the replica as a command does.
    private static func known(_ nested: WireReader) throws(WireError) -> [UInt8] {
        var reader = nested
        return try Effect(from: &reader).encoded()
    }
}

extension OutboxAcknowledgement: WireCodable {
    /// Writes the binary form.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, destination)
        writer.field(2, incarnation)
        writer.field(3, through)
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(destination: 0, incarnation: 0, through: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: destination = try reader.unsigned()
            case 2: incarnation = try reader.unsigned()
            case 3: through = try reader.unsigned()
            default: try reader.skip()
            }
        }
    }
}

extension OutboxReceipt: WireCodable {
    /// Writes the binary form.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, isTaken)
        if hasLost { writer.field(2, true) }
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(isTaken: false)
        while let field = try reader.nextField() {
            switch field {
            case 1: isTaken = try reader.bool()
            case 2: hasLost = try reader.bool()
            default: try reader.skip()
            }
        }
    }
}

extension OutboxMark: WireCodable {
    /// Writes the binary form.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, destination)
        writer.field(2, sequence)
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(destination: 0, sequence: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: destination = try reader.unsigned()
            case 2: sequence = try reader.unsigned()
            default: try reader.skip()
            }
        }
    }
}
