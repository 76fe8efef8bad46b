import Admission
import Crypto
import Directory
import Foundation
import RaftCore
import RecordModel
import Testing

@Suite("Replayed signatures")
struct ReplayTests {
    private static let date = "2016-01-25T22:15:43Z"
    private static let now: Int64 = 1_453_760_143_000

    /// A signature with random numbers and a date; it verifies nowhere, which the guard does not ask.
    private static func signature(
        _ generator: inout SplitMix64, second: Int
    ) throws -> RequestSignature {
        let raw = (0..<64).map { _ in UInt8.random(in: 1...127, using: &generator) }
        let der = try P256.Signing.ECDSASignature(rawRepresentation: raw).derRepresentation
        let (day, hour, minute) = (25 + second / 86_400, second / 3600 % 24, second / 60 % 60)
        let date = String(format: "2016-01-%02dT%02d:%02d:%02dZ", day, hour, minute, second % 60)
        return try #require(
            try RequestSignature(
                keyID: String(repeating: "0", count: 64), date: date, signature: der.base64EncodedString()))
    }

    /// Midnight of the day of `signature`.
    private static let midnight: Int64 = 1_453_680_000_000

    @Test("a signature is let through once")
    func once() throws {
        let server = try SigningServer(seed: 3)
        let replays = ReplayGuard()
        let first = try server.sign(date: Self.date, body: "a", subpath: "/")
        let second = try server.sign(date: Self.date, body: "a", subpath: "/")
        #expect(replays.admit(first, nonce: 1, now: Self.now) == .new)
        #expect(replays.admit(second, nonce: 2, now: Self.now) == .new, "the same request, signed anew")
        for later in [0, 1, 60_000, 600_000] as [Int64] {
            #expect(replays.admit(first, nonce: 3, now: Self.now + later) == .used)
            #expect(replays.admit(second, nonce: 1, now: Self.now + later) == .used)
        }
    }

    @Test("the other signature that anyone can make of a good one is the same signature")
    func malleable() throws {
        let server = try SigningServer(seed: 3)
        let signature = try server.sign(date: Self.date, body: "a", subpath: "/")
        let raw = Array(try P256.Signing.ECDSASignature(derRepresentation: signature.signature).rawRepresentation)
        let order = bytes(hex: "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
        var negated = [UInt8](repeating: 0, count: 32)
        var borrow = 0
        for position in (0..<32).reversed() {
            let difference = Int(order[position]) - Int(raw[32 + position]) - borrow
            negated[position] = UInt8(truncatingIfNeeded: difference)
            borrow = difference < 0 ? 1 : 0
        }
        let der = try P256.Signing.ECDSASignature(rawRepresentation: raw[..<32] + negated).derRepresentation
        let twin = try #require(
            try RequestSignature(keyID: server.key.id, date: Self.date, signature: der.base64EncodedString()))
        #expect(twin.signature != signature.signature)
        try SignatureCheck.verify(twin, key: server.key, body: Array("a".utf8), target: "/", now: Self.now)
        let replays = ReplayGuard()
        #expect(replays.admit(signature, nonce: 1, now: Self.now) == .new)
        #expect(replays.admit(twin, nonce: 2, now: Self.now) == .used)
    }

    @Test("what is no signature is not let through")
    func garbage() throws {
        let signature = try #require(
            try RequestSignature(
                keyID: String(repeating: "0", count: 64), date: Self.date, signature: "AAAAAAAAAAAAAAAA"))
        #expect(ReplayGuard().admit(signature, nonce: 1, now: Self.now) == .used)
    }

    @Test("signatures are forgotten when their dates are no longer fresh")
    func expiry() throws {
        var generator = SplitMix64(seed: 1)
        let replays = ReplayGuard(windowMilliseconds: 600_000)
        let now = Self.midnight + 3_600_000
        for second in stride(from: 3000, through: 3600, by: 50) {
            #expect(replays.admit(try Self.signature(&generator, second: second), nonce: 1, now: now) == .new)
        }
        #expect(replays.signatureCount == 13)
        // Half an hour later one more: of the others none can be fresh.
        #expect(replays.admit(try Self.signature(&generator, second: 5400), nonce: 1, now: now + 1_800_000) == .new)
        #expect(replays.signatureCount == 1)
    }

    @Test("however many come, memory is bounded and no replay gets through", arguments: 1...5 as ClosedRange<UInt64>)
    func bounded(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let replays = ReplayGuard(windowMilliseconds: 600_000, signaturesMax: 40)
        var admitted: [RequestSignature] = []
        var refusedCount = 0
        for step in 0..<500 {
            let now = Self.midnight + 3_600_000 + Int64(step) * 1000
            // Mostly of now; one in ten with a clock that is off.
            let skew = step % 10 == 5 ? Int.random(in: -300...300, using: &generator) : 0
            let signature = try Self.signature(&generator, second: 3600 + step + skew)
            if replays.admit(signature, nonce: 1, now: now) == .new {
                admitted.append(signature)
            } else {
                refusedCount += 1
            }
            #expect(replays.signatureCount <= 40)
            for _ in 0..<3 {
                let old = admitted[Int.random(in: 0..<admitted.count, using: &generator)]
                #expect(replays.admit(old, nonce: 2, now: now) != .new)
            }
        }
        #expect(admitted.count > 300, "\(refusedCount) refused")
    }

    @Test("who lost the answer asks again with the same nonce and gets the same; another asker does not")
    func askedAgain() throws {
        var generator = SplitMix64(seed: 1)
        let signature = try Self.signature(&generator, second: 100)
        let replays = ReplayGuard()
        let now = Self.midnight + 100_000
        #expect(replays.admit(signature, nonce: 7, now: now) == .new)
        #expect(replays.admit(signature, nonce: 7, now: now + 1) == .new)
        #expect(replays.admit(signature, nonce: 8, now: now + 1) == .used)
        #expect(replays.signatureCount == 1)
    }

    @Test("a date that is to come is not let through until it has come, and is not used up")
    func ahead() throws {
        var generator = SplitMix64(seed: 1)
        let signature = try Self.signature(&generator, second: 100)
        let replays = ReplayGuard()
        let date = Self.midnight + 100_000
        #expect(replays.admit(signature, nonce: 1, now: date - 1500) == .ahead(milliseconds: 1500))
        #expect(replays.signatureCount == 0)
        #expect(replays.admit(signature, nonce: 1, now: date) == .new)
    }

    @Test(
        "whoever leads next lets through nothing that earlier leaders let through",
        arguments: 1...5 as ClosedRange<UInt64>)
    func leaders(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        var replays = ReplayGuard()
        var admitted: [RequestSignature] = []
        var refusedCount = 0
        for step in 0..<400 {
            let now = Self.midnight + 3_600_000 + Int64(step) * 1000
            if step % 50 == 0 {
                replays = ReplayGuard()
                replays.begin(at: now)
            }
            let skew = step % 7 == 0 ? Int.random(in: -300...300, using: &generator) : 0
            let signature = try Self.signature(&generator, second: 3600 + step + skew)
            if replays.admit(signature, nonce: 1, now: now) == .new {
                admitted.append(signature)
            } else {
                refusedCount += 1
            }
            for old in admitted.suffix(20) + admitted.filter({ _ in Bool.random(using: &generator) }).prefix(5) {
                #expect(replays.admit(old, nonce: 2, now: now) != .new, "step \(step)")
            }
        }
        #expect(admitted.count > 300, "\(refusedCount) refused")
    }

    @Test("what a clock that was ahead let through and forgot keeps nothing out but the same again")
    func forgottenAhead() throws {
        var generator = SplitMix64(seed: 1)
        let replays = ReplayGuard(windowMilliseconds: 600_000)
        let ahead = try Self.signature(&generator, second: 7200)
        #expect(replays.admit(ahead, nonce: 1, now: Self.midnight + 7_200_000) == .new)
        let last = try Self.signature(&generator, second: 8500)
        #expect(replays.admit(last, nonce: 1, now: Self.midnight + 8_500_000) == .new)
        #expect(replays.signatureCount == 1, "the first is forgotten")
        // An hour and a half was too much.
        let now = Self.midnight + 3_100_000
        #expect(replays.admit(try Self.signature(&generator, second: 3090), nonce: 1, now: now) == .new)
        for signature in [ahead, last] {
            #expect(replays.admit(signature, nonce: 2, now: Self.midnight + 8_600_000) != .new)
        }
    }

    @Test("however many steps were forgotten, no signature of theirs is let through again")
    func forgottenSteps() throws {
        var generator = SplitMix64(seed: 1)
        let replays = ReplayGuard(signaturesMax: 1)
        var admitted: [RequestSignature] = []
        for second in stride(from: 0, to: 90_000, by: 30) {
            let signature = try Self.signature(&generator, second: second)
            if replays.admit(signature, nonce: 1, now: Self.midnight + Int64(second) * 1000) == .new {
                admitted.append(signature)
            }
        }
        #expect(admitted.count == 3000)
        let now = Self.midnight + 90_000_000
        for old in [admitted[0], admitted[200], admitted[2998]] {
            #expect(replays.admit(old, nonce: 2, now: now) != .new)
        }
    }

    @Test("what was dated before a leader began is to be signed anew, and is not called a replay")
    func begun() throws {
        var generator = SplitMix64(seed: 1)
        let replays = ReplayGuard()
        let begin = Self.midnight + 100_400
        replays.begin(at: begin)
        let now = begin + 700
        #expect(replays.admit(try Self.signature(&generator, second: 100), nonce: 1, now: now) == .tooOld)
        #expect(replays.admit(try Self.signature(&generator, second: 101), nonce: 1, now: now) == .new)
    }
}
