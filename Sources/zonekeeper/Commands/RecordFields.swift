import ArgumentParser
import RecordModel
import ServiceClient

/// A field on the command line: `title=Hello`, `count:INT64=3`, `tags:STRING_LIST=red,green`,
/// `place:LOCATION=42.5,1.5`, `owner:DELETE_SELF=other-record`, `photo:ASSET=@file`, `photo:ASSET=record:NAME/FIELD`,
/// `extra:JSON={"value": 1}`; `title=` is the empty string and `title:NULL=` clears the field.
struct FieldArgument: ExpressibleByArgument, Hashable {
    var name: String
    /// `{value, type}`, or null. Of assets the value is missing until their files were sent.
    var json: JSONValue
    /// What an asset, or a list of them, is made of; nil for other fields.
    var files: AssetFiles?

    struct AssetFiles: Hashable {
        var sources: [Source]
        var isList: Bool
    }

    enum Source: Hashable {
        case file(String)
        /// A field of another record of the same zone.
        case record(String, field: String)
    }

    init?(argument: String) {
        guard let field = try? FieldArgument(parsing: argument) else { return nil }
        self = field
    }

    init(parsing text: String) throws {
        let sides = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard sides.count == 2, !sides[0].isEmpty else {
            throw ValidationError("'\(text)': field=value or field:TYPE=value is expected")
        }
        let left = sides[0].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard !left[0].isEmpty else { throw ValidationError("'\(text)': the field's name is missing") }
        name = String(left[0])
        let value = String(sides[1])
        guard left.count == 2 else {
            // Without a type the server converts the text to the schema's.
            json = .members(["value": .string(value)])
            return
        }
        let type = left[1].uppercased()
        if let files = try Self.files(value, as: type, field: name) {
            self.files = files
            json = .members(["type": .string(files.isList ? "ASSETID_LIST" : "ASSETID")])
        } else {
            json = try Self.typed(value, as: type, field: name)
        }
    }

    private static func files(_ text: String, as type: String, field: String) throws -> AssetFiles? {
        guard ["ASSET", "ASSETID", "ASSET_LIST", "ASSETID_LIST"].contains(type) else { return nil }
        let isList = type.hasSuffix("_LIST")
        let parts = isList ? text.split(separator: ",").map(String.init) : [text]
        return AssetFiles(
            sources: try parts.map { part in
                guard let source = Source(part) else {
                    throw ValidationError(
                        "\(field): \(type) takes a file as @FILE, or another record's asset as record:NAME/FIELD, not "
                            + "'\(part.shortened(to: 40))'")
                }
                return source
            }, isList: isList)
    }

    private static func typed(_ text: String, as type: String, field: String) throws -> JSONValue {
        switch type {
        case "NULL": return .null
        case "JSON":
            do throws(JSONError) {
                return FieldsObject.field(try JSONParser.parse(Array(text.utf8)))
            } catch {
                throw ValidationError("\(field): the value is not JSON: \(error)")
            }
        default: break
        }
        if let action = Reference.Action(rawValue: type) {
            return .members(["value": reference(text, action), "type": .string(ScalarType.reference.rawValue)])
        }
        let isList = type.hasSuffix("_LIST")
        let base = isList ? String(type.dropLast("_LIST".count)) : type
        guard let scalar = ScalarType(rawValue: base), scalar != .asset, scalar != .number else {
            throw ValidationError(
                "\(field): '\(type)' is no type; there are STRING, INT64, DOUBLE, TIMESTAMP, BYTES, LOCATION, "
                    + "REFERENCE and ASSET, each with _LIST, DELETE_SELF and VALIDATE for references, JSON and NULL")
        }
        guard isList else {
            return .members(["value": try ScalarText.json(text, as: scalar), "type": .string(type)])
        }
        // A location has a comma of its own.
        let parts = text.split(separator: scalar == .location ? ";" : ",").map(String.init)
        let members = try parts.map { try ScalarText.json($0, as: scalar) }
        return .members(["value": .array(members), "type": .string(type)])
    }

    private static func reference(_ name: String, _ action: Reference.Action) -> JSONValue {
        .members(["recordName": .string(name), "action": .string(action.rawValue)])
    }
}

extension FieldArgument.Source {
    fileprivate init?(_ text: String) {
        if text.hasPrefix("@"), text.count > 1 {
            self = .file(String(text.dropFirst()))
            return
        }
        // Names of records may have slashes, those of fields have none.
        guard text.hasPrefix("record:"), let slash = text.lastIndex(of: "/") else { return nil }
        let (name, field) = (text[..<slash].dropFirst("record:".count), text[slash...].dropFirst())
        guard !name.isEmpty, !field.isEmpty else { return nil }
        self = .record(String(name), field: String(field))
    }
}

/// Fields as a JSON object, in the protocol's form (`{"title": {"value": "Hello"}}`) or plain (`{"title": "Hello"}`).
struct FieldsObject: Hashable {
    /// Nil where the object has none.
    let recordName: String?
    /// The record's parent, as a record of Web Services has it; nil where it has no parent.
    let parent: JSONValue?
    /// Each in the protocol's form.
    let fields: JSONValue

    init(fields: [JSONValue.Member]) { (recordName, parent, self.fields) = (nil, nil, .object(fields)) }

