package import Wire

/// A value of a key: what a property list can hold.
///
/// Invariant: the entries of a dictionary ascend by key in byte order and no key occurs twice; `init(sorting:)` makes
/// them so and decoding refuses anything else, so equal dictionaries have equal bytes.
package enum PropertyValue: Hashable, Sendable, WireCodable {
    case string(String)
    case data([UInt8])
    case int64(Int64)
    case double(Double)
    /// Milliseconds since 1970-01-01 UTC; may be negative.
    case date(Int64)
    case bool(Bool)
    case array([PropertyValue])
    case dictionary([Entry])

    /// One member of a dictionary.
    package struct Entry: Hashable, Sendable {
        /// The key, unique within its dictionary by its bytes.
        package var key: String
        /// A value of any kind; arrays and dictionaries may be nested up to `depthMax` in a store.
        package var value: PropertyValue
        package init(key: String, value: PropertyValue) {
            self.key = key
            self.value = value
        }
    }

    /// How deep arrays and dictionaries may be nested, the outermost counted. Each takes two levels of JSON, of which
    /// a document may have `Limits.jsonDepthMax`, envelope included.
    package static let depthMax = 12

    /// A dictionary of these entries in any order; nil if a key occurs twice.
    package init?(sorting entries: [Entry]) {
        let sorted = entries.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        for (one, next) in zip(sorted, sorted.dropFirst()) where one.key.utf8.elementsEqual(next.key.utf8) {
            return nil
        }
        self = .dictionary(sorted)
    }

    /// The least that a member of an array or dictionary counts for, in bytes, and the least for a dictionary's key.
    package static let memberBytesMin = 8

    /// What the value counts for, in bytes: text in UTF-8, data as it is, 8 for a number or a date, 1 for a Bool, the
    /// sum of what it holds for an array or a dictionary.
    ///
    /// Each member and each key inside a value counts at least `memberBytesMin`. An array or dictionary that is a
    /// member counts that much beside what it holds. So nothing inside a value is free: the limit of a store's bytes
    /// also limits how many members the store has.
    package var sizeBytes: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .data(let bytes): bytes.count
        case .int64, .double, .date: 8
        case .bool: 1
        case .array(let members): members.reduce(0) { $0 + $1.memberBytes }
        case .dictionary(let entries):
            entries.reduce(0) { $0 + max(Self.memberBytesMin, $1.key.utf8.count) + $1.value.memberBytes }
        }
    }

    /// What the value counts for as a member of another.
    private var memberBytes: Int {
        switch self {
        case .array, .dictionary: Self.memberBytesMin + sizeBytes
        case .string, .data, .int64, .double, .date, .bool: max(Self.memberBytesMin, sizeBytes)
        }
    }

    /// How many values are in it, at any depth; the value itself is not counted.
    package var memberCount: Int {
        switch self {
        case .string, .data, .int64, .double, .date, .bool: 0
        case .array(let members): members.reduce(members.count) { $0 + $1.memberCount }
        case .dictionary(let entries): entries.reduce(entries.count) { $0 + $1.value.memberCount }
        }
    }

    /// How many arrays and dictionaries enclose its innermost value, itself counted.
    package var depth: Int {
        switch self {
        case .string, .data, .int64, .double, .date, .bool: 0
        case .array(let members): 1 + (members.map(\.depth).max() ?? 0)
        case .dictionary(let entries): 1 + (entries.map(\.value.depth).max() ?? 0)
        }
    }

    /// One field, whose number says the kind.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .string(let text): writer.field(1, text)
        case .data(let bytes): writer.field(2, bytes)
        case .int64(let number): writer.field(3, signed: number)
        case .double(let number): writer.field(4, double: number)
        case .date(let milliseconds): writer.field(5, signed: milliseconds)
        case .bool(let flag): writer.field(6, flag)
        case .array(let members):
            writer.field(7) { nested in
                for member in members { nested.field(1) { member.encode(to: &$0) } }
            }
        case .dictionary(let entries):
            writer.field(8) { nested in
                for entry in entries {
                    nested.field(1, entry.key)
                    nested.field(2) { entry.value.encode(to: &$0) }
                }
            }
        }
    }

    /// - Throws: `WireError` if the bytes are malformed, nested deeper than `depthMax`, or hold a dictionary out of
    ///   order.
    package init(from reader: inout WireReader) throws(WireError) {
        try self.init(from: &reader, depth: 0)
    }

    private init(from reader: inout WireReader, depth: Int) throws(WireError) {
        var value: PropertyValue?
        while let field = try reader.nextField() {
            switch field {
            case 1: value = .string(try reader.string())
            case 2: value = .data(try reader.array())
            case 3: value = .int64(try reader.signed())
            case 4: value = .double(try reader.double())
            case 5: value = .date(try reader.signed())
            case 6: value = .bool(try reader.bool())
            case 7:
                var nested = try reader.nested()
                value = .array(try Self.members(from: &nested, depth: depth + 1))
            case 8:
                var nested = try reader.nested()
                value = .dictionary(try Self.entries(from: &nested, depth: depth + 1))
            default: try reader.skip()
            }
        }
        guard let value else { throw .missingField(1) }
        self = value
    }

    private static func members(from reader: inout WireReader, depth: Int) throws(WireError) -> [PropertyValue] {
        guard depth <= depthMax else { throw .invalidValue(field: 7) }
        var members: [PropertyValue] = []
        while let field = try reader.nextField() {
            guard field == 1 else { throw .unknownField(field) }
            var nested = try reader.nested()
            members.append(try PropertyValue(from: &nested, depth: depth))
        }
        return members
    }

    private static func entries(from reader: inout WireReader, depth: Int) throws(WireError) -> [Entry] {
        guard depth <= depthMax else { throw .invalidValue(field: 8) }
        var entries: [Entry] = []
        while let field = try reader.nextField() {
            guard field == 1 else { throw field > 2 ? .unknownField(field) : .invalidValue(field: 8) }
            let key = try reader.string()
            if let last = entries.last, !last.key.utf8.lexicographicallyPrecedes(key.utf8) {
                throw .invalidValue(field: 8)
            }
            guard try reader.nextField() == 2 else { throw .invalidValue(field: 8) }
            var nested = try reader.nested()
            entries.append(Entry(key: key, value: try PropertyValue(from: &nested, depth: depth)))
        }
        return entries
    }
}

