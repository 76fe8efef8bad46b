package import RecordModel
package import Wire

/// What became of a command.
package enum RecordOutcome: Hashable, Sendable, WireUnion {
    /// One item for each operation, in order; each stands alone.
    case records([ItemOutcome])
    /// Nothing was written: the failing items keep their code, the others have `ATOMIC_ERROR`.
    case atomicFailure([ItemOutcome])
    case zone(ZoneOutcome)
    case schemaInstalled
    /// A part of the maintenance was done; `hasMore` says whether another command has something to do.
    case maintained(hasMore: Bool)
    /// Nothing was written: the shard has another schema version (0: none). If it is lower, install the schema and send
    /// the command again; if higher, check and encode the request again.
    case needsSchema(installed: UInt64)
    /// Nothing was written: the shard lacks allotment. Have the ledger grant it, credit it, and send the command again,
    /// which is not remembered as a request that was answered.
    case needsAllotment(QuotaNeed)
    case quota(QuotaOutcome)
    /// Nothing was written: the whole request fails.
    case refused(ServiceError)

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

/// What became of one operation.
package enum ItemOutcome: Hashable, Sendable, WireCodable {
    case saved(SavedRecord)
    case deleted
    /// `serverRecord` is the stored record where a tag or an insertion clashed and the caller may read it, as long as
    /// the records of a command's outcome are not more than 4 MB.
    case failed(ServiceError, serverRecord: Record?)

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

/// What the store added to a saved record.
package struct SavedRecord: Hashable, Sendable, WireMessage {
    /// The type of the stored record, also where the operation named none.
    package var recordType: String
    /// The tag that the next `update`, `replace` or `delete` of the record has to name.
    package var changeTag: ChangeTag
    /// Who saved the record first, and when; a record that is saved again after its deletion is a new one.
    package var created: Stamp
    /// This save: the caller, and the time of the command by the rules of `ShardClock`.
    package var modified: Stamp
    /// All fields of the record, where they are others than those the operation set and the caller may read them;
    /// else nil.
    package var mergedFields: Fields?

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

/// What became of a zone command.
package enum ZoneOutcome: Hashable, Sendable {
    /// The zone as it is now, whether this command made it or an earlier one.
    case exists(ZoneState)
    case deleted
}

/// A zone as the shard knows it.
package struct ZoneState: Hashable, Sendable, WireMessage {
    /// `ZoneKey.defaultZoneName` for the default zone.
    package var name: String
    /// Grows when the zone is recreated or restored; 0 only for a default zone that nothing was written to yet.
    package var incarnation: UInt64
    /// The number of the zone's last change.
    package var sequence: UInt64

    package init(name: String, incarnation: UInt64, sequence: UInt64) {
        self.name = name
        self.incarnation = incarnation
        self.sequence = sequence
    }

    package static var blank: Self { ZoneState(name: "", incarnation: 0, sequence: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.field(2, &incarnation)
        try wire.field(3, &sequence)
    }
}

private struct Items: WireMessage {
    var items: [ItemOutcome]

    init(_ items: [ItemOutcome]) { self.items = items }

    static var blank: Self { Items([]) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) { try wire.field(1, &items) }
}
