import Authorization
import RecordModel

/// Decides what becomes of an operation, before anything of it is written.
struct Judgement: TransactionPart {
    let transaction: RecordTransaction

    /// What becomes of an operation: by its kind, whether the record is there, and what the caller may do.
    func judge(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict {
        let type = operation.recordType.flatMap { judged.batch.schema.byName[$0]?.definition }
        if let refusal = operation.refusal(as: type, by: judged.caller, in: judged.batch.command.zone) {
            return .fail(refusal, nil)
        }
        switch operation.kind {
        case .create:
            if judged.live == nil { return try judgeCreation(operation, judged) }
            return .fail(.init(.exists, "record to insert already exists"), try readable(judged))
        case .forceUpdate, .forceReplace:
            return judged.live == nil ? try judgeCreation(operation, judged) : try judgeChange(operation, judged)
        case .update, .replace:
            return try judgeTag(operation, judged) ?? judgeChange(operation, judged)
        case .delete:
            return try judgeTag(operation, judged) ?? judgeDeletion(judged)
        case .forceDelete:
            return judged.live == nil ? .nothing : try judgeDeletion(judged)
        }
    }

    private func judgeCreation(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict {
        guard let typeName = operation.recordType else {
            return .fail(
                .init(.badRequest, "recordType is missing: \(operation.kind) may have to create the record"), nil)
        }
        guard let type = judged.batch.schema.byName[typeName] else { return .fail(Self.unknownType(typeName), nil) }
        let zone = judged.batch.command.zone
        if let refusal = UsersRules.refusalToCreate(
            operation.recordName, type: type.definition, by: judged.caller, in: zone)
        {
            return .fail(refusal, nil)
        }
        // The creator of a record to be is its creator: `_creator` may be granted creation.
        guard type.isUsers || judged.permissions(type, isCreator: true).contains(.create) else {
            return .fail(RecordChange.mayNotCreate(type.definition), nil)
        }
        return try SavePlanner(transaction).plan(operation, type: type, judged)
    }

    /// Existence, then permission, then the tag; nil if the operation may go on.
    private func judgeTag(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict? {
        guard let tag = operation.changeTag else {
            return .fail(.init(.badRequest, "recordChangeTag is missing: \(operation.kind) needs one"), nil)
        }
        guard let live = judged.live, let zone = judged.batch.zone else {
            return .fail(.init(.notFound, "Record not found"), nil)
        }
        if let denial = denialToWrite(judged) { return denial }
        let current = zone.row.changeTag(live.row.sequence)
        guard tag == current else {
            let record = try readable(judged)
            let detail = record == nil ? "" : ": the record's tag is \(current), not \(tag)"
            return .fail(.init(.conflict, "client oplock error updating record" + detail), record)
        }
        return nil
    }

    private func judgeChange(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict {
        guard let live = judged.live else { return .fail(.init(.notFound, "Record not found"), nil) }
        if let denial = denialToWrite(judged) { return denial }
        if let name = operation.recordType, name != live.type.definition.name {
            return .fail(
                .init(
                    .badRequest,
                    "recordType is \(name), but the record has type \(live.type.definition.name) for good"), nil)
        }
        return try SavePlanner(transaction).plan(operation, type: live.type, judged)
    }

    private func judgeDeletion(_ judged: JudgedRecord) throws -> Verdict {
        guard let live = judged.live else { return .fail(.init(.notFound, "Record not found"), nil) }
        if let denial = denialToWrite(judged) { return denial }
        if live.type.isUsers {
            return .fail(.init(.accessDenied, "records of type \(RecordType.usersName) cannot be deleted"), nil)
        }
        return try Deletions(transaction).plan(live.row, type: live.type, judged.batch)
    }

    static func unknownType(_ name: String) -> ServiceError {
        ServiceError(.badRequest, "record type not found: \(name)")
    }

    private func denialToWrite(_ judged: JudgedRecord) -> Verdict? {
        guard let live = judged.live else { return nil }
        let mayWrite =
            live.type.isUsers
            ? UsersRules.mayWrite(live.row.name, judged)
            : judged.permissions(live.type, isCreator: judged.isCreator).contains(.write)
        if mayWrite { return nil }
        return .fail(RecordChange.mayNotChange, nil)
    }

    /// The stored record, if the caller may read it and the outcome has room for it.
    private func readable(_ judged: JudgedRecord) throws -> Record? {
        guard let live = judged.live, let zone = judged.batch.zone,
            judged.permissions(live.type, isCreator: judged.isCreator).contains(.read),
            judged.batch.takeAnswerBytes(live.row.body.count)
        else { return nil }
        return try live.row.record(type: live.type, zone: zone.row, names: &transaction.names)
    }
}

/// What is to become of one operation, decided before anything of it is written.
enum Verdict {
    case fail(ServiceError, Record?)
    /// Success without a change: the record to delete is not there.
    case nothing
    case save(PlannedSave)
    case delete(PlannedDeletion)

    var isFailure: Bool {
        if case .fail = self { true } else { false }
    }

    /// What is stored grows by; what a deletion takes along is left out.
    var growth: QuotaAmounts {
        switch self {
        case .fail, .nothing: .zero
        case .save(let plan): plan.growth
        case .delete(let plan): plan.growth
        }
    }

    /// The item in an atomic batch that failed.
    var inFailedBatch: ItemOutcome {
        if case .fail(let error, let record) = self { return .failed(error, serverRecord: record) }
        return ItemOutcome.deleted.inFailedBatch
    }
}

extension ItemOutcome {
    /// The item in an atomic batch that failed.
    var inFailedBatch: ItemOutcome {
        if case .failed = self { return self }
        return .failed(ServiceError(.atomicError, "another operation of the atomic batch failed"), serverRecord: nil)
    }
}

/// A save that passed every check.
struct PlannedSave {
    var name: String
    var type: InstalledType
    /// The row to write over: the stored record, or what is left of one with this name.
    var row: RecordRow?
    /// The stored record's fields as its type has them; nil where the record is new.
    var storedFields: Fields?
    var fields: Fields
    /// The fields as the row has them.
    var body: [UInt8]
    /// The references with an action that the row has and that the record is to have.
    var storedEdges: [Edge]
    var edges: [Edge]
    /// The assets that the row has and that the record is to have.
    var storedAssets: [AssetReference]
    var assets: [AssetReference]
    /// Whether the outcome carries `fields`: the client does not know all of them, and may.
    var tellsFields: Bool
    /// What the record's row counts for from now on, less what it did before.
    var rowGrowth: QuotaAmounts
    /// The rows of each index, in the order of the type's indexes.
    var indexes: [PlannedIndexRows]
    /// The bytes by which index rows that count in the zone's quota grow.
    var indexGrowth: Int64

    var growth: QuotaAmounts { rowGrowth + QuotaAmounts(bytes: indexGrowth) }
}

/// A record's rows in one index before and after a save.
struct PlannedIndexRows {
    var index: InstalledIndex
    /// Nil where there was no record.
    var old: [IndexKey]?
    var new: [IndexKey]

    /// The bytes by which the rows grow. Of an index that is being built the old ones are taken to be there: what its
    /// building brings is no growth of a save.
    var growth: Int64 { IndexKey.rowBytes(new) - (old.map(IndexKey.rowBytes) ?? 0) }
    /// How many rows there will be.
    var rows: Int { max(new.count, 1) }
    var oldRows: Int { old.map { max($0.count, 1) } ?? 0 }
    /// How many are written and removed at most.
    var changedRows: Int { old == new ? 0 : oldRows + rows }
}

/// A deletion that passed every check.
struct PlannedDeletion {
    var row: RecordRow
    var type: InstalledType
    var assets: [AssetReference]
    /// The records that go with it in the same transaction, in order, by row.
    var cascade: [Int64] = []
    /// Whether records that refer to it are left to maintenance.
    var leavesJob = false
    /// What the record's tombstone counts for, less what the record did.
    var growth = QuotaAmounts.zero
}

/// What an operation is judged by.
struct JudgedRecord {
    let batch: Batch
    /// The row of the record's name, whatever its life.
    let row: RecordRow?
    /// The stored record and its type; nil for a tombstone, or if the schema lost the type: maintenance then deletes
    /// the record.
    let live: (row: RecordRow, type: InstalledType)?

    init(batch: Batch, row: RecordRow?) {
        self.batch = batch
        self.row = row
        live = row.flatMap { row in
            guard !row.isDeleted, let type = batch.schema.byID[row.typeID] else { return nil }
            return (row, type)
        }
    }

    var caller: Caller { batch.command.caller }

    /// Whether the caller made the stored record.
    var isCreator: Bool {
        guard let live, let callerID = batch.callerID else { return false }
        return caller.user != nil && live.row.createdBy == callerID
    }

    /// What the caller may do with records of a type.
    func permissions(_ type: InstalledType, isCreator: Bool) -> Permissions {
        Permissions(of: caller, in: type.definition, of: batch.command.zone.database, isCreator: isCreator)
    }
}
