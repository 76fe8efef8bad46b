package import Wire

/// Under what terms a request's records may grow.
package struct QuotaTerms: Hashable, Sendable {
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
}

/// What a shard lacks of a database's allotment to apply a command.
package struct QuotaNeed: Hashable, Sendable {
    /// Beyond the allotment; at least one is greater than 0.
    package var need: QuotaAmounts
    /// What the shard received and gave back so far, as the ledger counts it.
    package var received: QuotaAmounts
    package var returned: QuotaAmounts
    /// Whether the shard has something unused that counts as given back under the command's terms: it is to be released
    /// before the ledger is asked, or the ledger takes it for used.
    package var holdsVoid: Bool
    /// The greatest that the command and the shard know; where it is not the command's, the node's limits are
    /// outdated.
    package var epoch: UInt64

    package init(
        need: QuotaAmounts, received: QuotaAmounts, returned: QuotaAmounts = .zero, holdsVoid: Bool = false,
        epoch: UInt64
    ) {
        self.need = need
        self.received = received
        self.returned = returned
        self.holdsVoid = holdsVoid
        self.epoch = epoch
    }
}

extension QuotaTerms: WireMessage {
    package static var blank: Self { QuotaTerms(epoch: 0, isFinal: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &epoch)
        try wire.field(2, &isFinal, unless: false)
        try wire.field(3, &limit, unless: .unlimited)
    }
}

extension QuotaNeed: WireMessage {
    package static var blank: Self { QuotaNeed(need: .zero, received: .zero, epoch: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &need)
        try wire.field(2, &received)
        try wire.field(3, &epoch)
        try wire.field(4, &returned)
        try wire.field(5, &holdsVoid, unless: false)
    }
}
