package import RecordModel
package import Wire

/// An OpenID Connect issuer whose users may sign in.
package struct IdentityProvider: Hashable, Sendable {
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
}

extension IdentityProvider: WireMessage {
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
