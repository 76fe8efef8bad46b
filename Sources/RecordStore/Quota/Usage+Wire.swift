import RecordModel
package import Wire

extension DatabaseUsage: WireMessage {
    package static var blank: Self {
        DatabaseUsage(key: .blank, used: QuotaAmounts(), allotted: QuotaAmounts(), zones: [])
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &key)
        try wire.field(2, &used)
        try wire.field(3, &allotted)
        try wire.field(4, &zones)
        try wire.field(5, &unattributed, unless: .zero)
        try wire.field(6, &others, unless: .zero)
    }
}

extension ZoneUsage: WireMessage {
    package static var blank: Self { ZoneUsage(name: "", used: .zero, recount: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.field(2, &used)
        try wire.field(3, &recount)
    }
}

extension UsagePage: WireMessage {
    package static var blank: Self { UsagePage(databases: [], hasMore: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &databases)
        try wire.field(2, &hasMore, unless: false)
        try wire.field(3, &isLastCut, unless: false)
    }
}

extension LedgerState: WireMessage {
    package static var blank: Self { LedgerState() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &shares)
        try wire.field(2, &cap)
        try wire.field(3, &epoch)
        try wire.field(4, &transferMonth)
        try wire.field(5, &transferBytes)
    }
}

extension LedgerState.Share: WireMessage {
    package static var blank: Self { LedgerState.Share(shard: 0, granted: .zero, returned: .zero) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &shard)
        try wire.field(2, &granted)
        try wire.field(3, &returned)
    }
}
