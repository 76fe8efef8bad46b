import RecordModel
package import Wire

/// How much there is of each thing that quotas limit.
///
/// A record counts as 1, and as `RowBytes.record` with the bytes of its name in UTF-8 and of its stored body, sealed
/// values in their sealed form. What else it leaves behind counts in bytes: each index row `RowBytes.index` and its
/// key, a tombstone as a record without a body, a remembered request its row, and a deleted zone what is left of its
/// rows. Assets count with their files' sizes, each as often as a record of a live zone names it. Before
/// `FeatureLevel.countedRows` names and bodies of records in live zones were all that counted.
package struct QuotaAmounts: Hashable, Sendable, WireMessage {
    /// Bytes of everything that counts except assets.
    package var bytes: Int64
    /// Records that are not deleted; tombstones and earlier versions of records are not counted here.
    package var records: Int64
    /// Bytes of assets.
    package var assets: Int64

    /// All amounts 0, which the wire form leaves out.
    package static let zero = QuotaAmounts()
    /// The limits of what is not limited.
    package static let unlimited = QuotaAmounts(bytes: .max, records: .max, assets: .max)
    /// The greatest amount that a ledger gives and a shard takes over all times: sums of two cannot overflow.
    package static let greatest = QuotaAmounts(bytes: 1 << 62, records: 1 << 62, assets: 1 << 62)

    package init(bytes: Int64 = 0, records: Int64 = 0, assets: Int64 = 0) {
        self.bytes = bytes
        self.records = records
        self.assets = assets
    }

    /// Whether nothing of it is greater than in another.
    package func fits(in other: QuotaAmounts) -> Bool {
        bytes <= other.bytes && records <= other.records && assets <= other.assets
    }

    /// Adds each amount; sums stop at the ends of the range of `Int64`.
    package static func + (left: QuotaAmounts, right: QuotaAmounts) -> QuotaAmounts {
        left.combined(with: right, saturating)
    }

    /// Subtracts each amount, within the same bounds as `+`; differences may be negative.
    package static func - (left: QuotaAmounts, right: QuotaAmounts) -> QuotaAmounts {
        left.combined(with: right) { saturating($0, $1 == .min ? .max : -$1) }
    }

    /// The greater of each.
    package func greater(_ other: QuotaAmounts) -> QuotaAmounts { combined(with: other, max) }

    /// The lesser of each.
    package func lesser(_ other: QuotaAmounts) -> QuotaAmounts { combined(with: other, min) }

    private func combined(with other: QuotaAmounts, _ body: (Int64, Int64) -> Int64) -> QuotaAmounts {
        QuotaAmounts(
            bytes: body(bytes, other.bytes), records: body(records, other.records), assets: body(assets, other.assets))
    }

    /// Each brought into what may be counted: 0 to `greatest`.
    var clamped: QuotaAmounts { greater(.zero).lesser(.greatest) }

    package static var blank: Self { QuotaAmounts() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &bytes, unless: 0)
        try wire.field(2, &records, unless: 0)
        try wire.field(3, &assets, unless: 0)
    }
}

/// Some of the things that quotas limit.
package struct QuotaParts: OptionSet, Hashable, Sendable, WireOptions {
    /// A bit for each part, as the log and the database row have it.
    package let rawValue: Int64

    /// Bytes of everything that counts except assets.
    package static let bytes = QuotaParts(rawValue: 1)
    /// How many records there are.
    package static let records = QuotaParts(rawValue: 2)
    /// Bytes of assets.
    package static let assets = QuotaParts(rawValue: 4)
    /// All that this build knows.
    package static let all: QuotaParts = [.bytes, .records, .assets]

    package init(rawValue: Int64) { self.rawValue = rawValue }

    /// The parts that are negative.
    package init(below amounts: QuotaAmounts) {
        self = []
        if amounts.bytes < 0 { insert(.bytes) }
        if amounts.records < 0 { insert(.records) }
        if amounts.assets < 0 { insert(.assets) }
    }

    package static var known: Self { .all }
}

/// Under what terms a request's records may grow.
package struct QuotaTerms: Hashable, Sendable, WireMessage {
    /// The version of the container's limits that the node holds. What a database was allotted under a lower one and
    /// does not use counts as given back.
    package var epoch: UInt64
    /// Whether operations that do not fit fail with `QUOTA_EXCEEDED`; else the whole command is answered with
    /// `needsAllotment` and changes nothing.
    package var isFinal: Bool
    /// The limits of the whole database: no shard may hold more, whatever it was allotted.
    package var limit: QuotaAmounts

    package init(epoch: UInt64, isFinal: Bool, limit: QuotaAmounts = .unlimited) {
        self.epoch = epoch
        self.isFinal = isFinal
        self.limit = limit
    }

    package static var blank: Self { QuotaTerms(epoch: 0, isFinal: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &epoch)
        try wire.field(2, &isFinal, unless: false)
        try wire.field(3, &limit, unless: .unlimited)
    }
}

/// What a shard lacks of a database's allotment to apply a command.
package struct QuotaNeed: Hashable, Sendable, WireMessage {
    /// Beyond the allotment; at least one is greater than 0.
    package var need: QuotaAmounts
    /// What the shard received and gave back so far, as the ledger counts it.
    package var received: QuotaAmounts
    /// What the shard gave back over all times; never more than `received`.
    package var returned: QuotaAmounts = .zero
    /// Whether the shard has unused allotment that must be released before the ledger is asked, which takes it for used
    /// otherwise.
    package var holdsVoid: Bool = false
    /// The greatest that the command and the shard know; where it is not the command's, the node's limits are
    /// outdated.
    package var epoch: UInt64

    package static var blank: Self { QuotaNeed(need: .zero, received: .zero, epoch: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &need)
        try wire.field(2, &received)
        try wire.field(3, &epoch)
        try wire.field(4, &returned)
        try wire.field(5, &holdsVoid, unless: false)
    }
}
