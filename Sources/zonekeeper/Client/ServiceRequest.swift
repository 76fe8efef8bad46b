import NIOHTTP1
import RecordModel

/// A request to any node of a cluster.
struct ServiceRequest: Sendable {
    var method: HTTPMethod
    /// The path, already encoded, without parameters.
    var path: String
    /// Parameters as they are; they are encoded on the way.
    var parameters: [(name: String, value: String)] = []
    var body: [UInt8] = []
    /// Whether the administrator's token goes with it.
    var isAdministrative: Bool
    /// What it shows of its sender; added to each attempt, as tokens change and signatures are good for one.
    var credentials: CallerCredentials?
    /// Sent as `Idempotency-Key`: a repeat is done once.
    var idempotencyKey: String?
    /// Whether a repeat after an unknown outcome does no harm.
    var isRepeatable: Bool
    /// How long the request is tried again while the cluster says to try later, in seconds.
    var patienceSeconds = Self.patienceSecondsStandard
    /// Whether a cluster none of whose nodes can be connected to is waited for as well.
    var waitsForConnection = false
    /// How long one attempt may take, in seconds.
    var timeoutSeconds: Int64 = 30

    static let patienceSecondsStandard = 10.0

    init(
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

    /// What one attempt sends in its first line: the path, and the parameters with the tokens of the moment.
    var target: String {
        var parameters = parameters
        if case .tokens(let api, let user)? = credentials {
            parameters.append((name: "ckAPIToken", value: api))
            if let user { parameters.append((name: "ckWebAuthToken", value: user.current)) }
        }
        guard !parameters.isEmpty else { return path }
        return path + "?"
            + parameters.map { PercentCoding.encode($0.name) + "=" + PercentCoding.encode($0.value) }
            .joined(separator: "&")
    }
}

extension HTTPMethod {
    static let get = HTTPMethod.GET
    static let post = HTTPMethod.POST
    static let delete = HTTPMethod.DELETE
    static let patch = HTTPMethod.PATCH
}

/// Text inside a URL.
enum PercentCoding {
    /// Leaves letters, digits, `-`, `.`, `_` and `~`; every other byte of the UTF-8 becomes `%XX`.
    static func encode(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                encoded += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return encoded
    }
}
