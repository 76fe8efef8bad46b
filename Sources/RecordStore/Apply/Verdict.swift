import Authorization
import RecordModel

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
    /// Those that the record has.
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
    /// The stored record and its type; nil where there is none, a tombstone, or a record of a type that the schema
    /// lost, which maintenance will make a tombstone.
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
