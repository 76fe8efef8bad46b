import RecordModel

/// A device's copy of one user's preferences, as it is on disk: the server's values, and the edits not sent yet.
///
/// Invariants: a row has a server state, a write on its way or an edit; writes are on their way only while there is a
/// batch; before the initial sync there is neither token nor batch.
struct PreferenceCopy: Hashable, Sendable {
    /// This copy's name at the server, which repeats it with each change that the copy made.
    var device: String
    var rows: [PreferenceKey: Row] = [:]
    /// The position in the server's feed up to which the copy is complete; nil while it has to be read from the start.
    var token: String?
    /// Whether the server's values were ever read to their end.
    var isInitialSyncDone = false
    /// The idempotency key of the batch that was sent, or is about to be, and whose outcome is not known.
    var batchID: String?
    /// Counts edits, which orders them.
    var edits: UInt64 = 0

    /// In an unowned copy: the user that is taking its values over. If the process ends in between, no other user gets
    /// them.
    var claimant: String?

    struct Row: Hashable, Sendable {
        var server: Server?
        var sent: Sent?
        var edit: Edit?

        /// What the app sees; nil for nothing.
        var value: PropertyValue? {
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

    /// The state of a key that the server reported last.
    struct Server: Hashable, Sendable {
        /// Nil for a deletion that the feed has yet to repeat.
        var value: PropertyValue?
        var version: ChangeTag
        let sizeBytes: Int

        init(value: PropertyValue?, version: ChangeTag) {
            self.value = value
            self.version = version
            sizeBytes = value?.sizeBytes ?? 0
        }
    }

    /// An edit that was not sent yet.
    struct Edit: Hashable, Sendable {
        /// Nil to delete.
        var value: PropertyValue?
        /// Whether it wins over values that this device has not seen.
        var isExplicit: Bool
        /// Its number among the copy's edits.
        var order: UInt64
        let sizeBytes: Int

        init(value: PropertyValue?, isExplicit: Bool, order: UInt64) {
            self.value = value
            self.isExplicit = isExplicit
            self.order = order
            sizeBytes = value?.sizeBytes ?? 0
        }
    }

    /// A write of the batch under way. The batch is repeated as it is until its outcome is known.
    struct Sent: Hashable, Sendable {
        var edit: Edit
        /// The version that the server must have.
        var expected: ChangeTag
        /// Whether a newer value arrived, so that the outcome no longer matters to this key.
        var isSuperseded = false

        var value: PropertyValue? { edit.value }
        var sizeBytes: Int { edit.sizeBytes }
    }

    /// As an expected version: the key must have no value.
    static let absent = ChangeTag(incarnation: 0, sequence: 0)

    func value(_ key: PreferenceKey) -> PropertyValue? { rows[key]?.value }

    /// All that the app sees, in byte order of the keys.
    var visible: [(key: PreferenceKey, value: PropertyValue)] {
        rows.compactMap { key, row in row.value.map { (key, $0) } }.sorted { $0.key < $1.key }
    }

    var usage: PreferenceUsage {
        rows.values.reduce(into: PreferenceUsage()) { usage, row in
            guard let size = row.sizeBytes else { return }
            usage.keys += 1
            usage.bytes += size
        }
    }

    /// The writes of the batch under way, in byte order of the keys.
    var batch: PreferenceBatch? {
        guard let batchID else { return nil }
        let writes = rows.compactMap { key, row in
            row.sent.map { PreferenceBatch.Write(key: key, value: $0.value, expected: $0.expected) }
        }
        return PreferenceBatch(id: batchID, writes: writes.sorted { $0.key < $1.key })
    }

    /// Replaces a row; an empty one is removed.
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

struct PreferenceUsage: Hashable, Sendable {
    var keys = 0
    /// The sum of the values' `sizeBytes`.
    var bytes = 0
}

/// Writes that the server applies together or not at all.
struct PreferenceBatch: Hashable, Sendable {
    /// The idempotency key.
    var id: String
    /// In byte order of the keys, each once.
    var writes: [Write]

    struct Write: Hashable, Sendable {
        var key: PreferenceKey
        /// Nil to delete.
        var value: PropertyValue?
        var expected: ChangeTag
    }
}

/// The form on disk: an object with `format` 1 and values as the server has them.
extension PreferenceCopy {
    private static let format: Int64 = 1

    /// The copy as JSON; rows in byte order of their keys.
    func serialized() -> [UInt8] {
        var writer = JSONWriter(capacity: 4096)
        writer.object { writer in
            writer.member("format", integer: Self.format)
            writer.member("device", device)
            if let token { writer.member("token", token) }
            writer.member("isInitialSyncDone", isInitialSyncDone)
            if let batchID { writer.member("batch", batchID) }
            if let claimant { writer.member("claimant", claimant) }
            writer.member("edits", integer: Int64(bitPattern: edits))
            writer.key("rows")
            writer.array { writer in
                for (key, row) in rows.sorted(by: { $0.key < $1.key }) { Self.write(key, row, to: &writer) }
            }
        }
        return writer.bytes
    }

    private static func write(_ key: PreferenceKey, _ row: Row, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("key", key.text)
            if let server = row.server {
                writer.key("server")
                writer.object { writer in
                    write(server.value, to: &writer)
                    writer.member("version", server.version.description)
                }
            }
            if let sent = row.sent {
                writer.key("sent")
                writer.object { writer in
                    write(sent.edit, to: &writer)
                    writer.member("expected", sent.expected.description)
                    writer.member("isSuperseded", sent.isSuperseded)
                }
            }
            if let edit = row.edit {
                writer.key("edit")
                writer.object { writer in write(edit, to: &writer) }
            }
        }
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
    init(_ bytes: [UInt8]) throws(PreferenceCopyError) {
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
        return try Result { () throws(ServiceError) in try PropertyValue(json: value, path: path) }
            .mapError { PreferenceCopyError($0.reason) }.get()
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

struct PreferenceCopyError: Error, Hashable, Sendable, CustomStringConvertible {
    var description: String
    /// Whether the bytes may be intact but of a later version. They must then be left as they are.
    var isLater = false

    init(_ description: String) { self.description = description }

    static var later: Self {
        var error = Self("it is of another format than 1; did a later version of this library write it?")
        error.isLater = true
        return error
    }
}

/// The name of a preference, compared by its bytes: Swift's own comparison takes two spellings of one letter for the
/// same text, the server does not.
struct PreferenceKey: Hashable, Comparable, Sendable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (left: Self, right: Self) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    static func < (left: Self, right: Self) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
