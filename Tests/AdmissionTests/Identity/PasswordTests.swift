import Admission
import Directory
import RecordModel
import Testing

@Suite("Passwords")
struct PasswordTests {
    private static let salt = [UInt8](1...16)

    @Test(
        "scrypt computes the vectors of RFC 7914, section 12",
        arguments: [
            (
                "", "", 4, 1, 1,
                "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
                    + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"
            ),
            (
                "password", "NaCl", 10, 8, 16,
                "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
                    + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
            ),
            (
                "pleaseletmein", "SodiumChloride", 14, 8, 1,
                "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
                    + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
            ),
        ] as [(String, String, UInt8, UInt32, UInt32, String)])
    func vectors(password: String, salt: String, logN: UInt8, r: UInt32, p: UInt32, expected: String) {
        let parameters = PasswordHash(salt: Array(salt.utf8), logN: logN, r: r, p: p, hash: [])
        #expect(PasswordHasher.derive(Array(password.utf8), parameters, byteCount: 64) == bytes(hex: expected))
    }

    @Test("a password of the longest matches its own hash, however it was typed")
    func matching() throws {
        // 1024 bytes composed, 1536 as typed here.
        let hash = try PasswordHasher.hash(String(repeating: "e\u{301}", count: 512), salt: Self.salt)
        #expect(hash.logN == 15 && hash.r == 8 && hash.p == 1 && hash.salt == Self.salt && hash.hash.count == 32)
        #expect(PasswordHasher.matches(String(repeating: "\u{E9}", count: 512), hash))
    }

    @Test("no other password matches, nor the same with another salt or other parameters")
    func others() throws {
        var hash = PasswordHash(salt: Self.salt, logN: 4, r: 8, p: 1, hash: [])
        hash.hash = try #require(PasswordHasher.derive(Array("na\u{EF}vet\u{E9} 1".utf8), hash, byteCount: 32))
        #expect(PasswordHasher.matches("nai\u{308}vete\u{301} 1", hash))
        for password in ["naivete 1", "na\u{EF}vet\u{E9} 2", "na\u{EF}vet\u{E9} 1 ", "NA\u{CF}VET\u{C9} 1"] {
            #expect(!PasswordHasher.matches(password, hash))
        }
        var changed = [hash, hash, hash, hash, hash]
        changed[0].salt[0] ^= 1
        changed[1].logN = 5
        changed[2].r = 9
        changed[3].p = 2
        changed[4].hash[31] ^= 1
        for other in changed { #expect(!PasswordHasher.matches("na\u{EF}vet\u{E9} 1", other)) }
    }

    @Test("an account without a password matches nothing, not even what stands in for its hash")
    func absent() {
        #expect(!PasswordHasher.matches("12345678", nil))
    }

    @Test("hashes whose cost is out of bounds match nothing and cost nothing")
    func bounds() {
        for (logN, r, p) in [(0, 8, 1), (63, 8, 1), (24, 64, 1), (15, 0, 1), (15, 8, 0), (15, 8, 1000), (20, 8, 1)] {
            let hash = PasswordHash(
                salt: Self.salt, logN: UInt8(logN), r: UInt32(r), p: UInt32(p), hash: [UInt8](repeating: 0, count: 32))
            #expect(!PasswordHasher.matches("12345678", hash))
        }
        let empty = PasswordHash(salt: Self.salt, logN: 15, r: 8, p: 1, hash: [])
        #expect(!PasswordHasher.matches("12345678", empty), "an empty hash is equal to every prefix")
    }

    @Test("passwords are 8 to 1024 bytes, counted after normalisation, and errors do not show them")
    func lengths() throws {
        for password in ["", "1234567", String(repeating: "x", count: 1025), String(repeating: "\u{E9}", count: 513)] {
            let error = try #require(
                refusal { () throws(ServiceError) in
                    try PasswordHasher.hash(password, salt: Self.salt)
                })
            #expect(error.code == .badRequest)
            #expect(password.isEmpty || !error.reason.contains(password))
            #expect(!PasswordHasher.matches(password, nil))
        }
    }
}
