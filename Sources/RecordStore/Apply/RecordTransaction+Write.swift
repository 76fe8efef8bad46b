import GRDB
import RecordModel

extension RecordTransaction {
    /// Carries a verdict out.
    func write(_ verdict: Verdict, command: ModifyRecords) throws -> ItemOutcome {
        switch verdict {
        case .fail(let error, let record): return .failed(error, serverRecord: record)
        case .nothing: return .deleted
        case .save(let plan): return .saved(try save(plan, command: command))
        case .delete(let row, let type):
            try delete(row, type: type, command: command)
            return .deleted
        }
    }

    private func save(_ plan: PlannedSave, command: ModifyRecords) throws -> SavedRecord {
        let (zone, sequence) = try nextSequence(command.zone)
        let userID = try makeUserID(command.caller)
        let modified = Stamp(timestamp: time, user: try names.name(userID))
        let body = SQLValue.blob(encodeBody(plan.fields))
        var after = IndexedRecord(
            name: plan.name, sequence: sequence, created: modified, modified: modified, fields: plan.fields)
        if let row = plan.row {
            let createdAt = plan.storedFields == nil ? time : row.createdAt
            let createdBy = plan.storedFields == nil ? userID : row.createdBy
            after.created = Stamp(timestamp: createdAt, user: try names.name(createdBy))
            try statements.updateRecord.run(
                .integer(plan.type.id), .integer(sequence), .integer(createdAt), .integer(createdBy), .integer(time),
                .integer(userID), .integer(0), body, .integer(row.id))
            let before = try plan.storedFields.map { try indexedRecord(row, fields: $0) }
            try updateIndexes(plan.type, zoneID: zone.id, recordID: row.id, from: before, to: after)
        } else {
            try statements.insertRecord.run(
                .integer(zone.id), .text(plan.name), .integer(plan.type.id), .integer(sequence), .integer(time),
                .integer(userID), .integer(time), .integer(userID), body)
            try updateIndexes(plan.type, zoneID: zone.id, recordID: db.lastInsertedRowID, from: nil, to: after)
        }
        return SavedRecord(
            recordType: plan.type.definition.name, changeTag: zone.changeTag(sequence), created: after.created,
            modified: modified, mergedFields: plan.differsFromRequest ? plan.fields : nil)
    }

    /// Leaves a tombstone, which the change feed shows under a new sequence.
    private func delete(_ row: RecordRow, type: InstalledType?, command: ModifyRecords) throws {
        let (zone, sequence) = try nextSequence(command.zone)
        let userID = try makeUserID(command.caller)
        if let type {
            let before = try indexedRecord(row, fields: try decodeBody(row.body))
            try updateIndexes(type, zoneID: zone.id, recordID: row.id, from: before, to: nil)
        }
        try statements.updateRecord.run(
            .integer(row.typeID), .integer(sequence), .integer(row.createdAt), .integer(row.createdBy), .integer(time),
            .integer(userID), .integer(1), .null, .integer(row.id))
    }
}
