import Synchronization

/// How often one client address may try what needs no account: sign-in, and requests that fail authentication.
///
/// GCRA for each IPv4 address and each /64 of IPv6, at each node for itself. Bounded: when there are too many addresses, those that
/// are nearest to being forgiven are forgotten first.
package final class AddressLimiter: Sendable {
    private final class Stripe: Sendable {
        /// When the address will have no debt, in nanoseconds.
        let clearAt = Mutex<[AddressBlock: UInt64]>([:])
    }

    /// Nanoseconds that one attempt costs, and how much debt is allowed before another.
    private let cost: UInt64
    private let debtMax: UInt64
    private let stripeMax: Int
    private let stripes: [Stripe]

    /// - Parameters:
    ///   - perMinute: Attempts a minute in the long run; at least 1.
    ///   - burst: Attempts at once after a quiet time; at least 1.
    ///   - addressesMax: Addresses remembered (about).
    package init(perMinute: Int, burst: Int, addressesMax: Int) {
        precondition(perMinute > 0 && burst > 0, "\(perMinute) attempts a minute, \(burst) at once")
        cost = 60 * RateRules.second / UInt64(perMinute)
        debtMax = cost * UInt64(burst - 1)
        stripes = (0..<16).map { _ in Stripe() }
        stripeMax = max(1, addressesMax / 16)
    }

    /// Counts an attempt. False: too many, and this one is not counted.
    package func decide(_ address: String, now: UInt64) -> Bool {
        let block = AddressBlock(address)
        return stripe(of: block).clearAt.withLock { clearAt in
            let debt = Self.debt(clearAt[block], now: now)
            guard debt <= debtMax else { return false }
            if clearAt[block] == nil, clearAt.count >= stripeMax { Self.makeRoom(&clearAt, now: now) }
            clearAt[block] = now + debt + cost
            return true
        }
    }

    /// Whether another attempt would be allowed, without counting one.
    package func allows(_ address: String, now: UInt64) -> Bool {
        let block = AddressBlock(address)
        return stripe(of: block).clearAt.withLock { Self.debt($0[block], now: now) <= debtMax }
    }

    /// Milliseconds until another attempt is allowed, rounded up; 0: now.
    package func retryAfterMilliseconds(_ address: String, now: UInt64) -> Int {
        let block = AddressBlock(address)
        let debt = stripe(of: block).clearAt.withLock { Self.debt($0[block], now: now) }
        return debt <= debtMax ? 0 : Int((debt - debtMax + RateRules.millisecond - 1) / RateRules.millisecond)
    }

    /// Addresses remembered.
    package var count: Int { stripes.reduce(0) { $0 + $1.clearAt.withLock(\.count) } }

    private static func debt(_ clearAt: UInt64?, now: UInt64) -> UInt64 {
        clearAt.map { $0 > now ? $0 - now : 0 } ?? 0
    }

    private static func makeRoom(_ clearAt: inout [AddressBlock: UInt64], now: UInt64) {
        clearAt = clearAt.filter { $0.value > now }
        // An eighth at once, so that a flood of addresses does not pay for this each time.
        let keep = clearAt.values.sorted().dropFirst(clearAt.count / 8)
        if let earliest = keep.first { clearAt = clearAt.filter { $0.value > earliest } }
    }

    private func stripe(of block: AddressBlock) -> Stripe {
        stripes[Int(UInt(bitPattern: block.hashValue) % UInt(stripes.count))]
    }
}
