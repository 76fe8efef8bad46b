import Crypto
package import Directory
package import RecordModel

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
        if let decoded = percentDecoded(path), decoded != path { subpaths.append(decoded) }
        return subpaths
    }

    /// nil where a percent sign is not followed by two hexadecimal digits, or the bytes are not UTF-8.
    private static func percentDecoded(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            } else {
                bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
