import Admission
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
