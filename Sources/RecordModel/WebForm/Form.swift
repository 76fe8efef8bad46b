/// A fault in a request's JSON, with its path. Paths are built from the inside out when there is a fault, so that good
/// requests do not pay for them.
struct FormError: Error, Hashable {
    /// Such as `operations[3].record`; empty for the body itself.
    var path: String
    var problem: String
    /// CloudKit's own words for the fault, where it has any: clients look for them, so they come before the place.
    var words: String?
    var detail: ErrorDetail?
    /// The index that would mend the fault.
    var missingIndex: MissingIndex?

    init(
        _ problem: String, at path: String = "", words: String? = nil, detail: ErrorDetail? = nil,
        missingIndex: MissingIndex? = nil
    ) {
        self.detail = detail
        self.path = path
        self.problem = problem
        self.words = words
        self.missingIndex = missingIndex
    }

    /// The same fault, seen from the object that holds `step`.
    func inside(_ step: String) -> FormError {
        var outer = self
        outer.path = path.isEmpty ? step : path.hasPrefix("[") ? step + path : step + "." + path
        return outer
    }

    /// What the client gets.
    var serviceError: ServiceError {
        let fault = path.isEmpty ? problem : "\(path): \(problem)"
        var error = ServiceError(.badRequest, words.map { "\($0). \(fault)" } ?? fault, detail: detail)
        error.missingIndex = missingIndex
        return error
    }

    static func expected(_ what: String, _ json: JSONValue) -> FormError {
        FormError("expected \(what), found \(json.kind)")
    }
}

/// Runs `body` and puts `step` before the path of its fault.
func at<Value>(_ step: @autoclosure () -> String, _ body: () throws(FormError) -> Value) throws(FormError) -> Value {
    do throws(FormError) {
        return try body()
    } catch {
        throw error.inside(step())
    }
}

/// Reads the members of a JSON object. A null member counts as missing; unknown members are ignored.
struct Form {
    private let json: JSONValue

    init(_ json: JSONValue) throws(FormError) {
        guard case .object = json else { throw .expected("an object", json) }
        self.json = json
    }

    subscript(key: String) -> JSONValue? {
        guard let value = json[key], !value.isNull else { return nil }
        return value
    }

    func need(_ key: String) throws(FormError) -> JSONValue {
        guard let value = self[key] else { throw FormError("is missing", at: key) }
        return value
    }

    func string(_ key: String) throws(FormError) -> String? {
        guard let value = self[key] else { return nil }
        guard case .string(let text) = value else { throw FormError.expected("a string", value).inside(key) }
        return text
    }

    func bool(_ key: String) throws(FormError) -> Bool? {
        guard let value = self[key] else { return nil }
        guard case .bool(let flag) = value else { throw FormError.expected("true or false", value).inside(key) }
        return flag
    }

    func integer(_ key: String) throws(FormError) -> Int? {
        guard let value = self[key] else { return nil }
        guard case .integer(let number) = value else { throw FormError.expected("a whole number", value).inside(key) }
        return Int(number)
    }

    func nested<Value>(
        _ key: String, _ decode: (JSONValue) throws(FormError) -> Value
    ) throws(FormError) -> Value? {
        guard let value = self[key] else { return nil }
        return try at(key) { () throws(FormError) -> Value in try decode(value) }
    }

    /// The elements of an array; nil if the member is missing.
    func array<Value>(
        _ key: String, _ decode: (JSONValue) throws(FormError) -> Value
    ) throws(FormError) -> [Value]? {
        guard let value = self[key] else { return nil }
        guard case .array(let members) = value else { throw FormError.expected("an array", value).inside(key) }
        var values: [Value] = []
        values.reserveCapacity(members.count)
        for (index, member) in members.enumerated() {
            values.append(try at("\(key)[\(index)]") { () throws(FormError) -> Value in try decode(member) })
        }
        return values
    }

    /// An array of at most `max` members that must be there; the count is checked before any member is read.
    func array<Value>(
        _ key: String, max: Int, _ decode: (JSONValue) throws(FormError) -> Value
    ) throws(FormError) -> [Value] {
        if let count = try need(key).array?.count, count > max {
            throw FormError(
                "\(count) given, at most \(max) in one request; send them in several requests", at: key,
                detail: .tooLarge)
        }
        return try array(key, decode) ?? []
    }
}

/// The body of a request to Web Services.
package protocol WebRequest: Sendable {
    /// Whether a request may come without a body, which then means `{}`.
    static var isBodyOptional: Bool { get }

    /// Reads the request from its JSON.
    /// - Throws: `BAD_REQUEST` naming the member at fault; a retry does not help.
    init(json: JSONValue) throws(ServiceError)
}

extension WebRequest {
    /// False: without a body the request is refused, unless its own type says otherwise.
    package static var isBodyOptional: Bool { false }

    /// Reads the request from the bytes of its body.
    /// - Throws: `BAD_REQUEST` naming the byte or the member at fault; a retry does not help.
    package init(body: some Collection<UInt8>) throws(ServiceError) {
        guard body.count <= Limits.requestBodyBytesMax else {
            throw ServiceError(
                .badRequest, "the body has \(body.count) bytes, at most \(Limits.requestBodyBytesMax) in one request",
                detail: .tooLarge)
        }
        if body.isEmpty, Self.isBodyOptional {
            try self.init(json: .object([]))
            return
        }
        let json: JSONValue
        do throws(JSONError) {
            if let array = body as? [UInt8] {
                json = try JSONParser.parse(array)
            } else {
                json = try JSONParser.parse(Array(body))
            }
        } catch {
            throw ServiceError(.badRequest, "the body is not JSON: \(error)")
        }
        try self.init(json: json)
    }
}

/// Runs a decoder and turns its fault into what the client gets.
func service<Value>(_ body: () throws(FormError) -> Value) throws(ServiceError) -> Value {
    do throws(FormError) {
        return try body()
    } catch {
        throw error.serviceError
    }
}
