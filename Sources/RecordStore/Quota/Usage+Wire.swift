import RecordModel
package import Wire

extension DatabaseUsage: WireCodable {
    /// 1 key, 2 used, 3 allotted, 4 each zone, 5 unattributed, 6 others.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { key.encode(to: &$0) }
        writer.field(2) { used.encode(to: &$0) }
        writer.field(3) { allotted.encode(to: &$0) }
        for zone in zones { writer.field(4) { zone.encode(to: &$0) } }
        if unattributed != .zero { writer.field(5) { unattributed.encode(to: &$0) } }
        if others != .zero { writer.field(6) { others.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var key: DatabaseKey?
        var (used, allotted) = (QuotaAmounts(), QuotaAmounts())
        var (unattributed, others) = (QuotaAmounts(), QuotaAmounts())
        var zones: [ZoneUsage] = []
        while let field = try reader.nextField() {
            switch field {
            case 1: key = try reader.message()
            case 2: used = try reader.message()
            case 3: allotted = try reader.message()
            case 4: zones.append(try reader.message())
            case 5: unattributed = try reader.message()
            case 6: others = try reader.message()
            default: try reader.skip()
            }
        }
        guard let key else { throw .missingField(1) }
        self.init(key: key, used: used, allotted: allotted, zones: zones)
        self.unattributed = unattributed
        self.others = others
    }
}

extension ZoneUsage: WireCodable {
    /// 1 name, 2 used, 3 recount.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, name)
        writer.field(2) { used.encode(to: &$0) }
        if let recount { writer.field(3) { recount.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(name: "", used: .zero, recount: nil)
        while let field = try reader.nextField() {
            switch field {
            case 1: name = try reader.string()
            case 2: used = try reader.message()
            case 3: recount = try reader.message()
            default: try reader.skip()
            }
        }
    }
}

extension UsagePage: WireCodable {
    /// 1 each database, 2 whether another page follows, 3 whether it goes on with the last one.
    package func encode(to writer: inout WireWriter) {
        for database in databases { writer.field(1) { database.encode(to: &$0) } }
        if hasMore { writer.field(2, true) }
        if isLastCut { writer.field(3, true) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(databases: [], hasMore: false)
        while let field = try reader.nextField() {
            switch field {
            case 1: databases.append(try reader.message())
            case 2: hasMore = try reader.bool()
            case 3: isLastCut = try reader.bool()
            default: try reader.skip()
            }
        }
    }
}

extension LedgerState: WireCodable {
    /// 1 each share, 2 cap, 3 epoch, 4 month, 5 bytes.
    package func encode(to writer: inout WireWriter) {
        for share in shares { writer.field(1) { share.encode(to: &$0) } }
        writer.field(2) { cap.encode(to: &$0) }
        writer.field(3, epoch)
        writer.field(4, transferMonth)
        writer.field(5, transferBytes)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init()
        while let field = try reader.nextField() {
            switch field {
            case 1: shares.append(try reader.message())
            case 2: cap = try reader.message()
            case 3: epoch = try reader.unsigned()
            case 4: transferMonth = try reader.unsigned()
            case 5: transferBytes = try reader.unsigned()
            default: try reader.skip()
            }
        }
    }
}

extension LedgerState.Share: WireCodable {
    /// 1 shard, 2 granted, 3 returned.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, shard)
        writer.field(2) { granted.encode(to: &$0) }
        writer.field(3) { returned.encode(to: &$0) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(shard: 0, granted: .zero, returned: .zero)
        while let field = try reader.nextField() {
            switch field {
            case 1: shard = try reader.unsigned()
            case 2: granted = try reader.message()
            case 3: returned = try reader.message()
            default: try reader.skip()
            }
        }
    }
}
