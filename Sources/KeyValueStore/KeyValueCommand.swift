package import RecordModel
package import Wire

/// One batch of writes to one store: all of it happens or nothing.
package struct KeyValueCommand: Hashable, Sendable {
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
    package struct Write: Hashable, Sendable {
        package var key: String
        /// Nil deletes the key; a key that is not there stays so.
        package var value: PropertyValue?
        /// The version last seen: the batch yields if the key has another by now. Nil overwrites whatever is there.
        /// `KeyValueTables.absent` expects that the key has no value.
        package var expectedVersion: ChangeTag?

        package init(key: String, value: PropertyValue?, expectedVersion: ChangeTag? = nil) {
            self.key = key
            self.value = value
            self.expectedVersion = expectedVersion
        }
    }
}

extension KeyValueCommand: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { store.encode(to: &$0) }
        writer.field(2, signed: time)
        for write in writes { writer.field(3) { write.encode(to: &$0) } }
        if let idempotencyKey { writer.field(4, idempotencyKey) }
        if let device { writer.field(5, device) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var store: StoreKey?
        self.init(store: StoreKey(container: "", environment: .development, user: ""), time: 0, writes: [])
        while let field = try reader.nextField() {
            switch field {
            case 1: store = try reader.message()
            case 2: time = try reader.signed()
            case 3: writes.append(try reader.message())
            case 4: idempotencyKey = try reader.array()
            case 5: device = try reader.string()
            default: try reader.skip()
            }
        }
        guard let store else { throw .missingField(1) }
        self.store = store
    }
}

extension KeyValueCommand.Write: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, key)
        if let value { writer.field(2) { value.encode(to: &$0) } }
        if let expectedVersion { writer.field(3) { expectedVersion.encodeFields(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(key: "", value: nil)
        while let field = try reader.nextField() {
            switch field {
            case 1: key = try reader.string()
            case 2: value = try reader.message()
            case 3:
                var nested = try reader.nested()
                expectedVersion = try ChangeTag(fieldsFrom: &nested)
            default: try reader.skip()
            }
        }
    }
}

// Not a conformance: whether `ChangeTag` has a binary form for everyone is for RecordModel to say.
extension ChangeTag {
    func encodeFields(to writer: inout WireWriter) {
        writer.field(1, incarnation)
        writer.field(2, sequence)
    }

    init(fieldsFrom reader: inout WireReader) throws(WireError) {
        self.init(incarnation: 0, sequence: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: incarnation = try reader.unsigned()
            case 2: sequence = try reader.unsigned()
            default: try reader.skip()
            }
        }
    }
}
