import Foundation
import RecordModel

/// Time-ordered UUIDs (RFC 9562): 48 bits of milliseconds since 1970, then randomness.
enum UUIDv7 {
    /// How long a key may be used for retries, in milliseconds: a little less than answers are kept.
    static let lifetimeMilliseconds: Int64 = 86_100_000

    static func generate(now: Int64) -> String {
        var bytes = withUnsafeBytes(of: UInt64(bitPattern: now << 16).bigEndian) { Array($0) }
        bytes += withUnsafeBytes(of: UInt64.random(in: 0 ... .max)) { Array($0) }
        for offset in 6..<8 { bytes[offset] = UInt8.random(in: 0 ... .max) }
        return text(of: bytes)
    }

    /// The text of 16 bytes, made a UUID of version 7.
    static func text(of sixteen: [UInt8]) -> String {
        var bytes = sixteen
        bytes[6] = bytes[6] & 0x0F | 0x70
        bytes[8] = bytes[8] & 0x3F | 0x80
        let hex = bytes.map { String($0, radix: 16, uppercase: true) }.map { $0.count == 1 ? "0" + $0 : $0 }
        return [hex[0..<4], hex[4..<6], hex[6..<8], hex[8..<10], hex[10..<16]].map { $0.joined() }.joined(
            separator: "-")
    }

    /// The 16 bytes of an `Idempotency-Key`.
    /// - Throws: `BAD_REQUEST` for what is no UUID of version 7, or too old to be remembered, or from the future.
    static func parse(_ text: String, now: Int64) throws(RequestFailure) -> [UInt8] {
        guard let uuid = UUID(uuidString: text) else {
            throw RequestFailure(.badRequest, "Idempotency-Key: '\(text.prefix(64))' is not a UUID")
        }
        let bytes = withUnsafeBytes(of: uuid.uuid) { Array($0) }
        guard bytes[6] >> 4 == 7 else {
            throw RequestFailure(
                .badRequest, "Idempotency-Key: a UUID of version 7 is needed, this is version \(bytes[6] >> 4)")
        }
        let made = bytes.prefix(6).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        guard now - made <= lifetimeMilliseconds else {
            throw RequestFailure(
                .badRequest, "Idempotency-Key: it was made more than a day ago, and answers are not remembered longer")
        }
        guard made - now <= 3_600_000 else {
            throw RequestFailure(.badRequest, "Idempotency-Key: it was made in the future; check the client's clock")
        }
        return bytes
    }
}
