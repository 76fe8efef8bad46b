/// Names for requests, so that a repeat is done once.
package enum IdempotencyKeys {
    /// A new UUID of version 7: the time in milliseconds, then randomness (RFC 9562, section 5.7).
    /// - Parameter now: milliseconds since 1970.
    package static func make(now: Int64 = WallClock.now) -> String {
        var generator = SystemRandomNumberGenerator()
        let high = UInt64(bitPattern: now << 16) | 0x7000 | generator.next() & 0x0FFF
        let low = 0x8000_0000_0000_0000 | generator.next() & 0x3FFF_FFFF_FFFF_FFFF
        return String(unsafeUninitializedCapacity: 36) { text in
            var place = 0
            for digit in 0..<32 {
                if digit == 8 || digit == 12 || digit == 16 || digit == 20 {
                    text[place] = UInt8(ascii: "-")
                    place += 1
                }
                let half = (digit < 16 ? high : low) >> UInt64(60 - 4 * (digit % 16)) & 0xF
                text[place] = UInt8(half < 10 ? 0x30 + half : 0x37 + half)
                place += 1
            }
            return place
        }
    }
}
