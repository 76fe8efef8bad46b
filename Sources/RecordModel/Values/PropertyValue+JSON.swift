/// The JSON form, typed like a record's fields: `{"value": ..., "type": "STRING"}`.
///
/// The types are STRING, BYTES (base64), INT64, DOUBLE, TIMESTAMP (milliseconds since 1970), BOOL, ARRAY and
/// DICTIONARY, whose members have the same form. Input may leave the type out where the value shows it, and a string,
/// number, Boolean or array may then stand without the object. Doubles that JSON has no number for are the strings
/// `nan`, `inf` and `-inf`.
extension PropertyValue {
    /// The name of the value's type in JSON.
    package var typeName: String {
        switch self {
        case .string: "STRING"
        case .data: "BYTES"
        case .int64: "INT64"
        case .double: "DOUBLE"
        case .date: "TIMESTAMP"
        case .bool: "BOOL"
        case .array: "ARRAY"
        case .dictionary: "DICTIONARY"
        }
    }

    /// Writes `{"value": ..., "type": ...}`.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("value")
        switch self {
        case .string(let text): writer.string(text)
        case .data(let bytes): writer.base64(bytes)
        case .int64(let number), .date(let number): writer.integer(number)
        case .double(let number):
            if number.isFinite {
                writer.number(number)
            } else {
                writer.string(number.isNaN ? "nan" : number < 0 ? "-inf" : "inf")
            }
        case .bool(let flag): writer.bool(flag)
        case .array(let members):
            writer.beginArray()
            for member in members { member.write(to: &writer) }
            writer.endArray()
        case .dictionary(let entries):
            writer.beginObject()
            for entry in entries {
                writer.key(entry.key)
                entry.value.write(to: &writer)
            }
            writer.endObject()
        }
        writer.member("type", typeName)
        writer.endObject()
    }

    /// Reads a value.
    /// - Parameter path: where it stands in the request, for the error's reason, such as `writes[3].value`.
    /// - Throws: `ServiceError` BAD_REQUEST that names the place; a retry does not help.
    package init(json: JSONValue, path: String) throws(ServiceError) {
        try self.init(json: json, path: path, depth: 0)
    }

    private init(json: JSONValue, path: String, depth: Int) throws(ServiceError) {
        guard case .object(let members) = json else {
            self = try Self.untyped(json, path: path, depth: depth)
            return
        }
        for member in members where member.key != "value" && member.key != "type" {
            throw Self.bad(path, "has the member '\(member.key.prefix(60))'; a value has 'value' and 'type'")
        }
        guard let value = json["value"], !value.isNull else {
            throw Self.bad(path, "has no 'value'; to delete the key leave the whole value out")
        }
        guard let type = json["type"] else {
            self = try Self.untyped(value, path: path, depth: depth)
            return
        }
        guard let name = type.string else { throw Self.bad(path + ".type", "is \(type.kind) and must be a string") }
        self = try Self.typed(value, as: name, path: path, depth: depth)
    }

    private static func untyped(_ json: JSONValue, path: String, depth: Int) throws(ServiceError) -> PropertyValue {
        switch json {
        case .null: throw bad(path, "is null; to delete a key leave its value out")
        case .bool(let flag): return .bool(flag)
        case .integer(let number): return .int64(number)
        case .number(let number): return .double(number)
        case .string(let text): return .string(text)
        case .array(let members): return try array(members, path: path, depth: depth)
        case .object(let members): return try dictionary(members, path: path, depth: depth)
        }
    }

    private static func typed(
        _ json: JSONValue, as type: String, path: String, depth: Int
    ) throws(ServiceError) -> PropertyValue {
        switch (type, json) {
        case ("STRING", .string(let text)): return .string(text)
        case ("BYTES", .string(let text)):
            guard let bytes = Base64.decode(text) else { throw bad(path, "is not base64 with padding") }
            return .data(bytes)
        case ("INT64", .integer(let number)): return .int64(number)
        case ("DOUBLE", .integer(let number)): return .double(Double(number))
        case ("DOUBLE", .number(let number)): return .double(number)
        case ("DOUBLE", .string("nan")): return .double(.nan)
        case ("DOUBLE", .string("inf")): return .double(.infinity)
        case ("DOUBLE", .string("-inf")): return .double(-.infinity)
        case ("TIMESTAMP", .integer(let milliseconds)): return .date(milliseconds)
        case ("BOOL", .bool(let flag)): return .bool(flag)
        case ("ARRAY", .array(let members)): return try array(members, path: path, depth: depth)
        case ("DICTIONARY", .object(let members)): return try dictionary(members, path: path, depth: depth)
        case ("STRING", _), ("BYTES", _): throw bad(path, "is \(json.kind); \(type) takes a string")
        case ("INT64", _), ("TIMESTAMP", _):
            throw bad(path, "is \(json.kind); \(type) takes a whole number of at most 64 bits")
        case ("DOUBLE", _): throw bad(path, "is \(json.kind); DOUBLE takes a number")
        case ("BOOL", _): throw bad(path, "is \(json.kind); BOOL takes true or false")
        case ("ARRAY", _): throw bad(path, "is \(json.kind); ARRAY takes an array")
        case ("DICTIONARY", _): throw bad(path, "is \(json.kind); DICTIONARY takes an object")
        default:
            throw bad(
                path + ".type",
                "is '\(type.prefix(60))'; types are STRING, BYTES, INT64, DOUBLE, TIMESTAMP, BOOL, ARRAY and DICTIONARY"
            )
        }
    }

    private static func array(_ members: [JSONValue], path: String, depth: Int) throws(ServiceError) -> PropertyValue {
        try check(depth: depth + 1, path: path)
        var values: [PropertyValue] = []
        values.reserveCapacity(members.count)
        for (position, member) in members.enumerated() {
            values.append(try PropertyValue(json: member, path: "\(path)[\(position)]", depth: depth + 1))
        }
        return .array(values)
    }

    private static func dictionary(
        _ members: [JSONValue.Member], path: String, depth: Int
    ) throws(ServiceError) -> PropertyValue {
        try check(depth: depth + 1, path: path)
        var entries: [Entry] = []
        entries.reserveCapacity(members.count)
        for member in members {
            let inner = "\(path).\(member.key.prefix(60))"
            entries.append(
                Entry(key: member.key, value: try PropertyValue(json: member.value, path: inner, depth: depth + 1)))
        }
        guard let value = PropertyValue(sorting: entries) else { throw bad(path, "has a key twice") }
        return value
    }

    private static func check(depth: Int, path: String) throws(ServiceError) {
        if depth <= depthMax { return }
        var error = bad(path, "is nested deeper than \(depthMax); flatten it or keep it as BYTES")
        error.detail = .tooDeep
        throw error
    }

    private static func bad(_ path: String, _ problem: String) -> ServiceError {
        ServiceError(.badRequest, "\(path.prefix(500)) \(problem)")
    }
}
