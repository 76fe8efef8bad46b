package import RecordModel

/// A device's copy of one user's preferences, as it is kept on disk: what the server has, and what it is yet to be told.
///
/// Invariants: a row has a server state, a write on its way or an edit; writes are on their way only while there is a
/// batch; before the initial sync there is neither token nor batch.
package struct PreferenceCopy: Hashable, Sendable {
    /// Names this copy to the server, which repeats it with each change that it made.
    package var device: String
    package var rows: [PreferenceKey: Row] = [:]
    /// The position in the server's feed up to which the copy is complete; nil while it has to be read from the start.
    package var token: String?
    /// Whether the server's values were ever read to their end.
    package var isInitialSyncDone = false
    /// The idempotency key of the batch that was sent, or is about to be, and whose outcome is not known.
    package var batchID: String?
    /// How many edits there were; tells the later of two.
    package var edits: UInt64 = 0

    /// Of what nobody's copy holds: the user whose it is becoming, so that a process that ends in between leaves it to no other.
    package var claimant: String?

    package init(device: String) { self.device = device }

    /// What is known of one key.
    package struct Row: Hashable, Sendable {
        package var server: Server?
        package var sent: Sent?
        package var edit: Edit?

        package init(server: Server? = nil, sent: Sent? = nil, edit: Edit? = nil) {
            self.server = server
            self.sent = sent
            self.edit = edit
        }

        /// What the app sees; nil for nothing.
        package var value: PropertyValue? {
            if let edit { return edit.value }
            if let sent, !sent.isSuperseded { return sent.value }
            return server?.value
        }

        var isEmpty: Bool { server == nil && sent == nil && edit == nil }

        /// What `value` counts for.
        var sizeBytes: Int? {
            if let edit { return edit.value == nil ? nil : edit.sizeBytes }
            if let sent, !sent.isSuperseded { return sent.value == nil ? nil : sent.sizeBytes }
            return server?.value == nil ? nil : server?.sizeBytes
        }
    }

    /// A key as the server last said that it is.
    package struct Server: Hashable, Sendable {
        /// Nil for a deletion that the feed has yet to repeat.
        package var value: PropertyValue?
        package var version: ChangeTag
        let sizeBytes: Int

        package init(value: PropertyValue?, version: ChangeTag) {
            self.value = value
            self.version = version
            sizeBytes = value?.sizeBytes ?? 0
        }
    }

    /// An edit that the server was not told of.
    package struct Edit: Hashable, Sendable {
        /// Nil to delete.
        package var value: PropertyValue?
        /// Whether it is to win over values that this device has not seen.
        package var isExplicit: Bool
        /// Its number among the copy's edits.
        package var order: UInt64
        let sizeBytes: Int

        package init(value: PropertyValue?, isExplicit: Bool, order: UInt64) {
            self.value = value
            self.isExplicit = isExplicit
            self.order = order
            sizeBytes = value?.sizeBytes ?? 0
        }
    }

    /// A write of the batch under way. The batch is repeated as it is until its outcome is known.
    package struct Sent: Hashable, Sendable {
        package var edit: Edit
        /// The version that the server must have.
        package var expected: ChangeTag
        /// Whether a newer value arrived, so that the outcome no longer matters to this key.
        package var isSuperseded = false

        package var value: PropertyValue? { edit.value }
        var sizeBytes: Int { edit.sizeBytes }

        package init(edit: Edit, expected: ChangeTag, isSuperseded: Bool = false) {
            self.edit = edit
            self.expected = expected
            self.isSuperseded = isSuperseded
        }
    }

    /// As an expected version: the key must have no value.
    package static let absent = ChangeTag(incarnation: 0, sequence: 0)

    /// What the app sees of a key.
    package func value(_ key: PreferenceKey) -> PropertyValue? { rows[key]?.value }

    /// All that the app sees, in byte order of the keys.
    package var visible: [(key: PreferenceKey, value: PropertyValue)] {
        rows.compactMap { key, row in row.value.map { (key, $0) } }.sorted { $0.key < $1.key }
    }

    /// Keys and bytes of what the app sees.
    package var usage: PreferenceUsage {
        rows.values.reduce(into: PreferenceUsage()) { usage, row in
            guard let size = row.sizeBytes else { return }
            usage.keys += 1
            usage.bytes += size
        }
    }

    /// The writes of the batch under way, in byte order of the keys.
    package var batch: PreferenceBatch? {
        guard let batchID else { return nil }
        let writes = rows.compactMap { key, row in
            row.sent.map { PreferenceBatch.Write(key: key, value: $0.value, expected: $0.expected) }
        }
        return PreferenceBatch(id: batchID, writes: writes.sorted { $0.key < $1.key })
    }

    /// Replaces a row; an empty one goes.
    mutating func update(_ key: PreferenceKey, _ change: (inout Row) -> Void) {
        var row = rows[key] ?? Row()
        change(&row)
        rows[key] = row.isEmpty ? nil : row
    }

    mutating func nextOrder() -> UInt64 {
        edits += 1
        return edits
    }
}

/// What a store holds.
package struct PreferenceUsage: Hashable, Sendable {
    package var keys = 0
    /// The sum of the values' `sizeBytes`.
    package var bytes = 0

    package init(keys: Int = 0, bytes: Int = 0) {
        self.keys = keys
        self.bytes = bytes
    }
}

/// Writes that the server does together or not at all.
package struct PreferenceBatch: Hashable, Sendable {
    /// The idempotency key.
    package var id: String
    /// In byte order of the keys, each once.
    package var writes: [Write]

    package struct Write: Hashable, Sendable {
        package var key: PreferenceKey
        /// Nil to delete.
        package var value: PropertyValue?
        package var expected: ChangeTag

        package init(key: PreferenceKey, value: PropertyValue?, expected: ChangeTag) {
            self.key = key
            self.value = value
            self.expected = expected
        }
    }

    package init(id: String, writes: [Write]) {
        self.id = id
        self.writes = writes
    }
}
