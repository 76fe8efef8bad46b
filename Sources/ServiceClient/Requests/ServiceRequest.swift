package import NIOHTTP1
package import RecordModel

/// A request to any node of a cluster.
package struct ServiceRequest: Sendable {
    /// How.
    package var method: HTTPMethod
    /// The path, already encoded, without parameters.
    package var path: String
    /// Parameters, not encoded yet.
    package var parameters: [(name: String, value: String)] = []
    /// The body, usually JSON; empty for none.
    package var body: [UInt8] = []
    /// Whether the administrator's token is sent with it.
    package var isAdministrative: Bool
    /// The sender's credentials. They are added to each attempt, because tokens change and a signature can be used
    /// once.
    package var credentials: CallerCredentials?
    /// The generation of the user's token that it may carry; nil for any.
    var tokenGeneration: Int?
    /// The record name of the user whose request it is: it is not sent as another user. Nil for any user.
    var expectedUser: String?
    /// Sent as `Idempotency-Key`: a repeat is done once.
    package var idempotencyKey: String?
    /// Whether a repeat after an unknown outcome does no harm.
    package var isRepeatable: Bool
    /// How long the request is repeated while the cluster says to try later, in seconds.
    package var patienceSeconds = Self.patienceSecondsStandard
    /// Whether to wait also while no node of the cluster accepts a connection.
    package var waitsForConnection = false
    /// How long one attempt may take, in seconds.
    package var timeoutSeconds: Int64 = 30
    /// How long the whole call may take, in seconds, pauses and answers included; nil for no limit beside those of its
    /// attempts.
    package var limitSeconds: Double?

    /// The patience of a request that states none.
    package static let patienceSecondsStandard = 10.0

    /// - Parameter isRepeatable: nil for whether it is a GET.
    package init(
        _ method: HTTPMethod, _ path: String, parameters: [(name: String, value: String)] = [], body: [UInt8] = [],
        isAdministrative: Bool = false, isRepeatable: Bool? = nil
    ) {
        self.method = method
        self.path = path
        self.parameters = parameters
        self.body = body
        self.isAdministrative = isAdministrative
        self.isRepeatable = isRepeatable ?? (method == .GET)
    }

    var userToken: WebAuthToken? {
        if case .tokens(_, let user)? = credentials { user } else { nil }
    }

    /// The user's token at this moment.
    /// - Throws: `TokenTakenOver` if it is of another generation than the request was made for.
    func presentToken() throws(TokenTakenOver) -> String? {
        guard let user = userToken?.snapshot else { return nil }
        if let tokenGeneration, user.generation != tokenGeneration { throw TokenTakenOver() }
        return user.token
    }

    var isActing: Bool { if case .acting? = credentials { true } else { false } }

    /// The target of one attempt: the path, and the parameters with the current tokens.
    package var target: String { target(showing: userToken?.current) }

    /// The same with a given token of the user.
    func target(showing token: String?) -> String {
        var target = path
        var separator = "?"
        func add(_ name: String, _ value: String) {
            target += separator
            target += PercentCoding.encode(name)
            target += "="
            target += PercentCoding.encode(value)
            separator = "&"
        }
        for (name, value) in parameters { add(name, value) }
        if case .tokens(let api, _)? = credentials {
            add("ckAPIToken", api)
            if let token { add("ckWebAuthToken", token) }
        }
        return target
    }
}

extension HTTPMethod {
    /// GET.
    package static let get = HTTPMethod.GET
    /// POST.
    package static let post = HTTPMethod.POST
}

/// Text inside a URL.
package enum PercentCoding {
    /// Leaves letters, digits, `-`, `.`, `_` and `~`; every other byte of the UTF-8 becomes `%XX`.
    package static func encode(_ text: String) -> String {
        // Most texts need no encoding.
        guard let first = text.utf8.firstIndex(where: { !isKept($0) }) else { return text }
        var encoded = String(text[..<first])
        for byte in text.utf8[first...] {
            if isKept(byte) {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                encoded += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return encoded
    }

    private static func isKept(_ byte: UInt8) -> Bool {
        byte.isASCIILetterOrDigit || "-._~".utf8.contains(byte)
    }
}

/// Makes idempotency keys.
package enum IdempotencyKeys {
    /// A new UUID of version 7.
    package static func make(now: Int64 = WallClock.now) -> String {
        var generator = SystemRandomNumberGenerator()
        return UUIDv7(milliseconds: now, random: (generator.next(), generator.next())).text
    }
}

/// The answer of a node.
package struct ServiceResponse: Sendable {
    /// The HTTP status.
    package var status: Int
    /// The HTTP headers.
    package var headers = HTTPHeaders()
    /// The body's bytes.
    package var body: [UInt8]
    /// Whether an earlier attempt of the same request may have been done. A refusal of this attempt does not change
    /// that.
    package var followsUncertainty = false

    package init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Whether the request as a whole was done.
    package var isSuccess: Bool { (200..<300).contains(status) }

    /// The body's JSON.
    /// - Throws: if it is not JSON. The answer then did not come from a node.
    package func parsed() throws(JSONError) -> JSONValue { try JSONParser.parse(body) }

    var saysNothingWasDone: Bool {
        guard let json = try? parsed(), let detail = ErrorDetail(ofError: json) else { return false }
        return detail == .nothingDone || detail == .tooLarge
    }

    /// Whether the request may have been done although the answer is an error. It was certainly not done if the server
    /// refused the request itself, or says so.
    package var isOutcomeUnknown: Bool {
        guard !isSuccess else { return false }
        let isRefused = status < 500
        // Who is let in, and how often, is looked at before the key under which an earlier attempt may have been done.
        // Whatever else is refused was not done under that key.
        if isRefused, ![401, 403, 408, 421, 429].contains(status) { return false }
        return followsUncertainty || !isRefused && !saysNothingWasDone
    }

    /// When to come back, in seconds from now: as the error says, to the millisecond, else the header's whole seconds.
    /// Nil where the server names none.
    package var retryAfterSeconds: Double? {
        guard !isSuccess else { return nil }
        return (try? parsed())?.retryAfterSeconds
            ?? headers.first(name: "Retry-After").flatMap { UInt32($0) }.map(Double.init)
    }

    /// The token that replaces the web auth token that was sent.
    package var newWebAuthToken: String? {
        headers.first(name: "X-Apple-CloudKit-Web-Auth-Token").flatMap { $0.isEmpty ? nil : $0 }
    }
}

extension JSONValue {
    /// An object with the members that have a value.
    package static func members(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        .object(members.compactMap { key, value in value.map { Member(key, $0) } })
    }

    /// When an error says to come back, in seconds from now, never less than none: exactly by `retryAfterMilliseconds`,
    /// else by `retryAfter`, as other servers have it. Nil where it names no time.
    package var retryAfterSeconds: Double? {
        let exact = self["retryAfterMilliseconds"]?.plainNumber.map { $0 / 1_000 }
        return (exact ?? self["retryAfter"]?.plainNumber).map { max($0, 0) }
    }

    /// A number of either kind; nil for anything else.
    package var plainNumber: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }
}
