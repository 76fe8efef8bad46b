/// Turns JSON into values of a known type.
struct ValueConverter {
    /// The zone of the record that holds the value; nil keeps the zones of references as they are.
    var zone: ZoneID?
    /// Whether the value is one to look for: a reference may then be a bare record name.
    var isQuery = false
    /// Finds the file of an asset dictionary, if any.
    var asset: Assets?

    typealias Assets = (JSONValue) throws(FormError) -> AssetReference

    /// The type that a value without a stated type or a schema has.
    static func infer(_ json: JSONValue) throws(FormError) -> FieldType {
        switch json {
        case .string: return FieldType(.string)
        case .integer, .bool: return FieldType(.int64)
        case .number: return FieldType(.double)
        case .object:
            if json["latitude"] != nil { return FieldType(.location) }
            if json["recordName"] != nil { return FieldType(.reference) }
            if json["fileChecksum"] != nil || json["receipt"] != nil { return FieldType(.asset) }
            throw FormError("an object without latitude, recordName or fileChecksum is no value; state its type")
        case .array(let members):
            guard let first = members.first else { throw FormError("an empty list has no type; state it") }
            let type = try infer(first)
            if type.isList { throw FormError("lists of lists are no value") }
            // Whole numbers lose their fraction in JavaScript: 1, 2.5 is a list of doubles.
            let hasFraction = members.contains { if case .number = $0 { true } else { false } }
            return FieldType(type.scalar == .int64 && hasFraction ? .double : type.scalar, isList: true)
        case .null: throw FormError("null is no member of a list")
        }
    }

    /// Up to here every whole number is a double of its own, and fits 64 bits.
    private static let exactMax = 0x1p53

    func convert(_ json: JSONValue, to scalar: ScalarType) throws(FormError) -> FieldValue {
        switch scalar {
        case .string:
            guard case .string(let text) = json else { throw .invalid(FieldType(scalar), json) }
            return .string(text)
        case .int64: return .int64(try int64(json))
        case .double: return .double(try Self.double(json, .double))
        case .timestamp: return .timestamp(try Self.milliseconds(json))
        case .bytes:
            guard case .string(let text) = json else { throw .invalid(FieldType(scalar), json) }
            guard let bytes = Base64.decode(text) else {
                throw .invalid(scalar, "the text is not base64 in the standard alphabet with padding")
            }
            return .bytes(bytes)
        case .location: return .location(try location(json))
        case .reference: return .reference(try reference(json))
        case .asset:
            guard let asset else { throw FormError("a value of type ASSETID has no place here") }
            return .asset(try asset(json))
        case .number: preconditionFailure("a number is of one kind or the other before it is converted")
        }
    }

    private func int64(_ json: JSONValue) throws(FormError) -> Int64 {
        switch json {
        case .integer(let number): return number
        case .bool(let flag): return flag ? 1 : 0
        case .number(let number):
            // Above 2^53 a double may not be the number that was written, so it is not taken for a whole one.
            guard number.magnitude <= Self.exactMax, Double(Int64(number)) == number else {
                throw .invalid(.int64, "\(number) has a fraction, or is too large to be exact")
            }
            return Int64(number)
        case .string(let text):
            guard let number = JSONParser.parseNumber(text) else {
                throw .invalid(.int64, "the text is not a number")
            }
            return try int64(number)
        default: throw .invalid(FieldType(.int64), json)
        }
    }

    private static func double(_ json: JSONValue, _ scalar: ScalarType) throws(FormError) -> Double {
        switch json {
        case .integer(let number): return Double(number)
        case .number(let number): return number
        case .string(let text):
            guard let number = JSONParser.parseNumber(text) else { throw .invalid(scalar, "the text is not a number") }
            return try double(number, scalar)
        default: throw .invalid(FieldType(scalar), json)
        }
    }

    /// Fractions of a millisecond, which native dates have, are dropped.
    private static func milliseconds(_ json: JSONValue) throws(FormError) -> Int64 {
        if case .integer(let number) = json { return number }
        if case .string(let text) = json, case .integer(let number) = JSONParser.parseNumber(text) { return number }
        let number = try double(json, .timestamp)
        guard number.magnitude <= exactMax else { throw .invalid(.timestamp, "\(number) is too large") }
        let milliseconds = Int64(number)
        // Down, not towards zero. `rounded` and `Int64(exactly:)` would need the C library's mathematics.
        return Double(milliseconds) > number ? milliseconds - 1 : milliseconds
    }

    private func location(_ json: JSONValue) throws(FormError) -> Location {
        guard case .object = json else { throw .invalid(FieldType(.location), json) }
        let form = try Form(json)
        let latitude = try coordinate(form, "latitude", within: 90)
        let longitude = try coordinate(form, "longitude", within: 180)
        var location = Location(latitude: latitude, longitude: longitude)
        func optional(_ key: String) throws(FormError) -> Double? {
            try form.nested(key) { json throws(FormError) in try Self.double(json, .double) }
        }
        location.horizontalAccuracy = try optional("horizontalAccuracy")
        location.verticalAccuracy = try optional("verticalAccuracy")
        location.altitude = try optional("altitude")
        location.speed = try optional("speed")
        location.course = try optional("course")
        location.timestamp = try form.nested("timestamp") { json throws(FormError) in try Self.milliseconds(json) }
        return location
    }

    private func coordinate(_ form: Form, _ key: String, within limit: Double) throws(FormError) -> Double {
        let json = try form.need(key)
        return try at(key) { () throws(FormError) in
            let degrees = try Self.double(json, .double)
            guard degrees.magnitude <= limit else {
                throw FormError("\(degrees) degrees are not between -\(Int(limit)) and \(Int(limit))")
            }
            return degrees
        }
    }

    private func reference(_ json: JSONValue) throws(FormError) -> Reference {
        if isQuery, case .string(let name) = json {
            try Names.checkPrintable(name)
            return Reference(recordName: name)
        }
        guard case .object = json else { throw .invalid(FieldType(.reference), json) }
        let form = try Form(json)
        guard let name = try form.string("recordName") else { throw FormError("is missing", at: "recordName") }
        try at("recordName") { () throws(FormError) in try Names.checkPrintable(name) }
        // The reference requires an action, clients leave it out: that is NONE.
        let action = try form.string("action") ?? Reference.Action.none.rawValue
        guard let known = Reference.Action(rawValue: action) else {
            throw FormError("'\(action)' is none of NONE, DELETE_SELF, VALIDATE", at: "action")
        }
        let target = try form.nested("zoneID") { json throws(FormError) in try ZoneID(form: json) }
        // A query looks for the record that is meant, whatever its deletion would do.
        return Reference(recordName: name, zone: try zoneToKeep(target), action: isQuery ? .none : known)
    }

    /// Clients echo the zone of a reference. The record's own zone is left out: equal references are equal values.
    private func zoneToKeep(_ target: ZoneID?) throws(FormError) -> ZoneID? {
        guard let zone, let target else { return target }
        let isSameOwner = zone.owner == nil || target.owner == nil || zone.owner == target.owner
        guard zone.name == target.name, isSameOwner else {
            throw FormError("'\(target.name)' is another zone; a reference stays in its record's zone", at: "zoneID")
        }
        return nil
    }
}
