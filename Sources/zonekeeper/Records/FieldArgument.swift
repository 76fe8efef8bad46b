import ArgumentParser
import RecordModel
import ServiceClient

/// A field on the command line: `title=Hello`, `count:INT64=3`, `tags:STRING_LIST=red,green`, `place:LOCATION=42.5,1.5`,
/// `owner:DELETE_SELF=other-record`, `extra:JSON={"value": 1}`; `title=` is the empty string and `title:NULL=` clears the field.
struct FieldArgument: ExpressibleByArgument, Hashable {
    var name: String
    /// `{value, type}`, or null.
    var json: JSONValue

    init?(argument: String) {
        guard let field = try? FieldArgument(parsing: argument) else { return nil }
        self = field
    }

    /// - Throws: `ValidationError` that says what is expected.
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
        json = try Self.typed(value, as: left[1].uppercased(), field: name)
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
                "\(field): '\(type)' is no type; there are STRING, INT64, DOUBLE, TIMESTAMP, BYTES, LOCATION and REFERENCE, "
                    + "each with _LIST, DELETE_SELF and VALIDATE for references, JSON and NULL")
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

/// Fields as a JSON object, in the protocol's form (`{"title": {"value": "Hello"}}`) or plain (`{"title": "Hello"}`).
enum FieldsObject {
    /// One field in the protocol's form.
    static func field(_ json: JSONValue) -> JSONValue {
        if json.isNull { return .null }
        if case .object = json, json["value"] != nil { return json }
        return .members(["value": json])
    }

    /// Takes an object apart into a record name, if there is one, and the fields.
    /// - Throws: `CommandFailure` if it is no object.
    static func read(_ json: JSONValue) throws(CommandFailure) -> (recordName: String?, fields: JSONValue) {
        guard case .object(let members) = json else {
            throw CommandFailure("an object of fields is expected, not \(json.kind)")
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
                fields.append(JSONValue.Member(member.key, field(member.value)))
            }
        }
        return (name, .object(fields))
    }
}