extension PropertyValue {
    /// Whether both have the same bytes: unlike `==` it tells spellings of one letter apart, and 0 from -0, and takes a
    /// NaN for itself.
    package func isSame(as other: PropertyValue) -> Bool {
        switch (self, other) {
        case (.string(let one), .string(let two)): one.utf8.elementsEqual(two.utf8)
        case (.double(let one), .double(let two)): one.bitPattern == two.bitPattern || one.isNaN && two.isNaN
        case (.array(let one), .array(let two)):
            one.count == two.count && zip(one, two).allSatisfy { $0.isSame(as: $1) }
        case (.dictionary(let one), .dictionary(let two)):
            one.count == two.count
                && zip(one, two).allSatisfy { $0.key.utf8.elementsEqual($1.key.utf8) && $0.value.isSame(as: $1.value) }
        default: self == other
        }
    }
}

/// The JSON form, typed like a record's fields: `{"value": ..., "type": "STRING"}`.
///
/// The types are STRING, BYTES (base64), INT64, DOUBLE, TIMESTAMP (milliseconds since 1970), BOOL, ARRAY and
/// DICTIONARY, whose members have the same form. Input may leave the type out where the value shows it, and a string,
/// number, Boolean or array may then stand without the object. Doubles that JSON has no number for are the strings
/// `nan`, `inf` and `-inf`; the other numbers may be strings, too, where their type is stated.
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
    /// - Parameter numbersAsStrings: whether INT64, DOUBLE and TIMESTAMP values are written as strings.
    package func write(to writer: inout JSONWriter, numbersAsStrings: Bool = false) {
        writer.beginObject()
        writer.key("value")
        switch self {
        case .string(let text): writer.string(text)
        case .data(let bytes): writer.base64(bytes)
        case .int64(let number), .date(let number):
            if numbersAsStrings { writer.string(String(number)) } else { writer.integer(number) }
        case .double(let number) where !number.isFinite:
            writer.string(number.isNaN ? "nan" : number < 0 ? "-inf" : "inf")
        case .double(let number):
            if numbersAsStrings { writer.string(number.description) } else { writer.number(number) }
        case .bool(let flag): writer.bool(flag)
        case .array(let members):
            writer.beginArray()
            for member in members { member.write(to: &writer, numbersAsStrings: numbersAsStrings) }
            writer.endArray()
        case .dictionary(let entries):
            writer.beginObject()
            for entry in entries {
                writer.key(entry.key)
                entry.value.write(to: &writer, numbersAsStrings: numbersAsStrings)
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
        case ("INT64", .string(let text)), ("DOUBLE", .string(let text)), ("TIMESTAMP", .string(let text)):
            guard let number = JSONParser.parseNumber(text) else { throw bad(path, "is a text that is not a number") }
            return try typed(number, as: type, path: path, depth: depth)
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
