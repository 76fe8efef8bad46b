import RecordModel
package import Wire

extension RecordOutcome: WireUnion {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .records(let items): Items(items).write(1, to: &writer)
        case .atomicFailure(let items): Items(items).write(2, to: &writer)
        case .zone(.exists(let zone)): zone.write(3, to: &writer)
        case .zone(.deleted): writer.field(4, true)
        case .schemaInstalled: writer.field(5, true)
        case .needsSchema(let installed): writer.field(6, installed)
        case .refused(let error): error.write(7, to: &writer)
        case .maintained(let hasMore): writer.field(8, hasMore)
        case .needsAllotment(let need): need.write(9, to: &writer)
        case .quota(let outcome): outcome.write(10, to: &writer)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .records(try reader.message(Items.self).items)
        case 2: self = .atomicFailure(try reader.message(Items.self).items)
        case 3: self = .zone(.exists(try reader.message()))
        case 4: self = try reader.flag(.zone(.deleted))
        case 5: self = try reader.flag(.schemaInstalled)
        case 6: self = .needsSchema(installed: try reader.unsigned())
        case 7: self = .refused(try reader.message())
        case 8: self = .maintained(hasMore: try reader.bool())
        case 9: self = .needsAllotment(try reader.message())
        case 10: self = .quota(try reader.message())
        default: return nil
        }
    }
}

private struct Items: WireMessage {
    var items: [ItemOutcome]

    init(_ items: [ItemOutcome]) { self.items = items }

    static var blank: Self { Items([]) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) { try wire.field(1, &items) }
}

extension ItemOutcome: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .saved(let record): writer.field(1) { record.encode(to: &$0) }
        case .deleted: writer.field(2, true)
        case .failed(let error, let serverRecord):
            writer.field(3) { error.encode(to: &$0) }
            if let serverRecord { writer.field(4) { serverRecord.encode(to: &$0) } }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var outcome: ItemOutcome?
        var serverRecord: Record?
        while let field = try reader.nextField() {
            switch field {
            case 1: outcome = .saved(try reader.message())
            case 2:
                try reader.skip()
                outcome = .deleted
            case 3: outcome = .failed(try reader.message(), serverRecord: nil)
            case 4: serverRecord = try reader.message()
            default: try reader.skip()
            }
        }
        if case .failed(let error, _) = outcome { outcome = .failed(error, serverRecord: serverRecord) }
        guard let outcome else { throw .missingField(1) }
        self = outcome
    }
}

extension SavedRecord: WireMessage {
    package static var blank: Self {
        SavedRecord(recordType: "", changeTag: .blank, created: .blank, modified: .blank, mergedFields: nil)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &recordType)
        try wire.field(2, &changeTag)
        try wire.field(3, &created)
        try wire.field(4, &modified)
        try wire.field(5, &mergedFields)
    }
}

extension ZoneState: WireMessage {
    package static var blank: Self { ZoneState(name: "", incarnation: 0, sequence: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.field(2, &incarnation)
        try wire.field(3, &sequence)
    }
}
