import Directory
import RecordModel

/// What a verified identity token says of a person.
package struct IdentityClaims: Hashable, Sendable {
    package var issuer: String
    /// Unique and never given to another, within the issuer.
    package var subject: String
    package var email: String?
    /// Whether the provider vouches that the person reads mail sent there. Only then may an account be found by it.
    package var isEmailVerified: Bool
    package var givenName: String?
    package var familyName: String?
    package var name: String?
}

/// What an identity token must say to be believed.
package struct IdentityExpectation: Hashable, Sendable {
    package var issuer: String
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
