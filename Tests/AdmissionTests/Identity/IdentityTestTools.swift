import Admission
import Crypto
import CryptoExtras
import Directory
import Foundation
import RecordModel

/// The error of a call that is refused; nil where it is not.
func refusal<Value>(_ call: () throws(ServiceError) -> Value) -> ServiceError? {
    do {
        _ = try call()
        return nil
    } catch {
        return error
    }
}

func bytes(hex: String) -> [UInt8] {
    let digits = hex.compactMap(\.hexDigitValue).map { UInt8($0) }
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// A server with a key of P-256.
struct SigningServer {
    let privateKey: P256.Signing.PrivateKey
    let key: ServerKey

    init(seed: UInt8) throws {
        privateKey = try P256.Signing.PrivateKey(rawRepresentation: [UInt8](repeating: seed, count: 32))
        key = ServerKey(
            id: String(repeating: "0\(seed % 10)", count: 32), container: "app", environment: .development,
            publicKey: Array(privateKey.publicKey.x963Representation), accountID: "a1", label: "", created: 0)
    }

    /// DER of the signature that CloudKit's clients send.
    func signature(date: String, body: String, subpath: String) throws -> Data {
        let bodyHash = Data(SHA256.hash(data: Data(body.utf8))).base64EncodedString()
        return try privateKey.signature(for: Data("\(date):\(bodyHash):\(subpath)".utf8)).derRepresentation
    }

    func sign(date: String, body: String, subpath: String) throws -> RequestSignature {
        let der = try signature(date: date, body: body, subpath: subpath)
        guard
            let signature = try RequestSignature(
                keyID: key.id, date: date, signature: der.base64EncodedString())
        else { throw ServiceError(.internalError, "three headers are there") }
        return signature
    }
}

/// An identity provider that signs what it is told to.
struct TestProvider {
    static let issuer = "https://accounts.example"
    /// 2016-01-25T22:15:43Z.
    static let now: Int64 = 1_453_760_143_000

    // One key for all tests: making one takes a while.
    private static let sharedRSAKey = Result { try _RSA.Signing.PrivateKey(keySize: .bits2048) }

    let rsa: _RSA.Signing.PrivateKey
    let p256: P256.Signing.PrivateKey
    let p384: P384.Signing.PrivateKey

    init() throws {
        rsa = try Self.sharedRSAKey.get()
        p256 = try P256.Signing.PrivateKey(rawRepresentation: [UInt8](repeating: 7, count: 32))
        p384 = try P384.Signing.PrivateKey(rawRepresentation: [UInt8](repeating: 9, count: 48))
    }

    func rsaKey(id: String, algorithm: String?) throws -> String {
        let numbers = try rsa.publicKey.getKeyPrimitives()
        let (n, e) = (Base64URL.encode(Array(numbers.modulus)), Base64URL.encode(Array(numbers.publicExponent)))
        let algorithm = algorithm.map { #","alg":"\#($0)""# } ?? ""
        return ##"{"kty":"RSA","kid":"\##(id)","n":"\##(n)","e":"\##(e)"\##(algorithm)}"##
    }

    func curveKey(id: String) -> String {
        let raw = Array(p256.publicKey.rawRepresentation)
        let (x, y) = (Base64URL.encode(Array(raw[..<32])), Base64URL.encode(Array(raw[32...])))
        return #"{"kty":"EC","crv":"P-256","use":"sig","kid":"\#(id)","x":"\#(x)","y":"\#(y)"}"#
    }

    func p384Key(id: String) -> String {
        let raw = Array(p384.publicKey.rawRepresentation)
        let (x, y) = (Base64URL.encode(Array(raw[..<48])), Base64URL.encode(Array(raw[48...])))
        return #"{"kty":"EC","crv":"P-384","alg":"ES384","kid":"\#(id)","x":"\#(x)","y":"\#(y)"}"#
    }

    /// The usual set: RSA without algorithm, RSA for RS256 only, two curves, and what does not serve.
    func keys() throws -> ProviderKeys {
        let others = [
            #"{"kty":"oct","kid":"secret","k":"AAAA"}"#,
            #"{"kty":"RSA","use":"enc","alg":"RSA-OAEP-256","n":"AQAB","e":"AQAB"}"#,
            #"{"kty":"new","kid":"later"}"#, #""junk""#,
        ]
        let all =
            try others + [
                rsaKey(id: "rsa", algorithm: nil), rsaKey(id: "rs256", algorithm: "RS256"), curveKey(id: "ec"),
                p384Key(id: "p384"),
            ]
        return try ProviderKeys(parsing: Array(#"{"keys":[\#(all.joined(separator: ","))]}"#.utf8), issuer: Self.issuer)
    }

    /// The part of a token that is signed, and its signature by the algorithm.
    func token(header: String, payload: String, algorithm: String) throws -> String {
        let signed = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(payload.utf8))
        let data = Data(signed.utf8)
        let signature: Data
        switch algorithm {
        case "RS256":
            signature = try rsa.signature(for: SHA256.hash(data: data), padding: .insecurePKCS1v1_5).rawRepresentation
        case "PS256": signature = try rsa.signature(for: SHA256.hash(data: data), padding: .PSS).rawRepresentation
        case "RS512":
            signature = try rsa.signature(for: SHA512.hash(data: data), padding: .insecurePKCS1v1_5).rawRepresentation
        case "ES256": signature = try p256.signature(for: data).rawRepresentation
        case "ES384": signature = try p384.signature(for: data).rawRepresentation
        case "HS256":
            let key = SymmetricKey(data: Data(rsa.publicKey.pemRepresentation.utf8))
            signature = Data(HMAC<SHA256>.authenticationCode(for: data, using: key))
        default: signature = Data()
        }
        return signed + "." + Base64URL.encode(Array(signature))
    }

    /// A good payload, but for what is replaced; an empty replacement leaves the claim out.
    static func payload(_ changes: [(String, String)] = []) -> String {
        let seconds = now / 1000
        var claims = [
            ("iss", #""\#(issuer)""#), ("sub", #""4711""#), ("aud", #""zonekeeper""#), ("exp", "\(seconds + 300)"),
            ("iat", "\(seconds)"), ("nonce", #""n-1""#), ("email", #""ada@example.org""#), ("email_verified", "true"),
            ("given_name", #""Ada""#), ("family_name", #""Lovelace""#), ("name", #""Ada Lovelace""#),
        ]
        for (name, value) in changes {
            claims.removeAll { $0.0 == name }
            if !value.isEmpty { claims.append((name, value)) }
        }
        return "{" + claims.map { #""\#($0.0)":\#($0.1)"# }.joined(separator: ",") + "}"
    }

    static let expectation = IdentityExpectation(issuer: issuer, clientID: "zonekeeper", nonce: "n-1", now: now)
}
