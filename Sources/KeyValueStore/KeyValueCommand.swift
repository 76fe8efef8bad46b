package import RecordModel
package import Wire

/// One batch of writes to one store: all of it happens or nothing.
package struct KeyValueCommand: Hashable, Sendable, WireMessage {
    /// The store that the batch changes.
    package var store: StoreKey
    /// When the leader made the command, in milliseconds since 1970. Apply has no other clock.
    package var time: Int64
    /// At most one for a key.
    package var writes: [Write]
    /// The client's `Idempotency-Key`, 1 to 64 bytes: a batch that comes again with it gets the first answer again.
    package var idempotencyKey: [UInt8]?
    /// Which device wrote, in the client's words; returned in the feed so that a device knows its own changes.
    package var device: String?

    package init(
        store: StoreKey, time: Int64, writes: [Write], idempotencyKey: [UInt8]? = nil, device: String? = nil
    ) {
        self.store = store
        self.time = time
        self.writes = writes
        self.idempotencyKey = idempotencyKey
        self.device = device
    }

    /// What becomes of one key.
    package struct Write: Hashable, Sendable, WireMessage {
        /// The key to write.
        package var key: String
        /// Nil deletes the key; a key that is not there stays so.
        package var value: PropertyValue?
        /// The version last seen: the batch is refused if the key has another one now. Nil overwrites any version.
        /// `KeyValueTables.absent` expects that the key has no value.
        package var expectedVersion: ChangeTag?

        package init(key: String, value: PropertyValue?, expectedVersion: ChangeTag? = nil) {
            self.key = key
            self.value = value
            self.expectedVersion = expectedVersion
        }

        package static var blank: Self { KeyValueCommand.Write(key: "", value: nil) }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &key)
            try wire.field(2, &value)
            try wire.field(3, &expectedVersion)
        }
    }

    package static var blank: Self { KeyValueCommand(store: .blank, time: 0, writes: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &store)
        try wire.field(2, &time)
        try wire.field(3, &writes)
        try wire.field(4, &idempotencyKey)
        try wire.field(5, &device)
    }
}

/// The limits of one store.
package struct KeyValueLimits: Hashable, Sendable {
    /// Keys that have a value.
    package var keysMax = Limits.keysMax
    /// UTF-8 bytes of a key; at least one.
    package var keyBytesMax = Limits.keyBytesMax
    /// `PropertyValue.sizeBytes` of one value.
    package var valueBytesMax = Limits.valueBytesMax
    /// `PropertyValue.sizeBytes` of all values together; keys do not count.
    package var storeBytesMax = Limits.storeBytesMax
    /// Values inside one array or dictionary, at any depth. Not CloudKit's: it bounds the JSON of one value.
    package var valueMembersMax = Limits.listCountMax
    /// Writes in one batch: enough to delete every key and to set as many others.
    package var writesMax = 2 * Limits.keysMax
    /// Bytes of the stored values that a conflict repeats. The conflicts that come after are left out, never the first.
    package var conflictBytesMax = 1_048_576
    /// Deletions that a store remembers; at one more the older half is forgotten and the feed's floor rises.
    package var tombstonesMax = 4096
    /// How long the answer to an idempotency key is kept.
    package var idempotencyMilliseconds: Int64 = 24 * 3_600_000
    /// How long a deletion is remembered: 90 days, as of records.
    package var tombstoneMilliseconds: Int64 = 90 * 86_400_000
    /// How many expired rows a command removes, of deletions and of answers each; more than it makes on average, so
    /// that they do not pile up.
    package var forgottenMax = 4

    package init() {}

    /// The ones in force. They are part of the state machine: replicas that apply one log must have the same.
    package static let standard = KeyValueLimits()
}

/// Names one key-value store: there is one for each user of a container's environment.
package struct StoreKey: Hashable, Sendable, WireMessage {
    /// The container's name.
    @Bytewise package var container: String
    /// Which of the container's two sets of data.
    package var environment: Environment
    /// The user record name.
    @Bytewise package var user: String

    package init(container: String, environment: Environment, user: String) {
        self.container = container
        self.environment = environment
        self.user = user
    }

    package static var blank: Self { StoreKey(container: "", environment: .development, user: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.field(2, &isProduction)
        try wire.field(3, &user)
    }

    private var isProduction: Bool {
        get { environment == .production }
        set { environment = newValue ? .production : .development }
    }
}
