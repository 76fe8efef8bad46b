package import RecordModel

/// Verifies the identity tokens of OpenID Connect (JSON Web Tokens, RFC 7519, signed per RFC 7515).
package enum IdentityToken {
    struct Header: Hashable {
        var algorithm: String
        var keyID: String?
    }

    struct Parts {
        var header: Header
        var payload: [UInt8]
        var signature: [UInt8]
        /// What the signature is of: the token up to its second point.
        var signed: [UInt8]
    }

    private static let tokenBytesMax = 64 << 10

    /// What a token says of a person, once its signature and every claim are found good.
    ///
    /// - Parameter keys: of the provider; where they lack the token's key (`ProviderKeys.hasKey`), read them again
    ///   first.
    /// - Throws: `AUTHENTICATION_FAILED`; the reason says what is wrong, and shows nothing of the token but its issuer.
    package static func verify(
        _ idToken: String, keys: ProviderKeys, expecting expectation: IdentityExpectation
    ) async throws(ServiceError) -> IdentityClaims {
        let parts = try parts(of: idToken)
        guard let key = keys.key(id: parts.header.keyID, algorithm: parts.header.algorithm) else {
            throw refusal("the provider has no key for it: its algorithm is '\(parts.header.algorithm)'")
        }
        guard
            await keys.isSignature(
                parts.signature, of: parts.signed, by: key, algorithm: parts.header.algorithm)
        else { throw refusal("its signature is not the provider's") }
        return try expectation.claims(of: try object(parts.payload, "payload"))
    }

    static func parts(of token: String) throws(ServiceError) -> Parts {
        guard token.utf8.count <= tokenBytesMax else { throw refusal("it is longer than \(tokenBytesMax >> 10) KiB") }
        let texts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard texts.count == 3, let header = Base64URL.decode(texts[0]), let payload = Base64URL.decode(texts[1]),
            let signature = Base64URL.decode(texts[2])
        else { throw refusal("it is not three parts in Base64URL") }
        let json = try object(header, "header")
        guard let algorithm = json["alg"]?.string else { throw refusal("its header names no algorithm") }
        guard isAllowed(algorithm) else {
            throw refusal("its algorithm is '\(algorithm.prefix(16))': only RS, PS, ES and EdDSA are taken")
        }
        // An extension that is marked as critical must be understood (RFC 7515, 4.1.11); this build knows none.
        guard json["crit"] == nil else { throw refusal("its header has critical extensions") }
        return Parts(
            header: Header(algorithm: algorithm, keyID: json["kid"]?.string), payload: payload,
            signature: signature, signed: Array("\(texts[0]).\(texts[1])".utf8))
    }

    private static func isAllowed(_ algorithm: String) -> Bool {
        ProviderKeys.rsaAlgorithms.contains(algorithm) || ["ES256", "ES384", "ES512", "EdDSA"].contains(algorithm)
    }

    private static func object(_ bytes: [UInt8], _ part: String) throws(ServiceError) -> JSONValue {
        guard let json = try? JSONParser.parse(bytes), case .object = json else {
            throw refusal("its \(part) is not JSON of an object")
        }
        return json
    }

    static func refusal(_ reason: String) -> ServiceError {
        ServiceError(.authenticationFailed, "the identity token is refused: \(reason)")
    }
}
