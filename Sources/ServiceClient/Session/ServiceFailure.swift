package import RecordModel

/// A node's answer that the request as a whole failed.
package struct ServiceFailure: Error, Sendable, CustomStringConvertible {
    /// HTTP's.
    package var status: Int
    /// The server's code, such as `THROTTLED`; empty where the answer is none of a node.
    package var code: String
    /// What was wrong, where, and what to do.
    package var reason: String
    /// When a retry may help, in seconds from now; nil where none does.
    package var retryAfterSeconds: Double?
    /// The request's, in the logs of the nodes.
    package var uuid: String?
    /// Where to sign in, with `AUTHENTICATION_REQUIRED`.
    package var redirectURL: String?
    /// The whole body; null where it is not JSON. An atomic batch has its `records` in it.
    package var json: JSONValue

    /// What an answer says that is not a success.
    package init(_ response: ServiceResponse) {
        status = response.status
        json = (try? response.parsed()) ?? .null
        code = json["serverErrorCode"]?.string ?? ""
        reason =
            json["reason"]?.string
            ?? "HTTP status \(response.status), without a reason. Is this a Zonekeeper node?"
        retryAfterSeconds = response.retryAfterSeconds
        uuid = json["uuid"]?.string
        redirectURL = json["redirectURL"]?.string
    }

    /// Whether the session's token is not one that the server takes.
    package var isSignedOut: Bool { status == 421 || code == "AUTHENTICATION_REQUIRED" }

    package var description: String { code.isEmpty ? reason : "\(code): \(reason)" }
}
