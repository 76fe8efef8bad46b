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

extension IdentityProvider: WireCodable {
    /// 1 name, 2 issuer, 3 client id, 4 sealed secret, 5 whether it allows signing up (left out when not).
    package func encode(to writer: inout WireWriter) {
        writer.field(1, name)
        writer.field(2, issuer)
        writer.field(3, clientID)
        writer.field(4, sealedSecret)
        if allowsSignUp { writer.field(5, true) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        // Into variables of its own: release builds of Swift 6.3 do not compile changes of wrapped properties here.
        var (name, issuer, clientID) = ("", "", "")
        var sealedSecret: [UInt8] = []
        var allowsSignUp = false
        while let field = try reader.nextField() {
            switch field {
            case 1: name = try reader.string()
            case 2: issuer = try reader.string()
            case 3: clientID = try reader.string()
            case 4: sealedSecret = try reader.array()
            case 5: allowsSignUp = try reader.bool()
            default: try reader.skip()
            }
        }
        self.init(
            name: name, issuer: issuer, clientID: clientID, sealedSecret: sealedSecret, allowsSignUp: allowsSignUp)
    }
}
