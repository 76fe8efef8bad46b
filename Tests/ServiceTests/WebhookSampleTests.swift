import Crypto
import Foundation
import Testing

/// The Swift of `docs/webhooks.md`, which the document has as it is here.
@Suite("Webhooks: the sample of the documentation")
struct WebhookSampleTests {
    private static let document = URL(filePath: #filePath).appending(path: "../../../docs/webhooks.md").standardized

    @Test("the document has the code that is tested here")
    func same() throws {
        let text = try String(contentsOf: Self.document, encoding: .utf8)
        let own = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
        let block = try #require(text.split(separator: "```swift\n").dropFirst().first?.split(separator: "```").first)
        let imports = "import Crypto\nimport Foundation\n\n"
        #expect(block.hasPrefix(imports))
        let code = try #require(own.split(separator: "// The sample.\n\n").last)
        #expect(String(block.dropFirst(imports.count)) == String(code))
    }

    @Test("it takes what was signed with the secret in the last five minutes, and nothing else")
    func genuine() {
        let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
        let signature = "v1,nGFLkbGWUiKefo1BajYPwY+DfKclkwRc0gwG9bzTOkA="
        let now = Date(timeIntervalSince1970: 1_790_000_000)
        func check(
            _ body: String = #"{"id":"a-1"}"#, id: String = "a-1", timestamp: String = "1790000000",
            signatures: String? = nil, secret: String = secret, at date: Date = now
        ) -> Bool {
            isGenuine(
                body: Data(body.utf8), id: id, timestamp: timestamp, signatures: signatures ?? signature,
                secret: secret, now: date)
        }
        #expect(check() && check(signatures: "v1,AAAA \(signature)") && check(at: now + 299) && check(at: now - 299))
        #expect(!check(at: now + 300) && !check(at: now - 300))
        #expect(!check(#"{"id":"a-2"}"#) && !check(id: "a-2") && !check(timestamp: "1790000001"))
        #expect(!check(timestamp: "soon") && !check(secret: "whsec_?") && !check(secret: "whsec_AAEC"))
        #expect(!check(signatures: "") && !check(signatures: "v1,?"))
        #expect(!check(signatures: String(signature.dropFirst(3))))
    }
}

// The sample.

/// - Parameter secret: as `webhook create` printed it, `whsec_...`.
func isGenuine(
    body: Data, id: String, timestamp: String, signatures: String, secret: String, now: Date = Date()
) -> Bool {
    guard let key = Data(base64Encoded: String(secret.dropFirst("whsec_".count))),
        let seconds = Double(timestamp), abs(now.timeIntervalSince1970 - seconds) < 300
    else { return false }
    let signed = Data("\(id).\(timestamp).".utf8) + body
    return signatures.split(separator: " ").contains { signature in
        guard signature.hasPrefix("v1,"), let code = Data(base64Encoded: String(signature.dropFirst(3))) else {
            return false
        }
        return HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signed, using: SymmetricKey(data: key))
    }
}
