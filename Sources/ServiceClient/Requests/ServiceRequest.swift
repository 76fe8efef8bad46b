package import NIOHTTP1
package import RecordModel

/// A request to any node of a cluster.
package struct ServiceRequest: Sendable {
    /// How.
    package var method: HTTPMethod
    /// The path, already encoded, without parameters.
    package var path: String
    /// Parameters as they are; they are encoded on the way.
    package var parameters: [(name: String, value: String)] = []
    /// JSON, as a rule; empty for none.
    package var body: [UInt8] = []
    /// Whether the administrator's token goes with it.
    package var isAdministrative: Bool
    /// What it shows of its sender; added to each attempt, as tokens change and signatures are good for one.
    package var credentials: CallerCredentials?
    /// The generation of the user's token that it may carry; nil for any.
    var tokenGeneration: Int?
    /// The record name of the user whose request it is: it is not sent as another's. Nil for anybody's.
    var expectedUser: String?
    /// Sent as `Idempotency-Key`: a repeat is done once.
    package var idempotencyKey: String?
    /// Whether a repeat after an unknown outcome does no harm.
    package var isRepeatable: Bool
    /// How long the request is tried again while the cluster says to try later, in seconds.
    package var patienceSeconds = Self.patienceSecondsStandard
    /// Whether to wait also while no node of the cluster accepts a connection.
    package var waitsForConnection = false
    /// How long one attempt may take, in seconds.
    package var timeoutSeconds: Int64 = 30
    /// How long all of it may take, in seconds, pauses and answers included; nil for as many attempts as there are,
    /// each with its own time.
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

    /// The user's token that goes with it, where one does.
    var userToken: WebAuthToken? {
        if case .tokens(_, let user)? = credentials { user } else { nil }
    }

    /// What one attempt sends in its first line: the path, and the parameters with the tokens of the moment.
    package var target: String { target(showing: userToken?.current) }

    /// The same with a certain token of the user.
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
    /// DELETE.
    package static let delete = HTTPMethod.DELETE
    /// PATCH.
    package static let patch = HTTPMethod.PATCH
}

/// Text inside a URL.
package enum PercentCoding {
    /// Leaves letters, digits, `-`, `.`, `_` and `~`; every other byte of the UTF-8 becomes `%XX`.
    package static func encode(_ text: String) -> String {
        // As a rule there is nothing to do.
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
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }
}

/// Names for requests, so that a repeat is done once.
package enum IdempotencyKeys {
    /// A new UUID of version 7.
    /// - Parameter now: milliseconds since 1970.
    package static func make(now: Int64 = WallClock.now) -> String {
        var generator = SystemRandomNumberGenerator()
        return UUIDv7(milliseconds: now, random: (generator.next(), generator.next())).text
    }
}

/// What a node answered.
package struct ServiceResponse: Sendable {
    /// HTTP's.
    package var status: Int
    /// All of them.
    package var headers = HTTPHeaders()
    /// As it came.
    package var body: [UInt8]
    /// Whether an earlier attempt of the same request may have been done. A refusal of this one knows nothing of that.
    package var followsUncertainty = false

    /// Creates a value from its parts.
    package init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Whether the request as a whole was done.
    package var isSuccess: Bool { (200..<300).contains(status) }

    /// The body's JSON.
    /// - Throws: where it is none; then this is hardly a node of a cluster.
    package func parsed() throws(JSONError) -> JSONValue { try JSONParser.parse(body) }

    /// Whether nothing was done by this attempt, in the server's own words.
    var saysNothingWasDone: Bool { (try? parsed())?["reason"]?.string?.hasPrefix("nothing was done") == true }

    /// Whether what was asked for may have been done, though this is no success. Only a refusal of the request itself
    /// is sure, and a server's trouble where the server says so.
    package var isOutcomeUnknown: Bool {
        guard !isSuccess else { return false }
        let isRefused = status < 500
        // Who is let in, and how often, is looked at before the key under which an earlier attempt may have been done.
        // Whatever else is refused was not done under that key.
        if isRefused, ![401, 403, 408, 421, 429].contains(status) { return false }
        return followsUncertainty || !isRefused && !saysNothingWasDone
    }

    /// When to come back, in seconds from now: the error's `retryAfter`, which may be fractional, else the header's
    /// whole seconds. Nil where the server names none.
    package var retryAfterSeconds: Double? {
        guard !isSuccess else { return nil }
        switch (try? JSONParser.parse(body))?["retryAfter"] {
        case .integer(let seconds)?: return max(Double(seconds), 0)
        case .number(let seconds)?: return max(seconds, 0)
        default: return headers.first(name: "Retry-After").flatMap { UInt32($0) }.map(Double.init)
        }
    }

    /// The token that takes the place of the web auth token that was sent.
    package var newWebAuthToken: String? {
        headers.first(name: "X-Apple-CloudKit-Web-Auth-Token").flatMap { $0.isEmpty ? nil : $0 }
    }
}

extension JSONValue {
    /// An object of the members that have a value.
    package static func members(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        .object(members.compactMap { key, value in value.map { Member(key, $0) } })
    }
}
