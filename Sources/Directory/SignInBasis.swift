import Crypto
package import Wire

/// What a session that begins by signing in rests on, as it was when it was looked at. By the time the session begins,
/// a password may have been changed, an identity taken away, or a provider or an API token revoked: then it does not
/// begin.
package struct SignInBasis: Hashable, Sendable {
    /// How somebody showed who they are.
    package enum Proof: Hashable, Sendable {
        /// The password that was right, by its `PasswordHash.fingerprint`.
        case password(fingerprint: [UInt8])
        /// What an identity provider said.
        case identity(ExternalIdentity, provider: String)
    }

    package var proof: Proof
    /// The API token by which the user came: one of the session's container.
    package var apiTokenID: String

    package init(_ proof: Proof, apiTokenID: String) {
        self.proof = proof
        self.apiTokenID = apiTokenID
    }
}

extension PasswordHash {
    /// SHA-256 of the binary form: says whether a password is still the same one, salt included.
    package var fingerprint: [UInt8] { Array(SHA256.hash(data: encoded())) }
}

extension SignInBasis: WireCodable {
    /// 1 password's fingerprint or 2 identity with 3 provider's name; 4 API token's id.
    package func encode(to writer: inout WireWriter) {
        switch proof {
        case .password(let fingerprint): writer.field(1, fingerprint)
        case .identity(let identity, let provider):
            writer.field(2) { identity.encode(to: &$0) }
            writer.field(3, provider)
        }
        writer.field(4, apiTokenID)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var fingerprint: [UInt8]?
        var identity: ExternalIdentity?
        var provider = ""
        var apiTokenID = ""
        while let field = try reader.nextField() {
            switch field {
            case 1: fingerprint = try reader.array()
            case 2: identity = try reader.message()
            case 3: provider = try reader.string()
            case 4: apiTokenID = try reader.string()
            default: try reader.skip()
            }
        }
        if let fingerprint {
            self.init(.password(fingerprint: fingerprint), apiTokenID: apiTokenID)
        } else if let identity {
            self.init(.identity(identity, provider: provider), apiTokenID: apiTokenID)
        } else {
            throw .missingField(1)
        }
    }
}
