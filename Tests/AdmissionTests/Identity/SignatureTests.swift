import Admission
import Crypto
import Directory
import Foundation
import RecordModel
import Testing

@Suite("Signatures of server-to-server keys")
struct SignatureTests {
    private static let date = "2016-01-25T22:15:43Z"
    private static let now: Int64 = 1_453_760_143_000
    private static let path = "/database/1/iCloud.app/development/public/records/query"
    private static let target = path + "?ckjsBuildVersion=2420&ckjsVersion=2.4.0"
    private static let body = #"{"query":{"recordType":"Note"}}"#

    private let server: SigningServer

    init() throws { server = try SigningServer(seed: 3) }

    private func refusal(
        of signature: RequestSignature, key: ServerKey? = nil, body: String = Self.body, target: String = Self.target,
        now: Int64 = Self.now, window: Int64 = SignatureCheck.windowMilliseconds
    ) -> ServiceError? {
        AdmissionTests.refusal { () throws(ServiceError) in
            try SignatureCheck.verify(
                signature, key: key ?? server.key, body: Array(body.utf8), target: target, now: now,
                windowMilliseconds: window)
        }
    }

    @Test("a signature over path and query, over the path alone, or over the decoded path is good")
    func subpaths() throws {
        let all = try server.sign(date: Self.date, body: Self.body, subpath: Self.target)
        #expect(refusal(of: all) == nil)
        let pathOnly = try server.sign(date: Self.date, body: Self.body, subpath: Self.path)
        #expect(refusal(of: pathOnly) == nil)
        #expect(refusal(of: pathOnly, target: Self.path) == nil)
        let decoded = try server.sign(date: Self.date, body: "", subpath: "/database/1/mein contäiner/x")
        #expect(refusal(of: decoded, body: "", target: "/database/1/mein%20cont%C3%a4iner/x?a=b") == nil)
    }

