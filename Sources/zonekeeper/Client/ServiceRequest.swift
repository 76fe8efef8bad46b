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
    /// Sent as `Idempotency-Key`: a repeat is done once.
    var idempotencyKey: String?
    /// Whether a repeat after an unknown outcome does no harm.
    var isRepeatable: Bool
    /// How long the request is tried again while the cluster says to try later, in seconds.
    var patienceSeconds = 10.0
    /// Whether a cluster none of whose nodes can be connected to is waited for as well.
    var waitsForConnection = false
    /// How long one attempt may take, in seconds.
    var timeoutSeconds: Int64 = 30

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

    /// The path and the parameters.
    var target: String {
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

/// What a node answered.
struct ServiceResponse: Sendable {
    var status: Int
    var body: [UInt8]

    /// The body's JSON.
    func json() throws(CommandFailure) -> JSONValue {
        do throws(JSONError) {
            return try JSONParser.parse(body)
        } catch {
            throw CommandFailure("the answer (HTTP status \(status)) is not JSON: \(error). Is this a Zonekeeper node?")
        }
    }

    /// The response itself, unless it says that the request failed.
    /// - Throws: `CommandFailure` with the error's code and reason.
    func checked() throws(CommandFailure) -> ServiceResponse {
        if (200..<300).contains(status) { return self }
        guard let json = try? JSONParser.parse(body), let code = json["serverErrorCode"]?.string else {
            throw CommandFailure("HTTP status \(status), without a reason. Is this a Zonekeeper node?")
        }
        throw CommandFailure("\(code): \(json["reason"]?.string ?? "no reason given")")
    }

    /// The failures of single records or zones inside an answer, as `CODE: name: reason`.
    static func failures(in members: [JSONValue]) -> [String] {
        members.compactMap { member in
            guard let code = member["serverErrorCode"]?.string else { return nil }
            let name = member["recordName"]?.string.map { "\($0): " } ?? ""
            return "\(code): \(name)\(member["reason"]?.string ?? "")"
        }
    }
}
