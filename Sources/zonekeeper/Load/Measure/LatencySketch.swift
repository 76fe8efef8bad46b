/// A small histogram of times, for one second, node or operation: 32 buckets to each power of two, so a percentile is within 2 % of
/// the exact one.
struct LatencySketch: Hashable, Sendable {
    private var counts: [UInt32] = []
    private(set) var count = 0
    private(set) var maxNanoseconds: UInt64 = 0
    private static let bits = 5
    private static let bucketsMax = (44 - bits) << bits

    mutating func record(_ nanoseconds: UInt64) {
        if counts.isEmpty { counts = [UInt32](repeating: 0, count: Self.bucketsMax) }
        counts[Self.bucket(nanoseconds)] &+= 1
        count += 1
        maxNanoseconds = max(maxNanoseconds, nanoseconds)
    }

    mutating func removeAll() {
        guard count > 0 else { return }
        for bucket in counts.indices { counts[bucket] = 0 }
        count = 0
        maxNanoseconds = 0
    }

    mutating func add(_ other: LatencySketch) {
        guard other.count > 0 else { return }
        if counts.isEmpty {
            self = other
            return
        }
        for bucket in counts.indices { counts[bucket] &+= other.counts[bucket] }
        count += other.count
        maxNanoseconds = max(maxNanoseconds, other.maxNanoseconds)
    }

    /// The time that so many percent did not take longer than, in milliseconds; nil when nothing was recorded.
    func milliseconds(atPercentile percentile: Double) -> Double? {
        guard count > 0 else { return nil }
        let rank = max(1, Int((percentile / 100 * Double(count)).rounded(.up)))
        if rank >= count { return Double(maxNanoseconds) / 1_000_000 }
        var passed = 0
        for (bucket, inBucket) in counts.enumerated() where inBucket > 0 {
            passed += Int(inBucket)
            if passed >= rank { return min(Self.middle(bucket), Double(maxNanoseconds)) / 1_000_000 }
        }
        return Double(maxNanoseconds) / 1_000_000
    }

    private static func bucket(_ nanoseconds: UInt64) -> Int {
        guard nanoseconds >= 1 << bits else { return Int(nanoseconds) }
        let exponent = 63 - nanoseconds.leadingZeroBitCount
        let mantissa = Int(truncatingIfNeeded: nanoseconds >> UInt64(exponent - bits)) & (1 << bits - 1)
        return min(bucketsMax - 1, (exponent - bits + 1) << bits + mantissa)
    }

    private static func middle(_ bucket: Int) -> Double {
        guard bucket >= 1 << bits else { return Double(bucket) }
        let width = Double(UInt64(1) << UInt64(bucket >> bits - 1))
        return (Double(1 << bits + bucket & (1 << bits - 1)) + 0.5) * width
    }
}
