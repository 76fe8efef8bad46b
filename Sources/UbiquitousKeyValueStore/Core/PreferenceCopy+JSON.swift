import RecordModel

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
