import Synchronization

/// So many attempts a minute in the long run, and so many at once after a quiet time.
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

/// How often something may be tried for each key: an address, a container.
///
/// GCRA for each key, at each node for itself. Bounded: when there are too many keys, those that are nearest to being
/// forgiven are forgotten first.
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
        if let v4 = Self.v4(address) {
            self = .v4(v4)
        } else if let groups = Self.groups(address) {
            let isMapped = groups[0..<5].allSatisfy { $0 == 0 } && groups[5] == 0xFFFF
            self =
                isMapped
                ? .v4(UInt32(groups[6]) << 16 | UInt32(groups[7]))
                : .v6(groups[0..<4].reduce(0) { $0 << 16 | UInt64($1) })
        } else {
            self = .other(String(decoding: text.utf8.prefix(64), as: UTF8.self))
        }
    }

    private static func v4(_ text: Substring) -> UInt32? {
        let parts = text.split(separator: ".", maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var address: UInt32 = 0
        for part in parts {
            guard let value = UInt8(part), part.utf8.first != 0x2B else { return nil }
            address = address << 8 | UInt32(value)
        }
        return address
    }

    /// The eight groups of an IPv6 address.
    private static func groups(_ text: Substring) -> [UInt16]? {
        guard text.utf8.count <= 45 else { return nil }
        var halves: [[UInt16]] = []
        var rest = text
        while true {
            let gap = rest.firstRange(of: "::")
            guard let half = list(gap.map { rest[..<$0.lowerBound] } ?? rest) else { return nil }
            halves.append(half)
            guard let gap else { break }
            rest = rest[gap.upperBound...]
        }
        if halves.count == 1 { return halves[0].count == 8 ? halves[0] : nil }
        let missing = 8 - halves[0].count - halves[1].count
        guard halves.count == 2, missing > 0 else { return nil }
        return halves[0] + Array(repeating: 0, count: missing) + halves[1]
    }

    private static func list(_ text: Substring) -> [UInt16]? {
        if text.isEmpty { return [] }
        var groups: [UInt16] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (place, part) in parts.enumerated() {
            if place == parts.count - 1, let address = v4(part) {
                groups += [UInt16(address >> 16), UInt16(truncatingIfNeeded: address)]
            } else {
                guard (1...4).contains(part.utf8.count), part.utf8.first != 0x2B, let group = UInt16(part, radix: 16)
                else { return nil }
                groups.append(group)
            }
        }
        return groups
    }
}
