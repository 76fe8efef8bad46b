package import RecordModel
package import Wire

/// A transfer of allotments between a database's ledger and its shards, or another count of the ledger.
///
/// All amounts are cumulative, so that messages may be lost, repeated and reordered: the receiver takes the difference.
/// What was given and not yet received is in flight and belongs to neither side.
package enum QuotaCommand: Hashable, Sendable, WireUnion {
    case grant(QuotaGrant)
    case credit(QuotaCredit)
    case release(QuotaRelease)
    case deposit(QuotaDeposit)
    case addTransfer(QuotaTransfer)

    package func encode(to writer: inout WireWriter) {
        switch self {
        case .grant(let command): command.write(1, to: &writer)
        case .credit(let command): command.write(2, to: &writer)
        case .release(let command): command.write(3, to: &writer)
        case .deposit(let command): command.write(4, to: &writer)
        case .addTransfer(let command): command.write(5, to: &writer)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .grant(try reader.message())
        case 2: self = .credit(try reader.message())
        case 3: self = .release(try reader.message())
        case 4: self = .deposit(try reader.message())
        case 5: self = .addTransfer(try reader.message())
        default: return nil
        }
    }
}

/// Asks a ledger for more; applied at the ledger's shard.
package struct QuotaGrant: Hashable, Sendable, WireMessage {
    /// Whose data it is for.
    package var ledger: DatabaseKey
    /// The group that asks.
    package var shard: UInt64
    /// What it would take, and what it must have: all of `need` is given or nothing. What the ledger gave before and
    /// the shard did not receive counts for both.
    package var want: QuotaAmounts
    /// Where it is zero, whatever the ledger has left is given, up to `want`.
    package var need: QuotaAmounts
    /// What the shard received and gave back so far. A ledger that knows of less, because it was restored or not told,
    /// takes it over.
    package var received: QuotaAmounts
    /// Over all times; the command is refused where it is more than `received`.
    package var returned: QuotaAmounts
    /// What all shards together may have.
    package var cap: QuotaAmounts
    /// The version of the limits that `cap` is from; a ledger that saw a greater one keeps the cap of that one.
    package var epoch: UInt64
    /// Milliseconds since 1970 by the clock of the node that made the command.
    package var time: Int64

    package init(
        ledger: DatabaseKey, shard: UInt64, want: QuotaAmounts, need: QuotaAmounts, received: QuotaAmounts,
        returned: QuotaAmounts = .zero, cap: QuotaAmounts, epoch: UInt64, time: Int64
    ) {
        self.ledger = ledger
        self.shard = shard
        self.want = want
        self.need = need
        self.received = received
        self.returned = returned
        self.cap = cap
        self.epoch = epoch
        self.time = time
    }

    package static var blank: Self {
        QuotaGrant(
            ledger: .blank, shard: 0, want: QuotaAmounts(), need: QuotaAmounts(), received: QuotaAmounts(),
            returned: QuotaAmounts(), cap: QuotaAmounts(), epoch: 0, time: 0)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &ledger)
        try wire.field(2, &shard)
        try wire.field(3, &want)
        try wire.field(4, &need)
        try wire.field(5, &received)
        try wire.field(6, &cap)
        try wire.field(7, &epoch)
        try wire.field(8, &time)
        try wire.field(9, &returned)
    }
}

/// Brings a shard what its ledger granted; applied at the zone's shard.
package struct QuotaCredit: Hashable, Sendable, WireMessage {
    /// The database that the ledger granted it for; the shard makes a row for it where it has none.
    package var database: DatabaseKey
    /// What the ledger granted the shard so far.
    package var cumulative: QuotaAmounts
    /// The version of the limits it was granted under; where the shard knows a greater one it is given back at once.
    package var epoch: UInt64
    /// Of what the ledger had less than nothing left after that: the shard uses nothing there that becomes free.
    package var overdrawn: QuotaParts

    package init(
        database: DatabaseKey, cumulative: QuotaAmounts, epoch: UInt64, overdrawn: QuotaParts = []
    ) {
        self.database = database
        self.cumulative = cumulative
        self.epoch = epoch
        self.overdrawn = overdrawn
    }

    package static var blank: Self { QuotaCredit(database: .blank, cumulative: .zero, epoch: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
        try wire.field(2, &cumulative)
        try wire.field(3, &epoch)
        try wire.field(4, &overdrawn, unless: [])
    }
}

/// Has a shard give back what a database does not use; applied at the zone's shard.
package struct QuotaRelease: Hashable, Sendable, WireMessage {
    /// A database that the shard does not know gives back nothing: both sums of the outcome are zero.
    package var database: DatabaseKey

    package init(database: DatabaseKey) { self.database = database }

    package static var blank: Self { QuotaRelease(database: .blank) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
    }
}

/// Brings a ledger what a shard gave back; applied at the ledger's shard.
package struct QuotaDeposit: Hashable, Sendable, WireMessage {
    /// The database whose ledger takes it; a ledger that does not exist is made.
    package var ledger: DatabaseKey
    /// The group that gave it back.
    package var shard: UInt64
    /// What the shard received and gave back so far.
    package var received: QuotaAmounts
    /// Over all times; the command is refused where it is more than `received`.
    package var returned: QuotaAmounts

    package init(ledger: DatabaseKey, shard: UInt64, received: QuotaAmounts, returned: QuotaAmounts) {
        self.ledger = ledger
        self.shard = shard
        self.received = received
        self.returned = returned
    }

    package static var blank: Self {
        QuotaDeposit(ledger: .blank, shard: 0, received: QuotaAmounts(), returned: QuotaAmounts())
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &ledger)
        try wire.field(2, &shard)
        try wire.field(3, &received)
        try wire.field(4, &returned)
    }
}

