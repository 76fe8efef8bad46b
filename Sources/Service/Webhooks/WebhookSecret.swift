import Crypto
import RecordModel

/// What deliveries are signed with, as "Standard Webhooks" has it, so that its libraries verify them.
package struct WebhookSecret: Hashable, Sendable {
    /// 32 bytes.
    package var key: [UInt8]

    package init(key: [UInt8]) { self.key = key }

    static let bytesCount = 32

    /// As administrators see it, once.
    package var text: String { "whsec_" + Base64.encode(key) }

    /// - Parameters:
    ///   - id: the delivery's.
    ///   - timestamp: seconds since 1970.
    ///   - body: the bytes that are sent.
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
