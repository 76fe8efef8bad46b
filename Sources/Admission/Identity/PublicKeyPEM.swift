import Crypto
package import RecordModel

/// Reads the public keys that servers register.
package enum PublicKeyPEM {
    private static let textBytesMax = 8 << 10

    /// The point of a P-256 public key in PEM (`-----BEGIN PUBLIC KEY-----`), as `openssl ec -pubout` writes it.
    ///
    /// - Returns: X9.63 without compression: 4, x, y; 65 bytes, a point of the curve.
    /// - Throws: `BAD_REQUEST`; the reason says what the text is instead, and shows nothing of it.
    package static func parse(_ text: String) throws(ServiceError) -> [UInt8] {
        guard text.utf8.count <= textBytesMax else {
            throw ServiceError(.badRequest, "the public key has \(text.utf8.count) bytes: \(textBytesMax) are the most")
        }
        guard !text.contains("PRIVATE KEY-----") else {
            throw ServiceError(
                .badRequest,
                "this is a private key, which never leaves its server: register what "
                    + "`openssl ec -in key.pem -pubout` prints; make a new key if this one went over an open network")
        }
        let pem = block(in: text)
        if let key = try? P256.Signing.PublicKey(pemRepresentation: pem) { return Array(key.x963Representation) }
        let isOtherCurve =
            (try? P384.Signing.PublicKey(pemRepresentation: pem)) != nil
            || (try? P521.Signing.PublicKey(pemRepresentation: pem)) != nil
        guard !isOtherCurve else {
            throw ServiceError(
                .badRequest,
                "the public key is of another curve: make one of P-256, "
                    + "`openssl ecparam -name prime256v1 -genkey -noout`"
            )
        }
        throw ServiceError(
            .badRequest,
            "the public key is not PEM of a P-256 key: send the whole text that `openssl ec -in key.pem -pubout` "
                + "prints, from -----BEGIN PUBLIC KEY----- on")
    }

    /// The text from `-----BEGIN` on, lines ended by a line feed alone and without spaces at their ends: keys are
    /// pasted.
    private static func block(in text: String) -> String {
        text.split(whereSeparator: \.isNewline)
            .map { line in
                String(line.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
            }
            .filter { !$0.isEmpty }
            .drop { !$0.hasPrefix("-----BEGIN ") }
            .joined(separator: "\n")
    }
}
