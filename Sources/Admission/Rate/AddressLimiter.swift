/// How often one client address may try what needs no account: sign-in, and requests that fail authentication.
///
/// For each IPv4 address and each /64 of IPv6, at each node for itself; see `AttemptLimiter`.
package struct AddressLimiter: Sendable {
    private let rate: AttemptRate
    private let attempts: AttemptLimiter<AddressBlock>

    /// - Parameters:
    ///   - perMinute: Attempts a minute in the long run; at least 1.
    ///   - burst: Attempts at once after a quiet time; at least 1.
    ///   - addressesMax: Addresses remembered (about).
    package init(perMinute: Int, burst: Int, addressesMax: Int) {
        rate = AttemptRate(perMinute: perMinute, burst: burst)
        attempts = AttemptLimiter(keysMax: addressesMax)
    }

    /// Counts an attempt. False: too many, and this one is not counted.
    package func decide(_ address: String, now: UInt64) -> Bool {
        attempts.decide(AddressBlock(address), at: rate, now: now)
    }

    /// Whether another attempt would be allowed, without counting one.
    package func allows(_ address: String, now: UInt64) -> Bool {
        attempts.allows(AddressBlock(address), at: rate, now: now)
    }

    /// Milliseconds until another attempt is allowed, rounded up; 0: now.
    package func retryAfterMilliseconds(_ address: String, now: UInt64) -> Int {
        attempts.retryAfterMilliseconds(AddressBlock(address), at: rate, now: now)
    }

    /// Addresses remembered.
    package var count: Int { attempts.count }
}
