import GRDB
import RecordModel

/// Carries out what was decided of records, in a transaction.
struct RecordWriter: TransactionPart {
    let transaction: RecordTransaction
    private var indexes: IndexTable { IndexTable(transaction) }

    /// Carries a verdict out.
    func write(_ verdict: Verdict, batch: Batch) throws -> ItemOutcome {
        switch verdict {
        case .fail(let error, let record): return .failed(error, serverRecord: record)
        case .nothing: return .deleted
        case .save(let plan): return .saved(try save(plan, batch: batch))
        case .delete(let plan):
            try delete(plan, batch: batch)
            return .deleted
        }
    }

    private func writableZone(_ batch: Batch) throws -> OpenZone {
        if let zone = batch.zone { return zone }
        let zone = try transaction.makeZone(batch.command.zone)
        batch.zone = zone
        return zone
    }

    private func writer(_ batch: Batch) throws -> Int64 {
        if let id = batch.callerID { return id }
        let id = try transaction.makeUserID(batch.command.caller)
        batch.callerID = id
        return id
    }

    private func save(_ plan: PlannedSave, batch: Batch) throws -> SavedRecord {
        let zone = try writableZone(batch)
        let sequence = try transaction.nextSequence(zone)
        let userID = try writer(batch)
        zone.count(plan.rowGrowth)
        let modified = Stamp(timestamp: transaction.stamp, user: try transaction.names.name(userID))
        let body = plan.body
        var after = IndexedRecord(
            name: plan.name, sequence: sequence, created: modified, modified: modified, fields: plan.fields)
        let recordID: Int64
        if let row = plan.row {
            try check(row, named: plan.name, precedes: sequence, in: zone)
            recordID = row.id
            let createdAt = plan.storedFields == nil ? transaction.stamp : row.createdAt
            let createdBy = plan.storedFields == nil ? userID : row.createdBy
            after.created = Stamp(timestamp: createdAt, user: try transaction.names.name(createdBy))
            if row.isDeleted { zone.row.tombstones -= 1 }
            try transaction.statements.updateRecord.run(
                plan.type.id, sequence, createdAt, createdBy, transaction.stamp, userID, 0, body, recordID)
            try db.checkOneRow("the update of record \(row.id)")
        } else {
            try transaction.statements.insertRecord.run(
                zone.row.id, plan.name, plan.type.id, sequence, transaction.stamp, userID, transaction.stamp, userID,
                body)
            recordID = db.lastInsertedRowID
        }
        var indexGrowth: Int64 = 0
        for rows in plan.indexes {
            indexGrowth += try indexes.update(
                rows.index, zoneID: zone.row.id, recordID: recordID, from: rows.old,
                to: rows.index.system == nil ? rows.new : after.keys(in: rows.index))
        }
        zone.count(QuotaAmounts(bytes: indexGrowth))
        try EdgeTable(transaction).update(
            zone: zone, recordID: recordID, from: plan.storedEdges, to: plan.edges, sequence: sequence)
        try followSave(plan, after, in: zone, batch)
        return SavedRecord(
            recordType: plan.type.definition.name, changeTag: zone.row.changeTag(sequence), created: after.created,
            modified: modified, mergedFields: plan.tellsFields ? plan.fields : nil)
    }

    /// Keeps what a saved record was, counts its files, and queues it for matching.
    private func followSave(_ plan: PlannedSave, _ after: IndexedRecord, in zone: OpenZone, _ batch: Batch) throws {
        if plan.storedFields != nil, let row = plan.row, let versions = batch.versions {
            let end = VersionEnd(by: try writer(batch), isDeletion: false)
            try VersionTable(transaction).leave(of: row, type: plan.type, in: zone, end, versions)
        }
        try NamedAssets(transaction).update(from: plan.storedAssets, to: plan.assets)
        let event: Match.Event = plan.storedFields == nil ? .created : .updated
        try transaction.matcher.note(zone, type: plan.type.definition.name, event, after)
    }

    private func delete(_ plan: PlannedDeletion, batch: Batch) throws {
        let zone = try writableZone(batch)
        let userID = try writer(batch)
        try leaveTombstone(plan.row, type: plan.type, zone: zone, by: userID, batch.versions)
        for id in plan.cascade {
            guard let row = try transaction.rows.row(id) else { continue }
            try leaveTombstone(row, type: batch.schema.byID[row.typeID], zone: zone, by: userID, batch.versions)
        }
        if plan.leavesJob {
            try JobTable(transaction).addCascade(
                from: plan.row.name, zone: zone, caller: batch.command.caller, batch.versions)
        }
    }

    /// Leaves a tombstone, which the change feed shows under a new sequence.
    /// - Parameter type: nil where the schema lost it; then its index rows are found by index, and no version is kept.
    func leaveTombstone(
        _ row: RecordRow, type: InstalledType?, zone: OpenZone, by userID: Int64, _ versions: VersionKeeper?
    ) throws {
        let sequence = try transaction.nextSequence(zone)
        try Invariant.check(!row.isDeleted, "record \(row.id) of zone \(zone.row.id) was deleted already")
        try check(row, named: row.name, precedes: sequence, in: zone)
        let body = try decodeBody(row.body)
        var growth = QuotaAmounts.zero - transaction.counted.size(of: row, body.assets)
        var before: IndexedRecord?
        if let type {
            before = try transaction.indexedRecord(row, fields: type.visible(body))
            growth.bytes += try indexes.update(type, zoneID: zone.row.id, recordID: row.id, from: before, to: nil)
        }
        if transaction.counted.containsRecord(row.id) { growth.bytes += RowBytes.record + Int64(row.name.utf8.count) }
        if let type, let versions {
            let end = VersionEnd(by: userID, isDeletion: true)
            try VersionTable(transaction).leave(of: row, type: type, in: zone, end, versions)
        }
        try EdgeTable(transaction).update(
            zone: zone, recordID: row.id, from: Edge.all(in: body), to: [], sequence: sequence)
        try NamedAssets(transaction).update(from: body.assets, to: [])
        try transaction.matcher.note(zone, type: type?.definition.name ?? "", .deleted, before)
        zone.row.tombstones += 1
        zone.count(growth)
        try transaction.statements.updateRecord.run(
            row.typeID, sequence, row.createdAt, row.createdBy, transaction.stamp, userID, 1, [UInt8]?.none, row.id)
        try db.checkOneRow("the deletion of record \(row.id)")
    }

    /// Every change of a record is later in its zone's feed than the one before.
    private func check(
        _ row: RecordRow, named name: String, precedes sequence: Int64, in zone: OpenZone
    ) throws(InvariantViolation) {
        try Invariant.check(
            row.sequence > 0 && row.sequence < sequence,
            "record \(row.id) changed at \(row.sequence), and its zone \(zone.row.id) comes to \(sequence) only now")
        try Invariant.check(
            row.name.utf8.elementsEqual(name.utf8), "record \(row.id) is '\(row.name)', and was found as '\(name)'")
        try Invariant.check(
            !row.isDeleted || row.body.isEmpty, "the tombstone \(row.id) has \(row.body.count) bytes of values")
        try Invariant.check(
            !row.isDeleted || zone.row.tombstones > 0, "zone \(zone.row.id) counts no tombstone, and \(row.id) is one")
    }
}

extension Database {
    /// Makes sure that the statement before changed the row that was found, and no other.
    func checkOneRow(_ what: @autoclosure () -> String) throws(InvariantViolation) {
        try Invariant.check(changesCount == 1, "\(what()): \(changesCount) rows changed")
    }
}
