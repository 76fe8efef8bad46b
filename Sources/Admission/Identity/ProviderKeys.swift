import JWTKit
package import RecordModel

/// The keys by which an identity provider signs (a JSON Web Key Set, RFC 7517).
///
/// Keys that do not serve are left out, as the standard has it: those for encryption, of unknown kinds, symmetric ones,
/// and what would make a verifier accept less than 128 bits of security or so (RSA below 2048 bits).
package struct ProviderKeys: Sendable {
    /// One key, and what it may be used for.
    struct Key: Sendable {
        var id: String?
        /// What the set says it is for; nil where it leaves that open.
        var algorithm: String?
        /// What its kind can be used for.
        var algorithms: [String]
        /// Without an algorithm of its own: it is set for each token, and held against the two above before.
        var key: JWK
    }

    /// The only accepted algorithms, whatever a token's header says; neither `none` nor HMAC is among them.
    static let rsaAlgorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
    private static let keysMax = 64
    /// 8,192 bits in Base64URL: larger keys cost more time than a sign-in is worth.
    private static let modulusTextMax = 1368

    let keys: [Key]

    /// Reads the set found at a provider's `jwks_uri`.
    /// - Throws: `INTERNAL_ERROR` where it is no key set, or none of its keys serves; a retry helps once the provider
    ///   mended it.
    package init(parsing bytes: [UInt8], issuer: String) throws(ServiceError) {
        let json = try ProviderDocument.parse(bytes, what: "key set", issuer: issuer)
        guard let entries = json["keys"]?.array else {
            throw ProviderDocument.unusable(issuer, "its key set has no array 'keys'")
        }
        keys = entries.prefix(Self.keysMax).compactMap(Self.key)
        guard !keys.isEmpty else {
            throw ProviderDocument.unusable(
                issuer, "its key set has no key that signs by RSA (2048 bits at least), ECDSA or Ed25519")
        }
    }

    private static func key(_ json: JSONValue) -> Key? {
        if let use = json["use"]?.string, use != "sig" { return nil }
        if let uses = json["key_ops"]?.array, !uses.contains(.string("verify")) { return nil }
        let kind: (algorithms: [String], key: JWK)? =
            switch json["kty"]?.string {
            case "RSA": rsaKey(json)
            case "EC": curveKey(json)
            case "OKP": edwardsKey(json)
            default: nil
            }
        guard let kind else { return nil }
        let algorithm = json["alg"]?.string
        if let algorithm, !kind.algorithms.contains(algorithm) { return nil }
        return Key(
            id: json["kid"]?.string, algorithm: algorithm, algorithms: kind.algorithms, key: kind.key)
    }

    private static func rsaKey(_ json: JSONValue) -> (algorithms: [String], key: JWK)? {
        guard let modulus = json["n"]?.string, let exponent = json["e"]?.string,
            modulus.utf8.count <= modulusTextMax, exponent.utf8.count <= 8,
            (try? Insecure.RSA.PublicKey(modulus: modulus, exponent: exponent)) != nil
        else { return nil }
        return (rsaAlgorithms, .rsa(nil, identifier: nil, modulus: modulus, exponent: exponent))
    }

    private static func curveKey(_ json: JSONValue) -> (algorithms: [String], key: JWK)? {
        guard let x = json["x"]?.string, let y = json["y"]?.string, let name = json["crv"]?.string
        else { return nil }
        switch name {
        case "P-256":
            guard (try? ES256PublicKey(parameters: (x, y))) != nil else { return nil }
            return (["ES256"], .ecdsa(nil, identifier: nil, x: x, y: y, curve: .p256))
        case "P-384":
            guard (try? ES384PublicKey(parameters: (x, y))) != nil else { return nil }
            return (["ES384"], .ecdsa(nil, identifier: nil, x: x, y: y, curve: .p384))
        case "P-521":
            guard (try? ES512PublicKey(parameters: (x, y))) != nil else { return nil }
            return (["ES512"], .ecdsa(nil, identifier: nil, x: x, y: y, curve: .p521))
        default: return nil
        }
    }

    private static func edwardsKey(_ json: JSONValue) -> (algorithms: [String], key: JWK)? {
        guard json["crv"]?.string == "Ed25519", let x = json["x"]?.string,
            (try? EdDSA.PublicKey(x: x, curve: .ed25519)) != nil
        else { return nil }
        return (["EdDSA"], .octetKeyPair(.eddsa, identifier: nil, x: x, y: nil, curve: .ed25519))
    }

    /// Whether the set has the key that an identity token names. Where not, the provider may have changed its keys:
    /// read the set again, once, before `IdentityToken.verify` is believed. False for what is no token, and for a token
    /// that names none, as it may where the provider has one key (OpenID Connect Core, 10.1): that may be another one
    /// by now.
    package func hasKey(for idToken: String) -> Bool {
        guard let header = try? IdentityToken.parts(of: idToken).header else { return false }
        return header.keyID != nil && key(id: header.keyID, algorithm: header.algorithm) != nil
    }

    /// The key for a token's header; without an id, the only key for the algorithm.
    func key(id: String?, algorithm: String) -> Key? {
        let fitting = keys.filter {
            $0.algorithms.contains(algorithm) && ($0.algorithm == nil || $0.algorithm == algorithm)
        }
        guard let id else { return fitting.count == 1 ? fitting[0] : nil }
        return fitting.first { $0.id == id }
    }

    /// Whether a key made this signature.
    ///
    /// The collection lives for this one question: JWTKit binds a key without an algorithm to that of the first token
    /// that comes, forged or not.
    func isSignature(
        _ signature: [UInt8], of signed: [UInt8], by key: Key, algorithm: String
    ) async -> Bool {
        var key = key.key
        key.keyIdentifier = "key"
        key.algorithm = JWK.Algorithm(rawValue: algorithm)
        guard key.algorithm != nil, let collection = try? await JWTKeyCollection().add(jwk: key),
            let verifier = try? await collection.getKey(for: "key", alg: algorithm)
        else { return false }
        return (try? verifier.verify(signature, signs: signed)) ?? false
    }
}
