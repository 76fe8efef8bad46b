import Authorization
import RecordModel

/// What is to become of one operation, decided before anything is written.
enum Verdict {
    case fail(ServiceError, Record?)
    /// Success without a change: the record to delete is not there.
    case nothing
    case save(PlannedSave)
    case delete(RecordRow, InstalledType?)

    var isFailure: Bool {
        if case .fail = self { true } else { false }
    }

    /// The item in an atomic batch that failed.
    var inFailedBatch: ItemOutcome {
        if case .fail(let error, let record) = self { return .failed(error, serverRecord: record) }
        return .failed(ServiceError(.atomicError, "another operation of the atomic batch failed"), serverRecord: nil)
    }
}

/// A save that passed every check.
struct PlannedSave {
    var name: String
    var type: InstalledType
    /// The row to write over: the stored record, or the tombstone of one with this name.
    var row: RecordRow?
    /// The stored record's fields; nil where the record is new.
    var storedFields: Fields?
    var fields: Fields
    /// Whether the client does not know all of `fields`.
    var differsFromRequest: Bool
}

/// What an operation is judged by.
struct JudgedRecord {
    var command: ModifyRecords
    var zone: ZoneRow?
    var schema: InstalledSchema?
    var row: RecordRow?
    /// The caller's number; nil if it never wrote to this shard.
    var callerID: Int64?

    /// The stored record; nil where there is none or a tombstone.
    var live: RecordRow? { row.flatMap { $0.isDeleted ? nil : $0 } }

    /// Whether the caller made the stored record.
    var isCreator: Bool {
        guard let live, let callerID else { return false }
        return command.caller.user != nil && live.createdBy == callerID
    }
}
