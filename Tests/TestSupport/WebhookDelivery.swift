import Crypto
import Foundation
import NIOHTTP1
package import RecordModel
package import Service

extension ServiceSettings {
    /// Those of a node that sends webhooks to receivers on this machine.
    package static var reachingThisMachine: ServiceSettings {
        var settings = ServiceSettings()
        settings.webhooks.allowsPrivateAddresses = true
        settings.webhooks.allowsPlainHTTP = true
        return settings
    }
}

/// What a receiver of webhooks got, verified as docs/webhooks.md says.
package struct WebhookDelivery: Sendable {
    /// By which repeats are known.
    package var id: String
    /// What was sent.
    package var json: JSONValue

    /// The numbers of its notifications.
    package var numbers: [Int64] {
        notifications.compactMap { if case .integer(let number)? = $0["seq"] { number } else { nil } }
    }

    /// What it tells of.
    package var notifications: [JSONValue] { json["notifications"]?.array ?? [] }

    /// Nil where none of the signatures is the secret's.
    /// - Parameter secret: as it was shown when the webhook was made.
    package init?(_ request: ScriptedRequest, secret: String) {
        guard let id = request.headers.first(name: "webhook-id"),
            let timestamp = request.headers.first(name: "webhook-timestamp"),
            let header = request.headers.first(name: "webhook-signature"),
            let key = Data(base64Encoded: String(secret.dropFirst("whsec_".count))),
            let json = try? JSONParser.parse(request.body), json["id"]?.string == id
        else { return nil }
        let signed = Array("\(id).\(timestamp).".utf8) + request.body
        let code = Data(HMAC<SHA256>.authenticationCode(for: signed, using: SymmetricKey(data: key)))
        guard header.split(separator: " ").contains("v1,\(code.base64EncodedString())") else { return nil }
        self.id = id
        self.json = json
    }
}
