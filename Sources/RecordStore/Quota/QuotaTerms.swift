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

extension QuotaTerms: WireCodable {
    /// 1 epoch, 2 whether final, 3 limit.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, epoch)
        if isFinal { writer.field(2, true) }
        if limit != .unlimited { writer.field(3) { limit.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(epoch: 0, isFinal: false)
        while let field = try reader.nextField() {
            switch field {
            case 1: epoch = try reader.unsigned()
            case 2: isFinal = try reader.bool()
            case 3: limit = try reader.message()
            default: try reader.skip()
            }
        }
    }
}

extension QuotaNeed: WireCodable {
    /// 1 need, 2 received, 3 epoch, 4 returned, 5 whether it holds what is void.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { need.encode(to: &$0) }
        writer.field(2) { received.encode(to: &$0) }
        writer.field(3, epoch)
        writer.field(4) { returned.encode(to: &$0) }
        if holdsVoid { writer.field(5, true) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(need: .zero, received: .zero, epoch: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: need = try reader.message()
            case 2: received = try reader.message()
            case 3: epoch = try reader.unsigned()
            case 4: returned = try reader.message()
            case 5: holdsVoid = try reader.bool()
            default: try reader.skip()
            }
        }
    }
}
