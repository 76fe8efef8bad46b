package import Admission

/// One attempt to tell a webhook something.
package struct WebhookRequest: Sendable {
    /// Where to.
    package var address: WebAddress
    /// The signature's among them.
    package var headers: [(name: String, value: String)]
    /// The bytes that are signed.
    package var body: [UInt8]
    /// How often this delivery failed before: another address of the host may do better.
    package var failures: UInt64

    package init(address: WebAddress, headers: [(name: String, value: String)], body: [UInt8], failures: UInt64) {
        self.address = address
        self.headers = headers
        self.body = body
        self.failures = failures
    }
}

/// Why nothing was answered, for people.
package struct WebhookFailure: Error, CustomStringConvertible {
    /// What went wrong, with the host's name.
    package var reason: String
    package init(_ reason: String) { self.reason = reason }

    /// The reason.
    package var description: String { reason }
}

/// Sends deliveries: HTTP in production, and whatever a test likes.
package protocol WebhookTransport: Sendable {
    /// Makes sure that an address can be found, and that deliveries may be sent there.
    func check(_ address: WebAddress) async throws(WebhookFailure)
    /// - Returns: the status of the answer.
    func send(_ request: WebhookRequest) async throws(WebhookFailure) -> Int
    /// Ends all connections; requests from now on fail.
    func shutdown() async
}

/// Where deliveries may go.
package struct WebhookSettings: Sendable {
    /// Also to addresses of private networks and of this machine. Administrators of containers then reach what is near
    /// the cluster.
    package var allowsPrivateAddresses = false
    /// Also without TLS.
    package var allowsPlainHTTP = false

    /// As nodes are started without options.
    package init() {}
}