    @Test(
        "requests with a header missing or malformed are refused by its name",
        arguments: [
            (nil, date, "AAAA", "KeyID is missing"), ("", date, "AAAA", "KeyID is missing"),
            ("k", nil, "AAAA", "ISO8601Date is missing"), ("k", date, nil, "SignatureV1 is missing"),
            ("k", nil, nil, "ISO8601Date is missing"), (nil, nil, "AAAA", "KeyID is missing"),
            ("5f", date, "MEUCAAAAAAAAAAAA", "KeyID is malformed"),
            (String(repeating: "g", count: 64), date, "MEUCAAAAAAAAAAAA", "KeyID is malformed"),
            (String(repeating: "0", count: 65), date, "MEUCAAAAAAAAAAAA", "KeyID is malformed"),
            ("k", "Mon, 25 Jan 2016 22:15:43 GMT", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", "2016-01-25T22:15:43", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", "2016-01-25T22:15:43+24:00", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", "2016-01-25T22:15:43+01:60", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", "2016-01-25T22:15:43+1:00", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", "2016-01-25T22:15:43 01:00", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", "2016-01-25T22:15:43+01:", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", "2016-01-25T22:15:43Z+01:00", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", "2016-02-30T22:15:43Z", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", "2016-01-25T24:15:43Z", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", "2016-01-25T22:15:43Z\n", "MEUCAAAAAAAAAAAA", "ISO8601Date is malformed"),
            ("k", date, "not Base64", "SignatureV1 is malformed"), ("k", date, "AAAA", "SignatureV1 is malformed"),
            ("k", date, String(repeating: "A", count: 4000), "SignatureV1 is malformed"),
        ] as [(String?, String?, String?, String)])
    func headers(keyID: String?, date: String?, signature: String?, expected: String) throws {
        let keyID = keyID == "k" ? server.key.id : keyID
        let error = try #require(
            AdmissionTests.refusal { () throws(ServiceError) in
                try RequestSignature(keyID: keyID, date: date, signature: signature)
            })
        #expect(error.code == .authenticationFailed)
        #expect(error.reason.contains("X-Apple-CloudKit-Request-\(expected)"), "\(error.reason)")
    }

    @Test(
        "a date may have an offset from UTC in place of Z, and the text that was sent is what is signed",
        arguments: [
            "2016-01-25T22:15:43+00:00", "2016-01-25T22:15:43-00:00", "2016-01-26T00:15:43+0200",
            "2016-01-25T17:15:43-05", "2016-01-26T04:00:43.000+05:45", "2016-01-25T22:15:43Z",
        ])
    func offsets(date: String) throws {
        let signature = try server.sign(date: date, body: Self.body, subpath: Self.target)
        #expect(signature.time == Self.now)
        #expect(refusal(of: signature) == nil)
        let late = refusal(of: signature, now: Self.now + SignatureCheck.windowMilliseconds + 1)
        #expect(late?.reason.contains("in the past") == true)
    }

    @Test("a request without any of the headers is not signed, which is no mistake")
    func unsigned() throws {
        #expect(try RequestSignature(keyID: nil, date: nil, signature: nil) == nil)
    }

    @Test("whatever was signed cannot be changed: body, path, query, date, key")
    func changes() throws {
        let signature = try server.sign(date: Self.date, body: Self.body, subpath: Self.target)
        let stranger = try SigningServer(seed: 4)
        var impostor = server.key
        impostor.publicKey = stranger.key.publicKey
        let later = try #require(
            try RequestSignature(
                keyID: server.key.id, date: "2016-01-25T22:15:44Z",
                signature: Data(signature.signature).base64EncodedString()))
        let refusals = [
            ("body", refusal(of: signature, body: Self.body + " ")), ("no body", refusal(of: signature, body: "")),
            ("path", refusal(of: signature, target: Self.target.replacingOccurrences(of: "public", with: "private"))),
            ("query", refusal(of: signature, target: Self.target + "&a=b")),
            ("no query", refusal(of: signature, target: Self.path)),
            ("case", refusal(of: signature, target: Self.target.uppercased())),
            ("date", refusal(of: later)), ("other public key", refusal(of: signature, key: impostor)),
        ]
        for (change, error) in refusals {
            #expect(error?.code == .authenticationFailed, "\(change)")
            #expect(error?.reason.contains("does not fit") == true, "\(change): \(error?.reason ?? "")")
        }
        #expect(refusal(of: signature, key: stranger.key)?.reason.contains("another key") == true)
    }

    @Test("a signature with any bit changed is refused")
    func flipped() throws {
        let der = try server.signature(date: Self.date, body: Self.body, subpath: Self.target)
        for position in der.indices {
            var changed = der
            changed[position] ^= 1
            guard
                let signature = try RequestSignature(
                    keyID: server.key.id, date: Self.date, signature: changed.base64EncodedString())
            else { continue }
            #expect(refusal(of: signature)?.code == .authenticationFailed, "byte \(position)")
        }
    }

    @Test("a signature of another curve is refused")
    func otherCurve() throws {
        let key = try P384.Signing.PrivateKey(rawRepresentation: [UInt8](repeating: 5, count: 48))
        let der = try key.signature(for: Data(Self.date.utf8)).derRepresentation
        let error = AdmissionTests.refusal { () throws(ServiceError) in
            try RequestSignature(keyID: server.key.id, date: Self.date, signature: der.base64EncodedString())
        }
        #expect(error?.reason.contains("SignatureV1 is malformed") == true)
        var damaged = server.key
        damaged.publicKey = Array(key.publicKey.x963Representation)
        let signature = try server.sign(date: Self.date, body: Self.body, subpath: Self.target)
        #expect(refusal(of: signature, key: damaged)?.code == .internalError, "such a key is never stored")
    }

    @Test("a date is good for ten minutes either way, and no longer")
    func window() throws {
        let signature = try server.sign(date: Self.date, body: Self.body, subpath: Self.target)
        for now in [-600_000, -1, 0, 599_999, 600_000] as [Int64] {
            #expect(refusal(of: signature, now: Self.now + now) == nil)
        }
        #expect(refusal(of: signature, now: Self.now + 600_001)?.reason.contains("in the past") == true)
        #expect(refusal(of: signature, now: Self.now - 600_001)?.reason.contains("in the future") == true)
        #expect(refusal(of: signature, now: .max)?.code == .authenticationFailed)
        #expect(refusal(of: signature, now: .min)?.code == .authenticationFailed)
        #expect(refusal(of: signature, now: Self.now + 1001, window: 1000)?.code == .authenticationFailed)
    }

    @Test(
        "dates count the days of the calendar",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.5Z", 500), ("2016-01-25T22:15:43.123456Z", now + 123),
            ("2000-02-29T23:59:59Z", 951_868_799_000), ("2100-03-01T00:00:00Z", 4_107_542_400_000),
            ("1969-12-31T23:59:59Z", -1000), ("0000-01-01T00:00:00Z", -62_167_219_200_000),
            ("9999-12-31T23:59:59Z", 253_402_300_799_000),
        ] as [(String, Int64)])
    func dates(date: String, expected: Int64) throws {
        let signature = try server.sign(date: date, body: "", subpath: "/")
        #expect(signature.time == expected)
        #expect(signature.date == date)
    }

    @Test("capital digits in the key's id name the same key")
    func capitals() throws {
        let signature = try RequestSignature(
            keyID: String(repeating: "Ab", count: 32), date: Self.date, signature: "MEUCAAAAAAAAAAAA")
        #expect(signature?.keyID == String(repeating: "ab", count: 32))
    }
}
