package import NIOHTTP1

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
    /// Whether a cluster none of whose nodes can be connected to is waited for as well.
    package var waitsForConnection = false
    /// How long one attempt may take, in seconds.
    package var timeoutSeconds: Int64 = 30
    /// How long all of it may take, in seconds, pauses and answers included; nil for as many attempts as there are, each with
    /// its own time.
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
    package static let get = HTTPMethod.GET
    package static let post = HTTPMethod.POST
    package static let delete = HTTPMethod.DELETE
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
