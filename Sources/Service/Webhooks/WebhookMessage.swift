package import Admission
import Cluster
import Crypto
import Directory
import RecordModel

/// What a webhook is sent at once.
struct WebhookMessage {
    let id: String
    let webhook: Webhook
    let notifications: [JSONValue]
    /// What else it says: `lost` or `test`.
    let flag: String?

    private var body: [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("id", id)
            writer.member("container", webhook.container)
            writer.member("environment", webhook.environment.rawValue)
            writer.member("webhook", webhook.name)
            if let flag { writer.member(flag, true) }
            writer.key("notifications")
            writer.array { writer in for each in notifications { writer.value(each) } }
        }
        return writer.bytes
    }

    /// Sends it once.
    /// - Returns: what came of it; without a reason where it was taken.
    /// - Throws: where this node cannot send it, whatever the receiver would say.
    func send(
        _ transport: any WebhookTransport, failures: UInt64 = 0, in service: RecordService
    ) async throws(RequestFailure) -> WebhookProgress.Attempt {
        let address = try service.webhooks.settings.address(of: webhook.url)
        let secrets = try webhook.secrets(in: service)
        let (now, body, begin) = (try service.trustedNow(), body, service.uptime)
        let request = WebhookRequest(
            address: address,
            headers: WebhookSecret.headers(id: id, timestamp: now / 1_000, body: body, secrets: secrets), body: body,
            failures: failures)
        var attempt = WebhookProgress.Attempt(
            id: id, count: UInt64(notifications.count), time: now, milliseconds: 0, status: 0, reason: "")
        do throws(WebhookFailure) {
            let status = try await transport.send(request)
            attempt.status = UInt64(clamping: status)
            if !(200..<300).contains(status) {
                attempt.reason = "HTTP \(status)" + ((300..<400).contains(status) ? ": redirects are not followed" : "")
            }
        } catch {
            attempt.reason = error.reason.isEmpty ? "no answer" : error.reason
        }
        attempt.milliseconds = (service.uptime - begin) / 1_000_000
        return attempt
    }
}

extension Webhook {
    private var purpose: String { "webhook/\(container)/\(id)" }

    /// - Throws: `INTERNAL_ERROR` on a node without the cluster's encryption key.
    func sealed(_ secret: WebhookSecret, in service: RecordService) throws(RequestFailure) -> [UInt8] {
        try relay(service.node.vault.sealSecret(secret.key, purpose: purpose))
    }

    /// The newest first.
    func secrets(in service: RecordService) throws(RequestFailure) -> [WebhookSecret] {
        try sealedSecrets.map { sealed throws(RequestFailure) in
            WebhookSecret(key: try relay(service.node.vault.openSecret(sealed, purpose: purpose)))
        }
    }
}

/// What deliveries are signed with, as "Standard Webhooks" has it, so that its libraries verify them.
package struct WebhookSecret: Hashable, Sendable {
    /// 32 bytes.
    package var key: [UInt8]

    package init(key: [UInt8]) { self.key = key }

    static let bytesCount = 32

    /// As administrators see it, once.
    package var text: String { "whsec_" + Base64.encode(key) }

    /// - Parameter timestamp: seconds since 1970.
    package func signature(id: String, timestamp: Int64, body: [UInt8]) -> String {
        var hmac = HMAC<SHA256>(key: SymmetricKey(data: key))
        hmac.update(data: Array("\(id).\(timestamp).".utf8))
        hmac.update(data: body)
        return "v1,\(Base64.encode(Array(hmac.finalize())))"
    }

    /// The headers of a delivery, signed with each of the secrets.
    package static func headers(
        id: String, timestamp: Int64, body: [UInt8], secrets: [WebhookSecret]
    ) -> [(name: String, value: String)] {
        let signatures = secrets.map { $0.signature(id: id, timestamp: timestamp, body: body) }
        return [
            ("content-type", "application/json"), ("user-agent", "zonekeeper"), ("webhook-id", id),
            ("webhook-timestamp", "\(timestamp)"), ("webhook-signature", signatures.joined(separator: " ")),
        ]
    }
}

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

    package init() {}
}

extension WebhookSettings {
    /// Where a webhook's URL leads.
    /// - Throws: `BAD_REQUEST` for a text that deliveries may not be sent to, with why.
    package func address(of url: String) throws(RequestFailure) -> WebAddress {
        guard let address = WebAddress(url), !address.rest.contains("#") else {
            throw .badRequest(
                "url: a URL such as https://hooks.example.com/changes is expected, in ASCII and without a fragment")
        }
        guard address.isSecure || allowsPlainHTTP else {
            throw .badRequest(
                "url: https is expected; nodes that are started with --webhooks-allow-http also take http")
        }
        return address
    }

    /// Whether deliveries may be sent to an address of IPv4 or IPv6: 4 or 16 bytes.
    package func allows(_ bytes: [UInt8]) -> Bool { allowsPrivateAddresses || Self.isPublic(bytes) }

    /// What is said of an address that deliveries may not be sent to.
    package static func refusal(_ address: String) -> String {
        "\(address) is no address of the public Internet; nodes that are started with "
            + "--webhooks-allow-private-addresses also send there"
    }

    /// Networks of IPv4 that are not the public Internet (IANA's registry of special addresses), with how many bits
    /// they have.
    private static let special: [(network: [UInt8], bits: Int)] = [
        ([0, 0, 0, 0], 8), ([10, 0, 0, 0], 8), ([100, 64, 0, 0], 10), ([127, 0, 0, 0], 8), ([169, 254, 0, 0], 16),
        ([172, 16, 0, 0], 12), ([192, 0, 0, 0], 24), ([192, 0, 2, 0], 24), ([192, 31, 196, 0], 24),
        ([192, 52, 193, 0], 24), ([192, 88, 99, 0], 24), ([192, 168, 0, 0], 16), ([192, 175, 48, 0], 24),
        ([198, 18, 0, 0], 15), ([198, 51, 100, 0], 24), ([203, 0, 113, 0], 24), ([224, 0, 0, 0], 3),
    ]

    /// The same of IPv6, within what is given out at all: 2000::/3. Addresses with one of IPv4 in them count as
    /// special.
    private static let special6: [(network: [UInt8], bits: Int)] = [
        ([0x20, 0x01, 0, 0], 23), ([0x20, 0x01, 0x0D, 0xB8], 32), ([0x20, 0x02], 16), ([0x3F, 0xFF, 0], 20),
    ]

    private static func isPublic(_ bytes: [UInt8]) -> Bool {
        if bytes.count == 4 { return !special.contains { isIn($0.network, $0.bits, bytes) } }
        guard bytes.count == 16 else { return false }
        // ::ffff:0:0/96 is IPv4 in another form.
        if bytes.prefix(10).allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
            return isPublic(Array(bytes[12...]))
        }
        return isIn([0x20], 3, bytes) && !special6.contains { isIn($0.network, $0.bits, bytes) }
    }

    private static func isIn(_ network: [UInt8], _ bits: Int, _ bytes: [UInt8]) -> Bool {
        for (place, byte) in network.enumerated() {
            let left = min(max(bits - place * 8, 0), 8)
            let mask = left == 0 ? 0 : UInt8(truncatingIfNeeded: 0xFF << (8 - left))
            if byte & mask != bytes[place] & mask { return false }
        }
        return true
    }
}
