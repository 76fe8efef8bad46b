import RecordModel
package import Wire

extension QuotaCommand: WireCodable {
    /// The field's number says which command it is.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .grant(let command): writer.field(1) { command.encode(to: &$0) }
        case .credit(let command): writer.field(2) { command.encode(to: &$0) }
        case .release(let command): writer.field(3) { command.encode(to: &$0) }
        case .deposit(let command): writer.field(4) { command.encode(to: &$0) }
        case .addTransfer(let command): writer.field(5) { command.encode(to: &$0) }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var command: QuotaCommand?
        while let field = try reader.nextField() {
            switch field {
            case 1: command = .grant(try reader.message())
            case 2: command = .credit(try reader.message())
            case 3: command = .release(try reader.message())
            case 4: command = .deposit(try reader.message())
            case 5: command = .addTransfer(try reader.message())
            default: try reader.skip()
            }
        }
        guard let command else { throw .missingField(1) }
        self = command
    }
}

extension QuotaGrant: WireCodable {
    /// 1 ledger, 2 shard, 3 want, 4 need, 5 received, 6 cap, 7 epoch, 8 time, 9 returned.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { ledger.encode(to: &$0) }
        writer.field(2, shard)
        writer.field(3) { want.encode(to: &$0) }
        writer.field(4) { need.encode(to: &$0) }
        writer.field(5) { received.encode(to: &$0) }
        writer.field(6) { cap.encode(to: &$0) }
        writer.field(7, epoch)
        writer.field(8, signed: time)
        writer.field(9) { returned.encode(to: &$0) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var ledger: DatabaseKey?
        var (shard, epoch, time): (UInt64, UInt64, Int64) = (0, 0, 0)
        var (want, need, cap) = (QuotaAmounts(), QuotaAmounts(), QuotaAmounts())
        var (received, returned) = (QuotaAmounts(), QuotaAmounts())
        while let field = try reader.nextField() {
            switch field {
            case 1: ledger = try reader.message()
            case 2: shard = try reader.unsigned()
            case 3: want = try reader.message()
            case 4: need = try reader.message()
            case 5: received = try reader.message()
            case 6: cap = try reader.message()
            case 7: epoch = try reader.unsigned()
            case 8: time = try reader.signed()
            case 9: returned = try reader.message()
            default: try reader.skip()
            }
        }
        guard let ledger else { throw .missingField(1) }
        self.init(
            ledger: ledger, shard: shard, want: want, need: need, received: received, returned: returned, cap: cap,
            epoch: epoch, time: time)
    }
}

extension QuotaCredit: WireCodable {
    /// 1 database, 2 cumulative, 3 epoch, 4 of what the ledger is overdrawn.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { database.encode(to: &$0) }
        writer.field(2) { cumulative.encode(to: &$0) }
        writer.field(3, epoch)
        if !overdrawn.isEmpty { writer.field(4, UInt64(bitPattern: overdrawn.rawValue)) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var database: DatabaseKey?
        var cumulative = QuotaAmounts()
        var (epoch, overdrawn): (UInt64, UInt64) = (0, 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: database = try reader.message()
            case 2: cumulative = try reader.message()
            case 3: epoch = try reader.unsigned()
            case 4: overdrawn = try reader.unsigned()
            default: try reader.skip()
            }
        }
        guard let database else { throw .missingField(1) }
        self.init(
            database: database, cumulative: cumulative, epoch: epoch,
            overdrawn: QuotaParts(rawValue: Int64(bitPattern: overdrawn)).intersection(.all))
    }
}

extension QuotaRelease: WireCodable {
    /// 1 database.
    package func encode(to writer: inout WireWriter) { writer.field(1) { database.encode(to: &$0) } }

    package init(from reader: inout WireReader) throws(WireError) {
        var database: DatabaseKey?
        while let field = try reader.nextField() {
            switch field {
            case 1: database = try reader.message()
            default: try reader.skip()
            }
        }
        guard let database else { throw .missingField(1) }
        self.init(database: database)
    }
}

extension QuotaDeposit: WireCodable {
    /// 1 ledger, 2 shard, 3 received, 4 returned.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { ledger.encode(to: &$0) }
        writer.field(2, shard)
        writer.field(3) { received.encode(to: &$0) }
        writer.field(4) { returned.encode(to: &$0) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var ledger: DatabaseKey?
        var shard: UInt64 = 0
        var (received, returned) = (QuotaAmounts(), QuotaAmounts())
        while let field = try reader.nextField() {
            switch field {
            case 1: ledger = try reader.message()
            case 2: shard = try reader.unsigned()
            case 3: received = try reader.message()
            case 4: returned = try reader.message()
            default: try reader.skip()
            }
        }
        guard let ledger else { throw .missingField(1) }
        self.init(ledger: ledger, shard: shard, received: received, returned: returned)
    }
}

extension QuotaTransfer: WireCodable {
    /// 1 ledger, 2 month, 3 bytes.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { ledger.encode(to: &$0) }
        writer.field(2, month)
        writer.field(3, bytes)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var ledger: DatabaseKey?
        var (month, bytes): (UInt64, UInt64) = (0, 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: ledger = try reader.message()
            case 2: month = try reader.unsigned()
            case 3: bytes = try reader.unsigned()
            default: try reader.skip()
            }
        }
        guard let ledger else { throw .missingField(1) }
        self.init(ledger: ledger, month: month, bytes: bytes)
    }
}
