import RecordModel
package import Wire

extension QuotaCommand: WireUnion {
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

extension QuotaGrant: WireMessage {
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

extension QuotaCredit: WireMessage {
    package static var blank: Self { QuotaCredit(database: .blank, cumulative: .zero, epoch: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
        try wire.field(2, &cumulative)
        try wire.field(3, &epoch)
        try wire.field(4, &overdrawn, unless: [])
    }
}

extension QuotaRelease: WireMessage {
    package static var blank: Self { QuotaRelease(database: .blank) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
    }
}

extension QuotaDeposit: WireMessage {
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

extension QuotaTransfer: WireMessage {
    package static var blank: Self { QuotaTransfer(ledger: .blank, month: 0, bytes: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &ledger)
        try wire.field(2, &month)
        try wire.field(3, &bytes)
    }
}

extension QuotaParts: WireOptions {
    package static var known: Self { .all }
}
