package import RecordModel
package import Wire

/// What requests of one kind came to in a while. Cells of several whiles and of several nodes add up.
package struct TelemetryCell: Hashable, Sendable {
    /// How many.
    package private(set) var requests: UInt64 = 0
    /// How many failed, also of which only a part did, by code; sorted by the code.
    package private(set) var errors: [ErrorCount] = []
    /// How long they took.
    package private(set) var latency = LatencyHistogram()
    /// Of their bodies.
    package private(set) var bytesIn: UInt64 = 0
    /// Of their answers.
    package private(set) var bytesOut: UInt64 = 0
    /// Told to devices and webhooks.
    package private(set) var notifications: UInt64 = 0
    /// Who asked.
    package private(set) var users = DistinctUsers()

    /// How often a code was the reason.
    package struct ErrorCount: Hashable, Sendable, WireMessage {
        /// Why they failed.
        package var code: ErrorCode
        /// How many did.
        package var count: UInt64

        package static var blank: Self { ErrorCount(code: .internalError, count: 0) }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &code)
            try wire.field(2, &count)
        }
    }

    /// How many failed.
    package var errorCount: UInt64 { errors.reduce(0) { $0 + $1.count } }

    mutating func count(_ entry: RequestEntry) {
        requests += 1
        latency.count(entry.microseconds)
        bytesIn += UInt64(entry.bytesIn)
        bytesOut += UInt64(entry.bytesOut)
        if entry.hasFailed { add(ErrorCount(code: entry.firstCode ?? .internalError, count: 1)) }
        if !entry.user.isEmpty { users.count(entry.user) }
    }

    mutating func count(notifications count: Int) { notifications += UInt64(count) }

    private mutating func add(_ error: ErrorCount) {
        let place = errors.firstIndex { $0.code.rawValue >= error.code.rawValue } ?? errors.count
        if place < errors.count, errors[place].code == error.code {
            errors[place].count += error.count
        } else {
            errors.insert(error, at: place)
        }
    }

    /// Adds what another one counted.
    package mutating func add(_ other: TelemetryCell) {
        requests += other.requests
        for error in other.errors { add(error) }
        latency.add(other.latency)
        bytesIn += other.bytesIn
        bytesOut += other.bytesOut
        notifications += other.notifications
        users.add(other.users)
    }
}

extension TelemetryCell: WireMessage {
    package static var blank: Self { TelemetryCell() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &requests)
        try wire.field(2, &errors)
        try wire.field(3, &latency)
        try wire.field(4, &bytesIn)
        try wire.field(5, &bytesOut)
        try wire.field(6, &notifications)
        try wire.field(7, &users)
    }
}

/// How long requests took: in buckets of which each ends at most a quarter above its beginning.
package struct LatencyHistogram: Hashable, Sendable, WireMessage {
    /// Below 64 µs, then four for each doubling, and the last from 28 s on.
    private static let bucketsMax: UInt64 = 76
    /// The buckets with anything in them, ascending, and how much.
    private var buckets: [UInt64] = []
    private var counts: [UInt64] = []

    package init() {}

    package static var blank: Self { LatencyHistogram() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &buckets)
        try wire.field(2, &counts)
    }

    package mutating func check() throws(WireError) {
        guard buckets.count == counts.count, buckets.allSatisfy({ $0 <= Self.bucketsMax }),
            zip(buckets, buckets.dropFirst()).allSatisfy({ $0 < $1 })
        else { throw .invalidValue(field: 1) }
    }

    private static func bucket(of microseconds: UInt64) -> UInt64 {
        guard microseconds >= 64 else { return 0 }
        let doubling = UInt64(63 - microseconds.leadingZeroBitCount)
        return min(1 + (doubling - 6) * 4 + (microseconds >> (doubling - 2) & 3), bucketsMax)
    }

    /// Where a bucket begins, in microseconds.
    private static func begin(of bucket: UInt64) -> UInt64 {
        guard bucket > 0 else { return 0 }
        let (doubling, quarter) = (6 + (bucket - 1) / 4, (bucket - 1) % 4)
        return (4 + quarter) << (doubling - 2)
    }

    mutating func count(_ microseconds: UInt64) { add(Self.bucket(of: microseconds), 1) }

    private mutating func add(_ bucket: UInt64, _ count: UInt64) {
        let place = buckets.firstIndex { $0 >= bucket } ?? buckets.count
        if place < buckets.count, buckets[place] == bucket {
            counts[place] += count
        } else {
            buckets.insert(bucket, at: place)
            counts.insert(count, at: place)
        }
    }

    mutating func add(_ other: LatencyHistogram) {
        for (bucket, count) in zip(other.buckets, other.counts) { add(bucket, count) }
    }

    /// What a part of the requests, from 0 to 1, took at most, in milliseconds: estimated within its bucket; nil where
    /// there was none.
    package func milliseconds(ofPart part: Double) -> Double? {
        let total = counts.reduce(0, +)
        guard total > 0 else { return nil }
        var left = part * Double(total)
        for (bucket, count) in zip(buckets, counts) {
            guard left > Double(count) else {
                let begin = Double(Self.begin(of: bucket))
                let end = Double(Self.begin(of: min(bucket, Self.bucketsMax - 1) + 1))
                return (begin + max(end - begin, 0) * left / Double(count)) / 1_000
            }
            left -= Double(count)
        }
        return buckets.last.map { Double(Self.begin(of: $0)) / 1_000 }
    }
}

/// How many different users there were, without their names: the smallest hashes of these. Exact up to 128; of more an
/// estimate, which is off by a tenth or so.
package struct DistinctUsers: Hashable, Sendable, WireMessage {
    private static let hashesMax = 129
    /// Ascending.
    private var hashes: [UInt64] = []

    package static var blank: Self { DistinctUsers() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) { try wire.field(1, &hashes) }

    package mutating func check() throws(WireError) {
        guard hashes.count <= Self.hashesMax, zip(hashes, hashes.dropFirst()).allSatisfy({ $0 < $1 }) else {
            throw .invalidValue(field: 1)
        }
    }

    mutating func count(_ user: String) { insert(Self.hash(user)) }

    /// The same on every node: a checksum, whose upper bits are then mixed, as the smallest hashes are looked at.
    private static func hash(_ user: String) -> UInt64 {
        var hash = fnv1a(Array(user.utf8))
        hash = (hash ^ hash >> 33) &* 0xFF51_AFD7_ED55_8CCD
        hash = (hash ^ hash >> 33) &* 0xC4CE_B9FE_1A85_EC53
        return hash ^ hash >> 33
    }

    private mutating func insert(_ hash: UInt64) {
        if hashes.count == Self.hashesMax, let last = hashes.last, hash >= last { return }
        let place = hashes.prefixEnd { $0 < hash }
        if place < hashes.count, hashes[place] == hash { return }
        hashes.insert(hash, at: place)
        if hashes.count > Self.hashesMax { hashes.removeLast() }
    }

    mutating func add(_ other: DistinctUsers) { for hash in other.hashes { insert(hash) } }

    /// How many there were.
    package var count: UInt64 {
        guard hashes.count == Self.hashesMax, let last = hashes.last else { return UInt64(hashes.count) }
        return UInt64((Double(Self.hashesMax - 1) / (Double(last) / Double(UInt64.max))).rounded())
    }
}
