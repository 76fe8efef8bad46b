package import RecordModel

/// The three headers by which a server signs a request, as CloudKit Web Services has them. Well-formed; whether the
/// signature is good, `SignatureCheck` says.
package struct RequestSignature: Hashable, Sendable {
    package static let keyIDHeader = "X-Apple-CloudKit-Request-KeyID"
    package static let dateHeader = "X-Apple-CloudKit-Request-ISO8601Date"
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

    /// - Parameters: the headers' values, nil where a request lacks one.
    /// - Returns: nil where the request has none of them, and so is not signed.
    /// - Throws: `AUTHENTICATION_FAILED` where one is missing or malformed; the reason names the header.
    package init?(keyID: String?, date: String?, signature: String?) throws(ServiceError) {
        if keyID == nil, date == nil, signature == nil { return nil }
        let keyID = try Self.present(keyID, Self.keyIDHeader)
        let date = try Self.present(date, Self.dateHeader)
        let signature = try Self.present(signature, Self.signatureHeader)
        guard keyID.utf8.count == 64, let normalized = Self.lowerCaseHexadecimal(keyID) else {
            throw Self.malformed(Self.keyIDHeader, "the 64 hexadecimal digits that `zonekeeper key create` printed")
        }
        guard let time = CivilTime.milliseconds(date) else {
            throw Self.malformed(Self.dateHeader, "a time such as 2016-01-25T22:15:43Z or 2016-01-25T23:15:43+01:00")
        }
        guard let bytes = Base64.decode(signature), Self.signatureBytes.contains(bytes.count) else {
            throw Self.malformed(Self.signatureHeader, "Base64 of an ECDSA signature in DER")
        }
        self.keyID = normalized
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

    private static func malformed(_ header: String, _ expected: String) -> ServiceError {
        ServiceError(.authenticationFailed, "the header \(header) is malformed: expected \(expected)")
    }

    private static func lowerCaseHexadecimal(_ text: String) -> String? {
        var digits: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): digits.append(byte)
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digits.append(byte | 0x20)
            default: return nil
            }
        }
        return String(decoding: digits, as: UTF8.self)
    }
}
