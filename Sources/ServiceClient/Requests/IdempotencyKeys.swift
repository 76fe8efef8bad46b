/// Names for requests, so that a repeat is done once.
package enum IdempotencyKeys {
    /// A new UUID of version 7: the time in milliseconds, then randomness (RFC 9562, section 5.7).
    /// - Parameter now: milliseconds since 1970.
    package static func make(now: Int64 = WallClock.now) -> String {
        var generator = SystemRandomNumberGenerator()
        let high = UInt64(bitPattern: now << 16) | 0x7000 | UInt64.random(in: 0..<0x1000, using: &generator)
        let low = 0x8000_0000_0000_0000 | UInt64.random(in: 0..<0x4000_0000_0000_0000, using: &generator)
        let digits = [high, low].map { number in
            let text = String(number, radix: 16, uppercase: true)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
        var rest = digits[...]
        return [8, 4, 4, 4, 12].map { length in
            defer { rest = rest.dropFirst(length) }
            return String(rest.prefix(length))
        }.joined(separator: "-")
    }
}
