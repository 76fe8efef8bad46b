import Synchronization

/// The limiters of one node, found by key. Striped: a request meets only those of a few other containers at a lock.
package final class RateLimiters: Sendable {
    private final class Stripe: Sendable {
        let limiters = Mutex<[RateKey: RateLimiter]>([:])
    }

    private let stripes: [Stripe]
    private let stripeMax: Int

    /// - Parameter limitersMax: Containers remembered at once (about); beyond, the one idle for longest is forgotten.
    package init(limitersMax: Int = 100_000) {
        stripes = (0..<64).map { _ in Stripe() }
        stripeMax = max(1, limitersMax / 64)
    }

    /// The limiter of a key, made when there is none. Hold it for one request only: an idle one is replaced.
    package func limiter(_ key: RateKey, now: UInt64) -> RateLimiter {
        stripe(of: key).limiters.withLock { limiters in
            if let limiter = limiters[key] { return limiter }
            if limiters.count >= stripeMax { Self.makeRoom(&limiters, now: now) }
            let limiter = RateLimiter(key: key, now: now)
            limiters[key] = limiter
            return limiter
        }
    }

    /// The limiter of a key, if there is one.
    package func existing(_ key: RateKey) -> RateLimiter? { stripe(of: key).limiters.withLock { $0[key] } }

    /// The limiters that may have something to report, sorted by key. Forgets those idle for a minute.
    package func active(now: UInt64) -> [RateLimiter] {
        var active: [RateLimiter] = []
        for stripe in stripes {
            stripe.limiters.withLock { limiters in
                var forgettable: [RateKey] = []
                for (key, limiter) in limiters {
                    if limiter.isForgettable(at: now) {
                        forgettable.append(key)
                    } else if limiter.isActive(at: now) {
                        active.append(limiter)
                    }
                }
                for key in forgettable { limiters[key] = nil }
            }
        }
        return active.sorted { $0.key < $1.key }
    }

    /// Containers remembered.
    package var count: Int { stripes.reduce(0) { $0 + $1.limiters.withLock(\.count) } }

    private func stripe(of key: RateKey) -> Stripe {
        stripes[Int(UInt(bitPattern: key.hashValue) % UInt(stripes.count))]
    }

    private static func makeRoom(_ limiters: inout [RateKey: RateLimiter], now: UInt64) {
        let idlest = limiters.max { left, right in
            (left.value.silence(at: now), right.key) < (right.value.silence(at: now), left.key)
        }
        if let idlest { limiters[idlest.key] = nil }
    }
}
