import RecordModel

/// Names for requests, so that a repeat is done once.
package enum IdempotencyKeys {
    /// A new UUID of version 7.
    /// - Parameter now: milliseconds since 1970.
    package static func make(now: Int64 = WallClock.now) -> String {
        var generator = SystemRandomNumberGenerator()
        return UUIDv7(milliseconds: now, random: (generator.next(), generator.next())).text
    }
}
