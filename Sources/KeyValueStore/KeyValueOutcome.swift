package import RecordModel
package import Wire

/// What became of a batch. Everything but `applied` left the store as it was.
package enum KeyValueOutcome: Hashable, Sendable, WireUnion {
    /// The new version of each write's key, in the order of the writes; nil where a key was to be deleted that was
    /// not there.
    case applied(versions: [ChangeTag?], usage: KeyValueUsage)
    /// The batch breaks a rule; a retry does not help.
    case refused(KeyValueRefusal)
    /// Keys whose version is not the expected one, in the order of the writes, as they are now.
    case conflict([KeyValueConflict])

    /// Writes the fields.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .applied(let versions, let usage):
            writer.field(1) { nested in
                nested.field(1, signed: Int64(usage.keys))
                nested.field(2, signed: Int64(usage.bytes))
                for version in versions {
                    // An empty message stands for a write that changed nothing.
                    nested.field(3) { version?.encode(to: &$0) }
                }
            }
        case .refused(let refusal): refusal.write(2, to: &writer)
        case .conflict(let conflicts): writer.parts(3, conflicts)
        }
    }

    /// Reads the current field.
    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1:
            var nested = try reader.nested()
            self = try Self.applied(from: &nested)
        case 2: self = .refused(try reader.message())
        case 3: self = try reader.parts { .conflict($0) }
        default: return nil
        }
    }

    private static func applied(from reader: inout WireReader) throws(WireError) -> KeyValueOutcome {
        var usage = KeyValueUsage()
        var versions: [ChangeTag?] = []
        while let field = try reader.nextField() {
            switch field {
            case 1: usage.keys = Int(try reader.signed())
            case 2: usage.bytes = Int(try reader.signed())
            case 3:
                var nested = try reader.nested()
                versions.append(nested.isAtEnd ? nil : try ChangeTag(from: &nested))
            default: try reader.skip()
            }
        }
        return .applied(versions: versions, usage: usage)
    }
}

/// What a store holds.
package struct KeyValueUsage: Hashable, Sendable {
    /// The number of keys that have a value.
    package var keys = 0
    /// The sum of all values' `sizeBytes`.
    package var bytes = 0

    package init(keys: Int = 0, bytes: Int = 0) { (self.keys, self.bytes) = (keys, bytes) }

    /// Writes `keys` and `bytes` into an object.
    package func write(to writer: inout JSONWriter) {
        writer.member("keys", integer: Int64(keys))
        writer.member("bytes", integer: Int64(bytes))
    }
}

/// A key that another write changed first.
package struct KeyValueConflict: Hashable, Sendable, WireMessage {
    /// The key.
    package var key: String
    /// What it holds now; nil if it was deleted, or never set.
    package var value: PropertyValue?
    /// Its version now; nil if the store does not remember the key.
    package var version: ChangeTag?

    package static var blank: Self { KeyValueConflict(key: "", value: nil, version: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &key)
        try wire.field(2, &value)
        try wire.field(3, &version)
    }
}

/// The rule that a batch breaks.
package struct KeyValueRefusal: Hashable, Sendable, WireMessage, CustomStringConvertible {
    /// The raw value is the one on the wire and in the tables.
    package enum Rule: UInt8, Hashable, Sendable, CaseIterable, WireValue {
        /// More keys than a store may have.
        case keys = 1
        /// More bytes of values than a store may have.
        case storeBytes = 2
        /// A value too large.
        case valueBytes = 3
        /// A key empty or too long.
        case keyBytes = 4
        /// A value with too many members.
        case valueMembers = 5
        /// Too many writes in one batch.
        case writes = 6
        /// Two writes for one key.
        case duplicateKey = 7
        /// A container, user, device or idempotency key that is empty or too long.
        case name = 8
        /// The idempotency key was used for another batch.
        case idempotencyKeyReused = 9
        /// The idempotency key is older than answers are kept.
        case idempotencyKeyTooOld = 10
        /// A value nested too deep.
        case valueDepth = 11

        /// As clients see it in errors and in `usage`.
        package var name: String {
            switch self {
            case .keys: "keys"
            case .storeBytes: "storeBytes"
            case .valueBytes: "valueBytes"
            case .keyBytes: "keyBytes"
            case .valueMembers: "valueMembers"
            case .writes: "writes"
            case .duplicateKey: "writesOfKey"
            case .name: "nameBytes"
            case .idempotencyKeyReused: "idempotencyKeyReused"
            case .idempotencyKeyTooOld: "idempotencyKeyTooOld"
            case .valueDepth: "valueDepth"
            }
        }

        /// Whether it is an amount that a batch has too much of.
        package var isLimit: Bool { self != .idempotencyKeyReused && self != .idempotencyKeyTooOld }
    }

    /// The rule that the batch breaks.
    package var rule: Rule
    /// The key at fault, where it is one key's fault.
    package var key: String?
    /// What the batch would have led to, in the rule's unit.
    package var actual: Int64
    /// What is allowed.
    package var max: Int64

    package init(_ rule: Rule, key: String? = nil, actual: Int = 0, max: Int = 0) {
        self.rule = rule
        self.key = key
        self.actual = Int64(actual)
        self.max = Int64(max)
    }

    /// Whether the store is too full for the batch, which clients are told as a quota violation.
    package var isQuotaViolation: Bool {
        switch rule {
        case .keys, .storeBytes, .valueBytes: true
        default: false
        }
    }

    package static var blank: Self { KeyValueRefusal(.keys) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &rule)
        try wire.field(2, &key)
        try wire.field(3, &actual)
        try wire.field(4, &max)
    }

    /// What was wrong and what to do about it.
    package var description: String {
        let shown = key.map { "key '\($0.prefix(64))'" } ?? "the batch"
        return switch rule {
        case .keys: "the store would have \(actual) keys and may have \(max); delete some first"
        case .storeBytes: "the store would hold \(actual) bytes and may hold \(max); delete or shorten values first"
        case .valueBytes: "the value of \(shown) has \(actual) bytes and may have \(max); shorten it"
        case .keyBytes: "\(shown) has \(actual) bytes of UTF-8; a key has 1 to \(max)"
        case .valueMembers: "the value of \(shown) has \(actual) members and may have \(max); keep it as data instead"
        case .valueDepth: "the value of \(shown) is nested \(actual) deep and may be \(max); flatten it"
        case .writes: "the batch has \(actual) writes and may have \(max); send it in parts"
        case .duplicateKey: "the batch writes \(shown) twice; keep the last"
        case .name: "the \(key ?? "name") has \(actual) bytes; it must have 1 to \(max)"
        case .idempotencyKeyReused: "the idempotency key was used for another batch; make a new one for every batch"
        case .idempotencyKeyTooOld:
            "the idempotency key is older than answers are kept; read the store, then write with a new key"
        }
    }
}
