import Crypto
package import RecordModel
package import Wire

/// An OpenID Connect issuer whose users may sign in.
package struct IdentityProvider: Hashable, Sendable, WireMessage {
    /// What administrators and the sign-in page call it; unique.
    @Bytewise package var name: String
    /// The issuer's URL; its discovery document lies under it.
    @Bytewise package var issuer: String
    /// What this cluster is called at the issuer.
    package var clientID: String
    /// The client's secret, sealed by `FieldVault.sealSecret`; empty for a public client.
    package var sealedSecret: [UInt8]
    /// Whether a user who has no account gets one at the first sign-in.
    package var allowsSignUp: Bool

    package init(name: String, issuer: String, clientID: String, sealedSecret: [UInt8], allowsSignUp: Bool) {
        self.name = name
        self.issuer = issuer
        self.clientID = clientID
        self.sealedSecret = sealedSecret
        self.allowsSignUp = allowsSignUp
    }

    package static var blank: Self {
        IdentityProvider(name: "", issuer: "", clientID: "", sealedSecret: [], allowsSignUp: false)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.field(2, &issuer)
        try wire.field(3, &clientID)
        try wire.field(4, &sealedSecret)
        try wire.field(5, &allowsSignUp, unless: false)
    }
}

/// What a session that begins by signing in rests on, as it was when it was looked at. By the time the session begins,
/// a password may have been changed, an identity taken away, or a provider or an API token revoked: then it does not
/// begin.
package struct SignInBasis: Hashable, Sendable, WireCodable {
    /// How somebody showed who they are.
    package enum Proof: Hashable, Sendable {
        /// The password that was right, by its `PasswordHash.fingerprint`.
        case password(fingerprint: [UInt8])
        /// What an identity provider said.
        case identity(ExternalIdentity, provider: String)
    }

    /// What was shown; it is compared with the account and the provider when the session's command is applied.
    package var proof: Proof
    /// The API token by which the user came: one of the session's container.
    package var apiTokenID: String

    package init(_ proof: Proof, apiTokenID: String) {
        self.proof = proof
        self.apiTokenID = apiTokenID
    }

    package func encode(to writer: inout WireWriter) {
        var parts = Parts(apiTokenID: apiTokenID)
        switch proof {
        case .password(let fingerprint): parts.fingerprint = fingerprint
        case .identity(let identity, let provider): (parts.identity, parts.provider) = (identity, provider)
        }
        parts.encode(to: &writer)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        let parts = try Parts(from: &reader)
        if let fingerprint = parts.fingerprint {
            self.init(.password(fingerprint: fingerprint), apiTokenID: parts.apiTokenID)
        } else if let identity = parts.identity {
            self.init(.identity(identity, provider: parts.provider ?? ""), apiTokenID: parts.apiTokenID)
        } else {
            throw .missingField(1)
        }
    }

    /// The binary form.
    private struct Parts: WireMessage {
        var fingerprint: [UInt8]?
        var identity: ExternalIdentity?
        var provider: String?
        var apiTokenID: String

        static var blank: Self { Parts(apiTokenID: "") }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &fingerprint)
            try wire.field(2, &identity)
            try wire.field(3, &provider)
            try wire.field(4, &apiTokenID)
        }
    }
}

extension PasswordHash {
    /// SHA-256 of the binary form: says whether a password is still the same one, salt included.
    package var fingerprint: [UInt8] { Array(SHA256.hash(data: encoded())) }
}
