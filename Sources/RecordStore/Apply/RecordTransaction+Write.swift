import Authorization
import GRDB
import RecordModel
import Wire

extension RecordTransaction {
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
        let zone = try makeZone(batch.command.zone)
        batch.zone = zone
        return zone
    }

    private func writer(_ batch: Batch) throws -> Int64 {
        if let id = batch.callerID { return id }
        let id = try makeUserID(batch.command.caller)
        batch.callerID = id
        return id
    }

    private func save(_ plan: PlannedSave, batch: Batch) throws -> SavedRecord {
        let zone = try writableZone(batch)
        let sequence = try nextSequence(zone)
        let userID = try writer(batch)
        zone.count(plan.rowGrowth)
        let modified = Stamp(timestamp: stamp, user: try names.name(userID))
        let body = plan.body
        var after = IndexedRecord(
            name: plan.name, sequence: sequence, created: modified, modified: modified, fields: plan.fields)
        let recordID: Int64
        if let row = plan.row {
            try check(row, named: plan.name, precedes: sequence, in: zone)
            recordID = row.id
            let createdAt = plan.storedFields == nil ? stamp : row.createdAt
            let createdBy = plan.storedFields == nil ? userID : row.createdBy
            after.created = Stamp(timestamp: createdAt, user: try names.name(createdBy))
            if row.isDeleted { zone.row.tombstones -= 1 }
            try statements.updateRecord.run(
                plan.type.id, sequence, createdAt, createdBy, stamp, userID, 0, body, recordID)
            try db.checkOneRow("the update of record \(row.id)")
        } else {
            try statements.insertRecord.run(
                zone.row.id, plan.name, plan.type.id, sequence, stamp, userID, stamp, userID, body)
            recordID = db.lastInsertedRowID
        }
        var indexGrowth: Int64 = 0
        for rows in plan.indexes {
            indexGrowth += try updateIndex(
                rows.index, zoneID: zone.row.id, recordID: recordID, from: rows.old,
                to: rows.index.system == nil ? rows.new : after.keys(in: rows.index))
        }
        zone.count(QuotaAmounts(bytes: indexGrowth))
        try updateEdges(zone: zone, recordID: recordID, from: plan.storedEdges, to: plan.edges, sequence: sequence)
        try followSave(plan, after, in: zone, batch)
        return SavedRecord(
            recordType: plan.type.definition.name, changeTag: zone.row.changeTag(sequence), created: after.created,
            modified: modified, mergedFields: plan.tellsFields ? plan.fields : nil)
    }

    /// Keeps what a saved record was, counts its files, and queues it for matching.
    private func followSave(_ plan: PlannedSave, _ after: IndexedRecord, in zone: OpenZone, _ batch: Batch) throws {
        if plan.storedFields != nil, let row = plan.row, let versions = batch.versions {
            let end = VersionEnd(by: try writer(batch), isDeletion: false)
            try VersionTable(self).leave(of: row, type: plan.type, in: zone, end, versions)
        }
        try NamedAssets(self).update(from: plan.storedAssets, to: plan.assets)
        let event: Match.Event = plan.storedFields == nil ? .created : .updated
        try matcher.note(zone, type: plan.type.definition.name, event, after)
    }

    private func delete(_ plan: PlannedDeletion, batch: Batch) throws {
        let zone = try writableZone(batch)
        let userID = try writer(batch)
        try leaveTombstone(plan.row, type: plan.type, zone: zone, by: userID, batch.versions)
        for id in plan.cascade {
            guard let row = try rows.row(id) else { continue }
            try leaveTombstone(row, type: batch.schema.byID[row.typeID], zone: zone, by: userID, batch.versions)
        }
        if plan.leavesJob {
            try addCascade(from: plan.row.name, zone: zone, caller: batch.command.caller, batch.versions)
        }
    }

    /// Leaves a tombstone, which the change feed shows under a new sequence.
    /// - Parameter type: nil where the schema lost it; then its index rows are found by index, and no version is kept.
    func leaveTombstone(
        _ row: RecordRow, type: InstalledType?, zone: OpenZone, by userID: Int64, _ versions: VersionKeeper?
    ) throws {
        let sequence = try nextSequence(zone)
        try Invariant.check(!row.isDeleted, "record \(row.id) of zone \(zone.row.id) was deleted already")
        try check(row, named: row.name, precedes: sequence, in: zone)
        let body = try decodeBody(row.body)
        var growth = QuotaAmounts.zero - counted.size(of: row, body.assets)
        var before: IndexedRecord?
        if let type {
            before = try indexedRecord(row, fields: type.visible(body))
            growth.bytes += try updateIndexes(type, zoneID: zone.row.id, recordID: row.id, from: before, to: nil)
        }
        if counted.containsRecord(row.id) { growth.bytes += RowBytes.record + Int64(row.name.utf8.count) }
        if let type, let versions {
            let end = VersionEnd(by: userID, isDeletion: true)
            try VersionTable(self).leave(of: row, type: type, in: zone, end, versions)
        }
        try updateEdges(zone: zone, recordID: row.id, from: Edge.all(in: body), to: [], sequence: sequence)
        try NamedAssets(self).update(from: body.assets, to: [])
        try matcher.note(zone, type: type?.definition.name ?? "", .deleted, before)
        zone.row.tombstones += 1
        zone.count(growth)
        try statements.updateRecord.run(
            row.typeID, sequence, row.createdAt, row.createdBy, stamp, userID, 1, [UInt8]?.none, row.id)
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

extension IndexKey {
    /// The keys of one array that another has not; both are ascending and without repetition, as is the result.
    static func missing(of keys: [IndexKey], in others: [IndexKey]) -> [IndexKey] {
        if others.isEmpty { return keys }
        var place = 0
        return keys.filter { key in
            while place < others.count, others[place] < key { place += 1 }
            return place == others.count || others[place] != key
        }
    }
}

/// What a record's index rows are made from.
struct IndexedRecord {
    var name: String
    var sequence: Int64
    var created: Stamp
    var modified: Stamp
    var fields: Fields

    /// The record's keys in one index, ascending; empty without a value.
    func keys(in index: InstalledIndex) -> [IndexKey] {
        switch index.purpose {
        case .values: valueKeys(in: index)
        case .tokens: Tokenizer.tokens(of: fields[index.name]).map(IndexKey.bytes)
        case .cells: locationKeys(fields[index.name])
        }
    }

    /// A list of locations has no cells; the schema gives it no such index.
    private func locationKeys(_ value: FieldValue?) -> [IndexKey] {
        guard case .location(let location)? = value, let cell = LocationCell(location) else { return [] }
        return [.number(cell.value)]
    }

    private func valueKeys(in index: InstalledIndex) -> [IndexKey] {
        guard let system = index.system else { return index.type.indexKeys(fields[index.name]) }
        return switch system {
        case .recordID: [.bytes(Array(name.utf8))]
        case .createTime: [.number(created.timestamp)]
        case .modTime: [.number(modified.timestamp)]
        case .createdBy: [.bytes(Array(created.user.utf8))]
        case .modifiedBy: [.bytes(Array(modified.user.utf8))]
        case .etag: [.number(sequence)]
        case .parent: index.type.indexKeys(fields[SystemField.parent.rawValue])
        }
    }
}

extension RecordTransaction {
    func indexedRecord(_ row: RecordRow, fields: Fields) throws -> IndexedRecord {
        IndexedRecord(
            name: row.name, sequence: row.sequence,
            created: Stamp(timestamp: row.createdAt, user: try names.name(row.createdBy)),
            modified: Stamp(timestamp: row.modifiedAt, user: try names.name(row.modifiedBy)), fields: fields)
    }

    /// Writes the index rows that differ between two versions of a record; nil is no record.
    /// - Returns: the bytes by which what counts in the zone's quota grew.
    func updateIndexes(
        _ type: InstalledType, zoneID: Int64, recordID: Int64, from before: IndexedRecord?, to after: IndexedRecord?
    ) throws -> Int64 {
        try type.indexes.reduce(0) { growth, index in
            try growth
                + updateIndex(
                    index, zoneID: zoneID, recordID: recordID, from: before?.keys(in: index), to: after?.keys(in: index)
                )
        }
    }

    /// The same for one index.
    func updateIndex(
        _ index: InstalledIndex, zoneID: Int64, recordID: Int64, from old: [IndexKey]?, to new: [IndexKey]?
    ) throws -> Int64 {
        if old == new { return 0 }
        var growth: Int64 = 0
        if let old {
            if old.isEmpty { growth -= try removeIndexRow(index.id, zoneID: zoneID, nil, recordID) }
            for key in IndexKey.missing(of: old, in: new ?? []) {
                growth -= try removeIndexRow(index.id, zoneID: zoneID, key, recordID)
            }
        }
        if let new {
            if new.isEmpty { growth += try addIndexRow(index.id, zoneID: zoneID, nil, recordID) }
            for key in IndexKey.missing(of: new, in: old ?? []) {
                growth += try addIndexRow(index.id, zoneID: zoneID, key, recordID)
            }
        }
        return growth
    }

    /// - Parameter key: nil for the row that says that the record lacks the field.
    /// - Returns: the bytes that the row counts for; 0 where it was there already.
    private func addIndexRow(_ index: Int64, zoneID: Int64, _ key: IndexKey?, _ recordID: Int64) throws -> Int64 {
        switch key {
        case nil: try statements.insertMissing.run(index, zoneID, recordID)
        case .number(let number)?: try statements.insertNumber.run(index, zoneID, number, recordID)
        case .bytes(let bytes)?: try statements.insertBytes.run(index, zoneID, bytes, recordID)
        }
        return bytesOfChangedRow(index, zoneID: zoneID, key, recordID)
    }

    /// - Returns: the bytes that the row counted for; 0 without a row.
    func removeIndexRow(_ index: Int64, zoneID: Int64, _ key: IndexKey?, _ recordID: Int64) throws -> Int64 {
        switch key {
        case nil: try statements.deleteMissing.run(index, zoneID, recordID)
        case .number(let number)?: try statements.deleteNumber.run(index, zoneID, number, recordID)
        case .bytes(let bytes)?: try statements.deleteBytes.run(index, zoneID, bytes, recordID)
        }
        return bytesOfChangedRow(index, zoneID: zoneID, key, recordID)
    }

    private func bytesOfChangedRow(_ index: Int64, zoneID: Int64, _ key: IndexKey?, _ recordID: Int64) -> Int64 {
        if counted.isNone || db.changesCount == 0 { return 0 }
        let table: RowPlace.Table =
            switch key {
            case nil: .indexMissing
            case .number?: .indexNumber
            case .bytes?: .indexBytes
            }
        let place = RowPlace(table, field: index, zone: zoneID, key: key, row: recordID)
        return counted.contains(place) ? key?.rowBytes ?? RowBytes.index : 0
    }
}

// Effects on other shards and of them.
extension RecordTransaction {
    var home: SubscriptionHome { SubscriptionHome(db: db, level: level) }

    /// Saves, deletes and tests subscriptions at their home.
    package func modify(_ command: ModifySubscriptions) throws -> SubscriptionsOutcome {
        commandNumber += 1
        observe(command.time)
        guard level >= .notifications else {
            let error = ServiceError(
                .tryAgainLater, "subscriptions need feature level \(FeatureLevel.notifications)", retryAfterSeconds: 1)
            return SubscriptionsOutcome(failures: command.changes.map { _ in error }, marks: [])
        }
        return try home.modify(command, life: incarnationFloor, at: time, notified: &notified)
    }

    /// Applies the effects of another group, each once and in order.
    package func deliver(_ delivery: OutboxDelivery) throws -> OutboxReceipt {
        commandNumber += 1
        return try Outbox(db: db, level: level).receive(delivery) { effect in
            switch effect {
            case .watch(let watcher): try matcher.install(watcher)
            case .unwatch(let subscriber, let scope, let id):
                try matcher.remove(watcherOf: subscriber, scope: scope, id: id)
            case .notify(let match):
                if try home.notify(match, at: time, from: delivery.source) { notified.append(match.subscriber) }
            case .lost, .lostOf, .resend: break
            }
        }
    }

    /// Removes the effects that a destination has applied.
    package func acknowledge(_ acknowledgement: OutboxAcknowledgement) throws {
        commandNumber += 1
        if try Outbox(db: db, level: level).acknowledge(acknowledgement) { hasJobs = true }
    }

    /// Matches the current command's changes against subscriptions.
    func tellWatchers() throws {
        let queue = MatchingQueue(db: db, level: level)
        for leftover in try matcher.tell(time: stamp) {
            hasJobs = true
            if level >= .exactNotifications { try queue.add(leftover) } else { try addJob(leftover) }
        }
    }

    private func addJob(_ leftover: Matcher.Leftover) throws {
        guard case .record(let matching) = leftover.change else { return }
        _ = try addJob(
            .match, subject: 0, body: matching.encoded(), position: leftover.stop.position, last: leftover.last)
    }

    /// Continues a matching job.
    func matchMore(_ job: Job, budget: Int) throws -> Int {
        var left = budget
        let matching = try QueryMatching(decoding: job.body)
        let database = try openDatabase(matching.change.zone.database)
        let stop = try matcher.match(
            .record(matching), in: database, after: job.position, through: job.last, &left)
        if let stop { try advance(job, to: stop.position) } else { try end(job) }
        return max(budget - left, 1)
    }

    /// Removes a part of what a container's users and their subscriptions have here; uses up the budget where more is
    /// left.
    func removeSubscriptions(of container: String, budget: inout Int) throws {
        guard level >= .notifications else { return }
        if level >= .exactNotifications {
            try MatchingQueue(db: db, level: level).remove(container: container, budget: &budget)
        }
        guard budget > 0 else { return }
        try endLives(to: try home.lastLife(of: container))
        try home.remove(container: container, budget: &budget)
        if budget > 0 { try matcher.remove(container: container, budget: &budget) }
    }

    /// Has what is made later begin a greater life, so that tokens of lives up to one fit none of it.
    func endLives(to life: Int64) throws {
        guard life >= incarnationFloor else { return }
        incarnationFloor = life + 1
        try db.run("UPDATE record_state SET incarnation_floor = ?", incarnationFloor)
        try db.checkOneRow("a floor of incarnations at \(incarnationFloor)")
    }
}
