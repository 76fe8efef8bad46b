import RecordModel
package import Wire

extension RecordOutcome: WireEncodable, WireDecodable {
    /// The field's number says which outcome it is.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .records(let items): writer.field(1) { Self.write(items, to: &$0) }
        case .atomicFailure(let items): writer.field(2) { Self.write(items, to: &$0) }
        case .zone(.exists(let zone)): writer.field(3) { zone.encode(to: &$0) }
        case .zone(.deleted): writer.field(4, true)
        case .schemaInstalled: writer.field(5, true)
        case .needsSchema(let installed): writer.field(6, installed)
        case .refused(let error): writer.field(7) { error.encode(to: &$0) }
        case .maintained(let hasMore): writer.field(8, hasMore)
        case .needsAllotment(let need): writer.field(9) { need.encode(to: &$0) }
        case .quota(let outcome): writer.field(10) { outcome.encode(to: &$0) }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var outcome: RecordOutcome?
        while let field = try reader.nextField() {
            switch field {
            case 1: outcome = .records(try Self.items(from: try reader.nested()))
            case 2: outcome = .atomicFailure(try Self.items(from: try reader.nested()))
            case 3: outcome = .zone(.exists(try reader.message()))
            case 4:
                try reader.skip()
                outcome = .zone(.deleted)
            case 5:
                try reader.skip()
                outcome = .schemaInstalled
            case 6: outcome = .needsSchema(installed: try reader.unsigned())
            case 7: outcome = .refused(try reader.message())
            case 8: outcome = .maintained(hasMore: try reader.bool())
            case 9: outcome = .needsAllotment(try reader.message())
            case 10: outcome = .quota(try reader.message())
            default: try reader.skip()
            }
        }
        guard let outcome else { throw .missingField(1) }
        self = outcome
    }

    private static func write(_ items: [ItemOutcome], to writer: inout WireWriter) {
        for item in items { writer.field(1) { item.encode(to: &$0) } }
    }

    private static func items(from reader: WireReader) throws(WireError) -> [ItemOutcome] {
        var reader = reader
        var items: [ItemOutcome] = []
        while let field = try reader.nextField() {
            if field == 1 { items.append(try reader.message()) } else { try reader.skip() }
        }
        return items
    }
}

extension ItemOutcome: WireEncodable, WireDecodable {
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

extension SavedRecord: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, recordType)
        writer.field(2) { changeTag.encode(to: &$0) }
        writer.field(3) { created.encode(to: &$0) }
        writer.field(4) { modified.encode(to: &$0) }
        if let mergedFields { writer.field(5) { mergedFields.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        let none = Stamp(timestamp: 0, user: "")
        self.init(
            recordType: "", changeTag: ChangeTag(incarnation: 0, sequence: 0), created: none, modified: none,
            mergedFields: nil)
        while let field = try reader.nextField() {
            switch field {
            case 1: recordType = try reader.string()
            case 2: changeTag = try reader.message()
            case 3: created = try reader.message()
            case 4: modified = try reader.message()
            case 5: mergedFields = try reader.message()
            default: try reader.skip()
            }
        }
    }
}

extension ZoneState: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, name)
        writer.field(2, incarnation)
        writer.field(3, sequence)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(name: "", incarnation: 0, sequence: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: name = try reader.string()
            case 2: incarnation = try reader.unsigned()
            case 3: sequence = try reader.unsigned()
            default: try reader.skip()
            }
        }
    }
}