    init(_ json: JSONValue) throws(CommandFailure) {
        guard case .object(var members) = json else {
            throw CommandFailure("an object of fields is expected, not \(json.kind)")
        }
        var parent: JSONValue?
        // A record as Web Services have it, such as an export writes: its files are not part of it.
        if json["recordType"]?.string != nil, case .object(let fields)? = json["fields"] {
            parent = json["parent"]
            members = members.filter { $0.key == "recordName" }
            members += fields.filter { $0.value["type"]?.string?.hasPrefix("ASSETID") != true }
        }
        var name: String?
        var fields: [JSONValue.Member] = []
        for member in members {
            if member.key == "recordName" {
                guard let text = member.value.string else {
                    throw CommandFailure("recordName: a string is expected, not \(member.value.kind)")
                }
                name = text
            } else {
                fields.append(JSONValue.Member(member.key, Self.field(member.value)))
            }
        }
        (recordName, self.parent, self.fields) = (name, parent, .object(fields))
    }

    static func field(_ json: JSONValue) -> JSONValue {
        if json.isNull { return .null }
        if case .object = json, json["value"] != nil { return json }
        return .members(["value": json])
    }
}

/// Values of a stated type, as they are written on the command line.
enum ScalarText {
    /// The JSON of a value in the protocol's form.
    static func json(_ text: String, as type: ScalarType) throws -> JSONValue {
        switch type {
        case .string, .asset, .number: return .string(text)
        case .int64:
            guard let number = Int64(text) else {
                throw ValidationError("INT64: a whole number of at most 64 bits is expected, not '\(text)'")
            }
            return .integer(number)
        case .double:
            guard let number = JSONParser.parseNumber(text) else {
                throw ValidationError("DOUBLE: a number such as 1.5 is expected, not '\(text)'")
            }
            return number
        case .timestamp:
            guard let milliseconds = Times.milliseconds(text) else {
                throw ValidationError(
                    "TIMESTAMP: milliseconds since 1970, or a time such as 2026-01-31T12:00:00Z, is expected, not "
                        + "'\(text)'")
            }
            return .integer(milliseconds)
        case .bytes:
            guard Base64.decode(text) != nil else {
                throw ValidationError("BYTES: base64 with padding is expected, not '\(text.shortened(to: 40))'")
            }
            return .string(text)
        case .location: return try location(text)
        case .reference: return .members(["recordName": .string(text), "action": .string("NONE")])
        }
    }

    private static func location(_ text: String) throws -> JSONValue {
        let sides = text.split(separator: ",", omittingEmptySubsequences: false)
        guard sides.count == 2, let latitude = Double(sides[0]), let longitude = Double(sides[1]),
            (-90...90).contains(latitude), (-180...180).contains(longitude)
        else {
            throw ValidationError(
                "LOCATION: latitude,longitude in degrees, such as 42.5,1.5167, is expected, not '\(text)'")
        }
        return .members(["latitude": .number(latitude), "longitude": .number(longitude)])
    }
}

enum RecordTable {
    /// Cells longer than this are cut; `record get` and `--json` show everything.
    private static let cellLengthMax = 48

    /// One line a record, one column a field.
    static func table(_ records: [JSONValue]) -> String {
        var names: Set<String> = []
        for record in records { for member in fields(of: record) { names.insert(member.key) } }
        let columns = names.sorted()
        // Records of a search in all zones say where they are.
        let showsZones = records.contains { $0["zoneID"] != nil }
        var table = Table(headings: (showsZones ? ["ZONE"] : []) + ["RECORD NAME"] + columns)
        for record in records {
            let fields = fields(of: record)
            table.add(
                (showsZones ? [record["zoneID"]?.text("zoneName") ?? ""] : []) + [record.text("recordName")]
                    + columns.map { column in
                        guard let field = fields.first(where: { $0.key == column }) else { return "" }
                        return value(field.value).shortened(to: cellLengthMax)
                    })
        }
        return table.text
    }

    static func details(_ record: JSONValue) -> String {
        var lines = [
            "\(record.text("recordName"))", "  type      \(record.text("recordType"))",
            "  tag       \(record.text("recordChangeTag"))",
        ]
        for (label, key) in [("created ", "created"), ("modified", "modified")] {
            guard let stamp = record[key] else { continue }
            lines.append("  \(label)  \(stamp.time("timestamp")) by \(stamp.text("userRecordName"))")
        }
        if let parent = record["parent"] { lines.append("  parent    \(parent.text("recordName"))") }
        let fields = fields(of: record)
        guard !fields.isEmpty else { return lines.joined(separator: "\n") }
        var table = Table("FIELD", "TYPE", "VALUE")
        for field in fields { table.add([field.key, field.value.text("type"), value(field.value)]) }
        return (lines + table.text.split(separator: "\n").map { "  " + $0 }).joined(separator: "\n")
    }

    private static func fields(of record: JSONValue) -> [JSONValue.Member] { record["fields"]?.members ?? [] }

    /// A field's value: places as latitude,longitude, references by their record's name, times as such.
    static func value(_ field: JSONValue) -> String {
        guard let value = field["value"] else { return "" }
        if field.text("type") == "TIMESTAMP", case .integer(let milliseconds) = value {
            return Times.text(milliseconds)
        }
        return scalar(value)
    }

    private static func scalar(_ value: JSONValue) -> String {
        if let members = value.array { return members.map(scalar).joined(separator: ", ") }
        if value["latitude"] != nil { return "\(value.text("latitude")),\(value.text("longitude"))" }
        if let name = value["recordName"]?.string { return name }
        if value["fileChecksum"] != nil, case .integer(let size)? = value["size"] { return Units.bytes(size) }
        return value.plainText
    }
}
