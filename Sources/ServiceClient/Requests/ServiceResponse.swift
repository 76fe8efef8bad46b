package import NIOHTTP1
package import RecordModel

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

    /// Whether what was asked for may have been done, though this is no success. Only a refusal of the request itself is sure, and a
    /// server's trouble where the server says so.
    package var isOutcomeUnknown: Bool {
        guard !isSuccess else { return false }
        let isRefused = status < 500
        // Who is let in, and how often, is looked at before the key under which an earlier attempt may have been done. Whatever else is
        // refused was not done under that key.
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

    /// The token that takes the place of the web auth token that was sent.
    package var newWebAuthToken: String? {
        headers.first(name: "X-Apple-CloudKit-Web-Auth-Token").flatMap { $0.isEmpty ? nil : $0 }
    }
}
