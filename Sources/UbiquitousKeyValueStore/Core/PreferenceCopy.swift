package import RecordModel

/// A device's copy of one user's preferences, as it is kept on disk: what the server has, and what it is yet to be
/// told.
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

    /// Of what nobody's copy holds: the user whose it is becoming, so that a process that ends in between leaves it to
    /// no other.
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

/// The form on disk: an object with `format` 1 and values as the server has them.
extension PreferenceCopy {
    private static let format: Int64 = 1

    /// The copy as JSON; rows in byte order of their keys.
    package func serialized() -> [UInt8] {
        var writer = JSONWriter(capacity: 4096)
        writer.beginObject()
        writer.member("format", integer: Self.format)
        writer.member("device", device)
        if let token { writer.member("token", token) }
        writer.member("isInitialSyncDone", isInitialSyncDone)
        if let batchID { writer.member("batch", batchID) }
        if let claimant { writer.member("claimant", claimant) }
        writer.member("edits", integer: Int64(bitPattern: edits))
        writer.key("rows")
        writer.beginArray()
        for (key, row) in rows.sorted(by: { $0.key < $1.key }) {
            writer.beginObject()
            writer.member("key", key.text)
            if let server = row.server {
                writer.key("server")
                writer.beginObject()
                Self.write(server.value, to: &writer)
                writer.member("version", server.version.description)
                writer.endObject()
            }
            if let sent = row.sent {
                writer.key("sent")
                writer.beginObject()
                Self.write(sent.edit, to: &writer)
                writer.member("expected", sent.expected.description)
                writer.member("isSuperseded", sent.isSuperseded)
                writer.endObject()
            }
            if let edit = row.edit {
                writer.key("edit")
                writer.beginObject()
                Self.write(edit, to: &writer)
                writer.endObject()
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return writer.bytes
    }

    private static func write(_ value: PropertyValue?, to writer: inout JSONWriter) {
        guard let value else { return }
        writer.key("value")
        value.write(to: &writer)
    }

    private static func write(_ edit: Edit, to writer: inout JSONWriter) {
        write(edit.value, to: &writer)
        writer.member("isExplicit", edit.isExplicit)
        writer.member("order", integer: Int64(bitPattern: edit.order))
    }

    /// Reads `serialized` back.
    /// - Throws: `PreferenceCopyError` where the bytes are no such copy; a retry does not help.
    package init(_ bytes: [UInt8]) throws(PreferenceCopyError) {
        let json: JSONValue
        do throws(JSONError) { json = try JSONParser.parse(bytes) } catch { throw PreferenceCopyError("\(error)") }
        guard case .integer(Self.format) = json["format"] else {
            throw .later
        }
        guard let device = json["device"]?.string, let rows = json["rows"]?.array,
            case .bool(let isDone) = json["isInitialSyncDone"], case .integer(let edits) = json["edits"]
        else { throw PreferenceCopyError("'device', 'rows', 'isInitialSyncDone' or 'edits' is missing") }
        self.init(device: device)
        token = json["token"]?.string
        batchID = json["batch"]?.string
        claimant = json["claimant"]?.string
        isInitialSyncDone = isDone
        self.edits = UInt64(bitPattern: edits)
        for (index, member) in rows.enumerated() {
            guard let key = member["key"]?.string else { throw PreferenceCopyError("rows[\(index)] has no key") }
            let path = "rows[\(index)]"
            var row = Row()
            if let json = member["server"] {
                row.server = Server(
                    value: try Self.value(json, path), version: try Self.tag(json, "version", path))
            }
            if let json = member["sent"] {
                row.sent = Sent(
                    edit: try Self.edit(json, path), expected: try Self.tag(json, "expected", path),
                    isSuperseded: json["isSuperseded"] == .bool(true))
            }
            if let json = member["edit"] { row.edit = try Self.edit(json, path) }
            if !row.isEmpty { self.rows[PreferenceKey(key)] = row }
        }
        if (batchID == nil) != self.rows.values.allSatisfy({ $0.sent == nil }) {
            throw PreferenceCopyError("there is a batch without writes, or writes without a batch")
        }
    }

    private static func value(_ json: JSONValue, _ path: String) throws(PreferenceCopyError) -> PropertyValue? {
        guard let value = json["value"] else { return nil }
        do throws(ServiceError) {
            return try PropertyValue(json: value, path: path)
        } catch {
            throw PreferenceCopyError(error.reason)
        }
    }

    private static func tag(_ json: JSONValue, _ name: String, _ path: String) throws(PreferenceCopyError) -> ChangeTag
    {
        guard let tag = json[name]?.string.flatMap(ChangeTag.init) else {
            throw PreferenceCopyError("\(path) has no \(name)")
        }
        return tag
    }

    private static func edit(_ json: JSONValue, _ path: String) throws(PreferenceCopyError) -> Edit {
        guard case .integer(let order) = json["order"] else { throw PreferenceCopyError("\(path) has no order") }
        return Edit(
            value: try value(json, path), isExplicit: json["isExplicit"] == .bool(true),
            order: UInt64(bitPattern: order))
    }
}

/// Why bytes are no copy of preferences.
package struct PreferenceCopyError: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String
    /// Whether the bytes may be whole, and only of a form that came after this one: they are to be left alone.
    package var isLater = false

    package init(_ description: String) { self.description = description }

    package static var later: Self {
        var error = Self("it is of another format than 1; did a later version of this library write it?")
        error.isLater = true
        return error
    }
}

/// The name of a preference, compared by its bytes: Swift's own comparison takes two spellings of one letter for the
/// same text, the server does not.
package struct PreferenceKey: Hashable, Comparable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (left: Self, right: Self) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    package static func < (left: Self, right: Self) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
