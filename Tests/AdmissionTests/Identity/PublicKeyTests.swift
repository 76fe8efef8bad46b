import Admission
import Crypto
import CryptoExtras
import Directory
import Foundation
import RecordModel
import Testing

@Suite("Public keys in PEM")
struct PublicKeyTests {
    private let privateKey: P256.Signing.PrivateKey

    init() throws { privateKey = try P256.Signing.PrivateKey(rawRepresentation: [UInt8](repeating: 3, count: 32)) }

    @Test("a P-256 key is read as it was written, pasted with spaces and other line ends too")
    func good() throws {
        let pem = privateKey.publicKey.pemRepresentation
        let expected = Array(privateKey.publicKey.x963Representation)
        #expect(expected.count == 65 && expected[0] == 4)
        let indented = pem.split(separator: "\n").map { "  \($0)\t" }.joined(separator: "\r\n\r\n")
        for text in [pem, pem + "\n\n", "read EC key\nwriting EC key\n" + pem, indented] {
            #expect(try PublicKeyPEM.parse(text) == expected)
        }
    }

    @Test("what openssl writes is read")
    func openssl() throws {
        let pem = """
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
            6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
            -----END PUBLIC KEY-----
            """
        #expect(
            try Hex.encode(PublicKeyPEM.parse(pem))
                == "047fcdce2770f6c45d4183cbee6fdb4b7b580733357be9ef13bacf6e3c7bd15445"
                + "c7f144cd1bbd9b7e872cdfedb9eeb9f4b3695d6ea90b24ad8a4623288588e5ad")
    }

    @Test("private keys, other curves, RSA, points off the curve and garbage are refused, each for its reason")
    func bad() throws {
        let good = privateKey.publicKey.pemRepresentation
        var der = Array(privateKey.publicKey.derRepresentation)
        der[der.count - 1] ^= 1
        let off = "-----BEGIN PUBLIC KEY-----\n\(Data(der).base64EncodedString())\n-----END PUBLIC KEY-----"
        let p384 = try P384.Signing.PrivateKey(rawRepresentation: [UInt8](repeating: 5, count: 48))
        let table = try [
            (privateKey.pemRepresentation, "private key"), (p384.publicKey.pemRepresentation, "another curve"),
            (P521.Signing.PrivateKey().publicKey.pemRepresentation, "another curve"),
            (TestProvider().rsa.publicKey.pemRepresentation, "not PEM of a P-256 key"), (off, "not PEM of a P-256 key"),
            ("", "not PEM"), ("hello", "not PEM"), (String(good.dropLast(40)), "not PEM"),
            (good.replacingOccurrences(of: "PUBLIC KEY", with: "CERTIFICATE"), "not PEM"),
            (String(repeating: "x", count: 10_000), "10000 bytes"),
        ]
        for (text, expected) in table {
            let error = try #require(refusal { () throws(ServiceError) in try PublicKeyPEM.parse(text) }, "\(expected)")
            #expect(error.code == .badRequest)
            #expect(error.reason.contains(expected), "\(error.reason)")
            for line in text.split(separator: "\n") where line.count > 30 && !line.hasPrefix("-") {
                #expect(!error.reason.contains(line), "the reason shows the key")
            }
        }
    }
}
