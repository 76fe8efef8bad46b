import Crypto
package import Directory
import Foundation
package import RecordModel

/// The three headers by which a server signs a request, as CloudKit Web Services has them. Well-formed; whether the
/// signature is good, `SignatureCheck` says.
package struct RequestSignature: Hashable, Sendable {
    /// The header of `keyID`: 64 hexadecimal digits, capitals or small letters.
    package static let keyIDHeader = "X-Apple-CloudKit-Request-KeyID"
    /// The header of `date`: ISO 8601 with `Z` or an offset from UTC.
    package static let dateHeader = "X-Apple-CloudKit-Request-ISO8601Date"
    /// The header of `signature`, in Base64.
    package static let signatureHeader = "X-Apple-CloudKit-Request-SignatureV1"

    /// Of the key that signed: 64 hexadecimal digits, small letters.
    package let keyID: String
    /// As sent, for it is part of what was signed.
    package let date: String
    /// The same in milliseconds since 1970.
    package let time: Int64
    /// DER of an ECDSA signature.
    package let signature: [UInt8]

    /// The longest that DER makes of a P-256 signature.
    private static let signatureBytes = 8...72

    /// - Parameters: the headers' values, if present.
    /// - Returns: nil for an unsigned request, without any of the headers.
    /// - Throws: `AUTHENTICATION_FAILED` where one is missing or malformed; the reason names the header.
    package init?(keyID: String?, date: String?, signature: String?) throws(ServiceError) {
        if keyID == nil, date == nil, signature == nil { return nil }
        let keyID = try Self.present(keyID, Self.keyIDHeader)
        let date = try Self.present(date, Self.dateHeader)
        let signature = try Self.present(signature, Self.signatureHeader)
        guard keyID.utf8.count == 64, keyID.utf8.allSatisfy(Self.isHexadecimal) else {
            throw Self.malformed(Self.keyIDHeader, "the 64 hexadecimal digits that `zonekeeper key create` printed")
        }
        guard let time = CivilTime.milliseconds(date) else {
            throw Self.malformed(Self.dateHeader, "a time such as 2016-01-25T22:15:43Z or 2016-01-25T23:15:43+01:00")
        }
        guard let bytes = Base64.decode(signature), Self.signatureBytes.contains(bytes.count) else {
            throw Self.malformed(Self.signatureHeader, "Base64 of an ECDSA signature in DER")
        }
        self.keyID = keyID.lowercased()
        self.date = date
        self.time = time
        self.signature = bytes
    }

    private static func present(_ value: String?, _ header: String) throws(ServiceError) -> String {
        guard let value, !value.isEmpty else {
            throw ServiceError(
                .authenticationFailed,
                "the request is signed by half: the header \(header) is missing; send all three of "
                    + "\(keyIDHeader), \(dateHeader) and \(signatureHeader), or none")
        }
        return value
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        let character = Character(UnicodeScalar(byte))
        return character.isASCII && character.isHexDigit
    }

    private static func malformed(_ header: String, _ expected: String) -> ServiceError {
        ServiceError(.authenticationFailed, "the header \(header) is malformed: expected \(expected)")
    }
}

/// Checks the signatures of server-to-server keys: ECDSA over P-256 with SHA-256 of
/// `{date}:{base64(SHA-256(body))}:{subpath}`.
///
/// Clients differ in what they take for the subpath, so it is tried as the raw request target (path and query), as the
/// path alone, and as the percent-decoded path. Where a client signs without its query, the query is not protected;
/// that is the client's choice, as it is with CloudKit.
package enum SignatureCheck {
    /// How far a signature's date may be from now, either way, in milliseconds.
    package static let windowMilliseconds: Int64 = 600_000

    /// Returns where the key signed this request, lately.
    ///
    /// Does not see whether the request is a repetition: `ReplayGuard` does, and is asked afterwards.
    ///
    /// - Parameters:
    ///   - key: the one that `signature.keyID` names.
    ///   - body: the bytes exactly as received; empty where there are none.
    ///   - target: the request target as received, beginning with `/database/`.
    ///   - now: milliseconds since 1970.
    /// - Throws: `AUTHENTICATION_FAILED`; the reason says whether the date or the signature is at fault.
    package static func verify(
        _ signature: RequestSignature, key: ServerKey, body: [UInt8], target: String, now: Int64,
        windowMilliseconds: Int64 = Self.windowMilliseconds
    ) throws(ServiceError) {
        guard signature.keyID == key.id else {
            throw ServiceError(.authenticationFailed, "the request is signed by another key than the one it names")
        }
        try checkDate(signature, now: now, windowMilliseconds: windowMilliseconds)
        guard let publicKey = try? P256.Signing.PublicKey(x963Representation: key.publicKey) else {
            throw ServiceError(
                .internalError, "the public key stored for key \(key.id) is damaged: revoke it and register it again")
        }
        guard let ecdsa = try? P256.Signing.ECDSASignature(derRepresentation: signature.signature) else {
            throw ServiceError(
                .authenticationFailed,
                "the header \(RequestSignature.signatureHeader) is malformed: it is not DER of an ECDSA "
                    + "signature of P-256"
            )
        }
        let start = "\(signature.date):\(Base64.encode(Array(SHA256.hash(data: body)))):"
        for subpath in subpaths(of: target)
        where publicKey.isValidSignature(ecdsa, for: SHA256.hash(data: Array((start + subpath).utf8))) {
            return
        }
        throw ServiceError(
            .authenticationFailed,
            "the signature does not fit the request: sign '{date}:{base64 of the SHA-256 of the body}:{path and query}'"
                + " with the private key of \(key.id), ECDSA with SHA-256, and send the body unchanged")
    }

    private static func checkDate(
        _ signature: RequestSignature, now: Int64, windowMilliseconds: Int64
    ) throws(ServiceError) {
        let age = now.subtractingReportingOverflow(signature.time)
        guard age.overflow || age.partialValue.magnitude > windowMilliseconds.magnitude else { return }
        let place = now > signature.time ? "past" : "future"
        throw ServiceError(
            .authenticationFailed,
            "the signature's date \(signature.date) is more than \(windowMilliseconds / 1000) s in the \(place): "
                + "sign each request when it is sent, and set the client's clock")
    }

    /// What the client may have signed, without repetition.
    static func subpaths(of target: String) -> [String] {
        var subpaths = [target]
        let path = String(target.prefix { $0 != "?" })
        if path != target { subpaths.append(path) }
        if let decoded = path.removingPercentEncoding, decoded != path { subpaths.append(decoded) }
        return subpaths
    }
}

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
