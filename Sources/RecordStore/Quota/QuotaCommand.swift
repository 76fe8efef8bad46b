package import RecordModel

/// A move of allotments between a database's ledger and its shards, or what a ledger counts besides.
///
/// Everything that is given and given back is told as a sum over all times, so that messages may be lost, repeated and
/// overtake each other: the receiver takes what is new in the sum. What a ledger gave and no shard received yet, and
/// what a shard gave back and the ledger did not hear of, is in flight and belongs to nobody.
package enum QuotaCommand: Hashable, Sendable {
    case grant(QuotaGrant)
    case credit(QuotaCredit)
    case release(QuotaRelease)
    case deposit(QuotaDeposit)
    case addTransfer(QuotaTransfer)
}

/// Asks a ledger for more; applied at the ledger's shard.
package struct QuotaGrant: Hashable, Sendable {
    /// Whose data it is for.
    package var ledger: DatabaseKey
    /// The group that asks.
    package var shard: UInt64
    /// What it would take, and what it must have: all of `need` is given or nothing. What the ledger gave before and
    /// the shard did not receive counts for both.
    package var want: QuotaAmounts
    package var need: QuotaAmounts
    /// What the shard received and gave back so far. A ledger that knows of less, because it was restored or not told,
    /// takes it over.
    package var received: QuotaAmounts
    package var returned: QuotaAmounts
    /// What all shards together may have.
    package var cap: QuotaAmounts
    /// The version of the limits that `cap` is from; a ledger that saw a greater one goes by the cap that came with it.
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
}

/// Brings a shard what its ledger granted; applied at the zone's shard.
package struct QuotaCredit: Hashable, Sendable {
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
}

/// Has a shard give back what a database does not use; applied at the zone's shard.
package struct QuotaRelease: Hashable, Sendable {
    package var database: DatabaseKey

    package init(database: DatabaseKey) { self.database = database }
}

/// Brings a ledger what a shard gave back; applied at the ledger's shard.
package struct QuotaDeposit: Hashable, Sendable {
    package var ledger: DatabaseKey
    package var shard: UInt64
    /// What the shard received and gave back so far.
    package var received: QuotaAmounts
    package var returned: QuotaAmounts

    package init(ledger: DatabaseKey, shard: UInt64, received: QuotaAmounts, returned: QuotaAmounts) {
        self.ledger = ledger
        self.shard = shard
        self.received = received
        self.returned = returned
    }
}

/// Counts bytes of requests for a month; applied at the ledger's shard. Not idempotent.
package struct QuotaTransfer: Hashable, Sendable {
    package var ledger: DatabaseKey
    /// Year times 100 plus month, as 202611. A later one begins at 0; what comes for an earlier one is not counted, nor
    /// what comes for one that is not the shard's own month or the next: that sender's clock is wrong.
    package var month: UInt64
    package var bytes: UInt64

    package init(ledger: DatabaseKey, month: UInt64, bytes: UInt64) {
        self.ledger = ledger
        self.month = month
        self.bytes = bytes
    }

    /// The month of a time in milliseconds since 1970, in UTC, as 202611.
    package static func month(of time: Int64) -> UInt64 {
        // Days of years that begin in March, as leap days then come last; 719,468 days before 1970 is 1 March of
        // year 0.
        let days = max(time, 0) / 86_400_000 + 719_468
        let (era, day) = (days / 146_097, days % 146_097)
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
        let month = (5 * (day - (365 * year + year / 4 - year / 100)) + 2) / 153
        return UInt64((era * 400 + year + (month < 10 ? 0 : 1)) * 100 + (month < 10 ? month + 3 : month - 9))
    }
}

/// What became of a quota command; one whose sums make no sense is refused.
package enum QuotaOutcome: Hashable, Sendable {
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
}