/// Counts bytes of requests for a month; applied at the ledger's shard. Not idempotent.
package struct QuotaTransfer: Hashable, Sendable, WireMessage {
    /// The public database whose requests were counted.
    package var ledger: DatabaseKey
    /// Year times 100 plus month, as 202611. A later one begins at 0; what comes for an earlier one is not counted, nor
    /// what comes for one that is not the shard's own month or the next: that sender's clock is wrong.
    package var month: UInt64
    /// Added to the month's sum, which stops at `UInt64.max`.
    package var bytes: UInt64

    package init(ledger: DatabaseKey, month: UInt64, bytes: UInt64) {
        self.ledger = ledger
        self.month = month
        self.bytes = bytes
    }

    /// The month of a time in milliseconds since 1970, in UTC, as 202611.
    package static func month(of time: Int64) -> UInt64 {
        let date = UTCTime(milliseconds: max(time, 0)).date
        return UInt64(date.year * 100 + date.month)
    }

    package static var blank: Self { QuotaTransfer(ledger: .blank, month: 0, bytes: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &ledger)
        try wire.field(2, &month)
        try wire.field(3, &bytes)
    }
}

/// What became of a quota command; one whose sums make no sense is refused.
package enum QuotaOutcome: Hashable, Sendable, WireCodable {
    /// What the ledger granted the shard so far, to be credited, and what is free after it; what is free may be below 0
    /// where the cap was lowered.
    case granted(cumulative: QuotaAmounts, free: QuotaAmounts)
    /// Nothing was granted; `cumulative` is what was granted before, which the shard may not have received yet.
    case insufficient(cumulative: QuotaAmounts, free: QuotaAmounts)
    case credited
    /// What the shard received and gave back so far, to be deposited.
    case released(received: QuotaAmounts, returned: QuotaAmounts)
    case deposited
    /// The month that the ledger counts for, and its bytes so far.
    case transfer(month: UInt64, bytes: UInt64)

    package func encode(to writer: inout WireWriter) { Parts(self).encode(to: &writer) }

    package init(from reader: inout WireReader) throws(WireError) { self = try Parts(from: &reader).outcome() }

    /// An outcome's binary form.
    fileprivate struct Parts: WireMessage {
        var kind: UInt64 = 0
        var first: QuotaAmounts?
        var second: QuotaAmounts?
        var month: UInt64?
        var bytes: UInt64?

        static var blank: Self { Parts() }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &kind)
            try wire.field(2, &first)
            try wire.field(3, &second)
            try wire.field(4, &month)
            try wire.field(5, &bytes)
        }

        func outcome() throws(WireError) -> QuotaOutcome {
            let (first, second) = (first ?? .zero, second ?? .zero)
            switch kind {
            case 1: return .granted(cumulative: first, free: second)
            case 2: return .insufficient(cumulative: first, free: second)
            case 3: return .credited
            case 4: return .released(received: first, returned: second)
            case 5: return .deposited
            case 6: return .transfer(month: month ?? 0, bytes: bytes ?? 0)
            default: throw .invalidValue(field: 1)
            }
        }
    }
}

extension QuotaOutcome.Parts {
    fileprivate init(_ outcome: QuotaOutcome) {
        switch outcome {
        case .granted(let cumulative, let free): self.init(kind: 1, first: cumulative, second: free)
        case .insufficient(let cumulative, let free): self.init(kind: 2, first: cumulative, second: free)
        case .credited: self.init(kind: 3)
        case .released(let received, let returned): self.init(kind: 4, first: received, second: returned)
        case .deposited: self.init(kind: 5)
        case .transfer(let month, let bytes): self.init(kind: 6, month: month, bytes: bytes)
        }
    }
}
