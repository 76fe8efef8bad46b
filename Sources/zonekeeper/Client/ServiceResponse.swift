import NIOHTTP1
import RecordModel

/// What a node answered.
struct ServiceResponse: Sendable {
    var status: Int
    var headers = HTTPHeaders()
    var body: [UInt8]

    /// The body's JSON.
    func json() throws(CommandFailure) -> JSONValue {
        do throws(JSONError) {
            return try JSONParser.parse(body)
        } catch {
            throw CommandFailure("the answer (HTTP status \(status)) is not JSON: \(error). Is this a Zonekeeper node?")
        }
    }

    /// When to come back, in seconds from now: the error's `retryAfter`, which may be fractional, else the header's whole
    /// seconds. Nil where the server names none.
    var retryAfterSeconds: Double? {
        guard !(200..<300).contains(status) else { return nil }
        switch (try? JSONParser.parse(body))?["retryAfter"] {
        case .integer(let seconds)?: return max(Double(seconds), 0)
        case .number(let seconds)?: return max(seconds, 0)
        default: return headers.first(name: "Retry-After").flatMap { UInt32($0) }.map(Double.init)
        }
    }

    /// The token that takes the place of the web auth token that was sent.
    var newWebAuthToken: String? {
        headers.first(name: "X-Apple-CloudKit-Web-Auth-Token").flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The response itself, unless it says that the request failed.
    /// - Throws: `CommandFailure` with the error's code and reason, and when to come back.
    func checked() throws(CommandFailure) -> ServiceResponse {
        if (200..<300).contains(status) { return self }
        // A refusal of the request itself is sure; a server's trouble only where the server says so.
        guard let json = try? JSONParser.parse(body), let code = json["serverErrorCode"]?.string else {
            throw CommandFailure(
                "HTTP status \(status), without a reason. Is this a Zonekeeper node?", isOutcomeUnknown: status >= 500)
        }
        let isSure = status < 500 || json["reason"]?.string?.hasPrefix("nothing was done") == true
        let later = retryAfterSeconds.map { " (try again in \(Units.seconds($0)))" } ?? ""
        let signIn = json["redirectURL"]?.string.map { "; sign in with `zonekeeper user sign-in`, or at \($0)" } ?? ""
        throw CommandFailure(
            "\(code): \(json["reason"]?.string ?? "no reason given")\(later)\(signIn)", isOutcomeUnknown: !isSure)
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
