import Admission

/// Counts, by address, the requests whose credentials were wrong. Any thread.
final class FailedAuthentications: Sendable {
    private static let perMinute = 3_000
    private let limiter = AddressLimiter(perMinute: perMinute, burst: 1_500, addressesMax: 50_000)

    /// - Throws: `THROTTLED` where an address has failed too often.
    func requireFew(of address: String?, now: UInt64) throws(RequestFailure) {
        guard let address, !limiter.allows(address, now: now) else { return }
        throw tooMany(of: address, now: now)
    }

    /// Counts one more.
    /// - Throws: `THROTTLED` where its address has failed too often.
    func count(of address: String?, now: UInt64) throws(RequestFailure) {
        guard let address, !limiter.decide(address, now: now) else { return }
        throw tooMany(of: address, now: now)
    }

    private func tooMany(of address: String, now: UInt64) -> RequestFailure {
        .throttled(
            "too many requests from this address failed to authenticate; wait, and mend the token or key",
            retryAfterSeconds: Double(limiter.retryAfterMilliseconds(address, now: now)) / 1_000
        ).by("failedAuthentications", limit: Self.perMinute)
    }
}
