import Foundation
import Synchronization

/// A long-term rate of attempts a minute, and a burst after a quiet time.
package struct AttemptRate: Sendable {
    /// Nanoseconds that one attempt costs, and how much debt is allowed before another.
    fileprivate let cost: UInt64
    fileprivate let debtMax: UInt64

    /// - Parameters:
    ///   - perMinute: Attempts a minute in the long run; at least 1.
    ///   - burst: Attempts at once after a quiet time; at least 1.
    package init(perMinute: Int, burst: Int) {
        precondition(perMinute > 0 && burst > 0, "\(perMinute) attempts a minute, \(burst) at once")
        cost = 60 * RateRules.second / UInt64(perMinute)
        debtMax = cost * UInt64(burst - 1)
    }
}

/// Limits attempts by key, such as an address or a container.
///
/// GCRA for each key, on each node by itself. Memory is bounded: with too many keys, those with the least debt are
/// forgotten first.
package final class AttemptLimiter<Key: Hashable & Sendable>: Sendable {
    private final class Stripe: Sendable {
        /// When the key will have no debt, in nanoseconds.
        let clearAt = Mutex<[Key: UInt64]>([:])
    }

    private let stripeMax: Int
    private let stripes: [Stripe]

    /// - Parameter keysMax: Keys remembered (about).
    package init(keysMax: Int) {
        stripes = (0..<16).map { _ in Stripe() }
        stripeMax = max(1, keysMax / 16)
    }

    /// Counts an attempt. False: too many, and this one is not counted.
    package func decide(_ key: Key, at rate: AttemptRate, now: UInt64) -> Bool {
        stripe(of: key).clearAt.withLock { clearAt in
            let debt = Self.debt(clearAt[key], now: now)
            guard debt <= rate.debtMax else { return false }
            if clearAt[key] == nil, clearAt.count >= stripeMax { Self.makeRoom(&clearAt, now: now) }
            clearAt[key] = now + debt + rate.cost
            return true
        }
    }

    /// Whether another attempt would be allowed, without counting one.
    package func allows(_ key: Key, at rate: AttemptRate, now: UInt64) -> Bool {
        debt(of: key, now: now) <= rate.debtMax
    }

    /// Milliseconds until another attempt is allowed, rounded up; 0: now.
    package func retryAfterMilliseconds(_ key: Key, at rate: AttemptRate, now: UInt64) -> Int {
        let debt = debt(of: key, now: now)
        if debt <= rate.debtMax { return 0 }
        return Int((debt - rate.debtMax + RateRules.millisecond - 1) / RateRules.millisecond)
    }

    /// Keys remembered.
    package var count: Int { stripes.reduce(0) { $0 + $1.clearAt.withLock(\.count) } }

    private func debt(of key: Key, now: UInt64) -> UInt64 {
        stripe(of: key).clearAt.withLock { Self.debt($0[key], now: now) }
    }

    private static func debt(_ clearAt: UInt64?, now: UInt64) -> UInt64 {
        clearAt.map { $0 > now ? $0 - now : 0 } ?? 0
    }

    private static func makeRoom(_ clearAt: inout [Key: UInt64], now: UInt64) {
        clearAt = clearAt.filter { $0.value > now }
        // An eighth at once, so that a flood of keys does not pay for this each time.
        let keep = clearAt.values.sorted().dropFirst(clearAt.count / 8)
        if let earliest = keep.first { clearAt = clearAt.filter { $0.value > earliest } }
    }

    private func stripe(of key: Key) -> Stripe {
        stripes[Int(UInt(bitPattern: key.hashValue) % UInt(stripes.count))]
    }
}

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

/// Who counts as one client address: an IPv4 address, or the 64 bits of an IPv6 address that one customer has.
enum AddressBlock: Hashable, Sendable {
    case v4(UInt32)
    case v6(UInt64)
    /// Text that is no address (a Unix socket's path, say), cut to 64 bytes.
    case other(String)

    /// From text as `inet_ntop` writes it, with or without brackets and a zone (`%eth0`). An IPv4 address in IPv6 form
    /// is IPv4.
    init(_ text: String) {
        var address = text[...]
        if address.first == "[" { address = address.dropFirst().prefix { $0 != "]" } }
        address = address.prefix { $0 != "%" }
        if let bytes = Self.bytes(address, AF_INET, count: 4) {
            self = .v4(bytes.reduce(0) { $0 << 8 | UInt32($1) })
        } else if let bytes = Self.bytes(address, AF_INET6, count: 16) {
            let isMapped = bytes[..<12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
            self =
                isMapped
                ? .v4(bytes[12...].reduce(0) { $0 << 8 | UInt32($1) })
                : .v6(bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) })
        } else {
            self = .other(String(decoding: text.utf8.prefix(64), as: UTF8.self))
        }
    }

    private static func bytes(_ text: Substring, _ family: Int32, count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return inet_pton(family, String(text), &bytes) == 1 ? bytes : nil
    }
}
