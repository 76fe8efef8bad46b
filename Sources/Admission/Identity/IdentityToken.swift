import Crypto
import Directory
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
        // A critical extension must be understood (RFC 7515, 4.1.11); this build knows no extensions.
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

/// What a verified identity token says of a person.
package struct IdentityClaims: Hashable, Sendable {
    /// The issuer's URL, byte by byte as the administrator gave it.
    package var issuer: String
    /// Unique and never given to another, within the issuer.
    package var subject: String
    /// The claim `email` as sent; nil where it is missing, empty or longer than 1,024 bytes.
    package var email: String?
    /// Whether the provider vouches that the person reads mail sent there. Only then may an account be found by it.
    package var isEmailVerified: Bool
    /// The claim `given_name`, within the same bounds as `email`.
    package var givenName: String?
    /// The claim `family_name`, within the same bounds as `email`.
    package var familyName: String?
    /// The claim `name`, within the same bounds as `email`.
    package var name: String?
}

/// What an identity token must say to be believed.
package struct IdentityExpectation: Hashable, Sendable {
    /// The URL that the claim `iss` must equal, byte by byte.
    package var issuer: String
    /// `aud` must contain it; `azp` must equal it, and may be missing only where `aud` names one client.
    package var clientID: String
    /// As the authorization request had it.
    package var nonce: String
    /// Milliseconds since 1970.
    package var now: Int64

    package init(issuer: String, clientID: String, nonce: String, now: Int64) {
        self.issuer = issuer
        self.clientID = clientID
        self.nonce = nonce
        self.now = now
    }

    /// How far the provider's clock may be off, in seconds.
    static let skew = 60.0
    /// How old a token may be, in seconds: it was asked for a moment ago, in this very sign-in.
    static let ageMax = 3600.0
}

extension IdentityExpectation {
    /// The claims of a payload whose signature is good.
    /// - Throws: `AUTHENTICATION_FAILED`; the reason names the claim.
    func claims(of payload: JSONValue) throws(ServiceError) -> IdentityClaims {
        guard let own = payload["iss"]?.string, Bytewise(own) == Bytewise(issuer) else {
            throw IdentityToken.refusal("its issuer is '\(payload["iss"]?.string ?? "")', not '\(issuer)'")
        }
        try checkAudience(payload)
        try checkTimes(payload)
        guard !nonce.isEmpty, payload["nonce"]?.string == nonce else {
            throw IdentityToken.refusal("its nonce is not that of this sign-in: begin again")
        }
        guard let subject = payload["sub"]?.string, ExternalIdentity.isSubject(subject) else {
            throw IdentityToken.refusal("its subject ('sub') is not 1 to 255 ASCII characters")
        }
        return IdentityClaims(
            issuer: issuer, subject: subject, email: text("email", payload),
            isEmailVerified: Self.isTrue(payload["email_verified"]), givenName: text("given_name", payload),
            familyName: text("family_name", payload), name: text("name", payload))
    }

    private func checkAudience(_ payload: JSONValue) throws(ServiceError) {
        let audiences: [String]
        switch payload["aud"] {
        case .string(let audience): audiences = [audience]
        case .array(let values): audiences = values.compactMap(\.string)
        default: audiences = []
        }
        guard audiences.contains(clientID) else {
            throw IdentityToken.refusal("it is for another client than '\(clientID)'")
        }
        // A token for several is believed only where it says that it was issued to this client.
        let party = payload["azp"]
        guard party?.string == clientID || party == nil && audiences.count == 1 else {
            throw IdentityToken.refusal("it was issued to another party than '\(clientID)'")
        }
    }

    private func checkTimes(_ payload: JSONValue) throws(ServiceError) {
        let now = Double(now) / 1000
        guard let expires = Self.seconds(payload["exp"]) else {
            throw IdentityToken.refusal("it does not say when it expires")
        }
        guard now < expires + Self.skew else { throw IdentityToken.refusal("it has expired: sign in again") }
        guard let issued = Self.seconds(payload["iat"]) else {
            throw IdentityToken.refusal("it does not say when it was issued")
        }
        guard issued <= now + Self.skew else {
            throw IdentityToken.refusal("it was issued in the future: set the clocks of the nodes or of the provider")
        }
        guard now - issued <= Self.ageMax else { throw IdentityToken.refusal("it is too old: sign in again") }
        if let begin = payload["nbf"] {
            guard let begin = Self.seconds(begin), begin <= now + Self.skew else {
                throw IdentityToken.refusal("it is not valid yet")
            }
        }
    }

    private func text(_ name: String, _ payload: JSONValue) -> String? {
        payload[name]?.string.flatMap { $0.isEmpty || $0.utf8.count > 1024 ? nil : $0 }
    }

    private static func seconds(_ value: JSONValue?) -> Double? {
        switch value {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }

    /// Some providers write the flag as text.
    private static func isTrue(_ value: JSONValue?) -> Bool {
        value == .bool(true) || value == .string("true")
    }
}

/// The secret that ties a sign-in at an identity provider to the node that began it (RFC 7636, method S256).
package struct PKCE: Hashable, Sendable {
    /// 43 characters; kept (sealed in a ticket) until the provider sends the browser back.
    package let verifier: String

    /// - Parameter seed: 32 random bytes.
    package init(seed: [UInt8]) {
        precondition(seed.count == 32, "\(seed.count) bytes of seed")
        verifier = Base64URL.encode(seed)
    }

    /// What the provider is told at the start: Base64URL of the verifier's SHA-256.
    package var challenge: String { Self.challenge(of: verifier) }

    /// The SHA-256 of a verifier's UTF-8 bytes in Base64URL: 43 characters, no padding.
    package static func challenge(of verifier: String) -> String {
        Base64URL.encode(Array(SHA256.hash(data: Array(verifier.utf8))))
    }
}
