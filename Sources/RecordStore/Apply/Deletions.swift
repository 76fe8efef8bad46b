import Authorization
import GRDB
import RecordModel
import Wire

private let tooManyAlong = ServiceError(
    .badRequest,
    """
    the deletions of one request may take at most \(Limits.cascadeMax) records along that refer to the deleted \
    ones with DELETE_SELF: delete some of them first, or send the deletions in several requests
    """)

/// Deletions, with what goes along: records that refer to the deleted ones with DELETE_SELF.
struct Deletions: TransactionPart {
    let transaction: RecordTransaction
    private var rows: Rows { transaction.rows }

    /// What the deletion of a record takes along, and whether it may happen.
    func plan(_ row: RecordRow, type: InstalledType, _ batch: Batch) throws -> Verdict {
        if let refusal = try refusal(ofDeleting: row, type: type, batch) { return .fail(refusal, nil) }
        var plan = PlannedDeletion(row: row, type: type, assets: try assets(of: row, type))
        plan.growth = try growth(ofDeleting: row, type: type, plan.assets, batch)
        guard let zone = batch.zone, try EdgeTable(transaction).isUsed(in: zone) else { return .delete(plan) }
        let writer = CascadeWriter(
            caller: batch.command.caller, callerID: batch.callerID, zone: zone, schema: batch.schema)
        let isCustom = batch.command.zone.isAtomic
        guard try isCustom || rows.holder(of: row, outside: [row.id], writer) != nil else {
            plan.leavesJob = try rows.isTarget(row.name, zone: zone)
            return .delete(plan)
        }
        guard let cascade = try cascade(from: row, max: Limits.cascadeMax - batch.cascaded, writer) else {
            batch.cascaded = Limits.cascadeMax
            return .fail(tooManyAlong, nil)
        }
        // What was looked at counts, whether it goes or not: it is work of this command.
        batch.cascaded += cascade.count
        let members = Set(cascade.map(\.id))
        for member in isCustom ? cascade : [row] {
            if let holder = try rows.holder(of: member, outside: members, writer) {
                return .fail(Self.held(by: holder, writer), nil)
            }
        }
        if try isCustom && goesAtOnce(cascade.dropFirst(), batch) {
            plan.cascade = cascade.dropFirst().map(\.id)
        } else {
            plan.leavesJob = true
        }
        return .delete(plan)
    }

    /// Whether the request may change all rows of the records along, which it then counts; else they go in parts.
    private func goesAtOnce(_ members: ArraySlice<RecordRow>, _ batch: Batch) throws -> Bool {
        guard transaction.level >= .boundedDeletions else { return true }
        var (changed, files, bytes) = (0, 0, 0)
        for member in members {
            guard let row = try rows.row(member.id) else { continue }
            bytes += row.body.count
            if let type = batch.schema.byID[row.typeID] {
                changed += try changedRows(ofDeleting: row, type: type)
                files += try changedFiles(ofDeleting: row, type: type)
            } else {
                changed += 1
            }
            if changed + files > Self.rowsAtOnceMax || bytes > Self.bytesAtOnceMax { return false }
        }
        return batch.takeRows(changed, files: files) == nil
    }

    /// Of all that goes along at once: its rows with those in indexes and of files, and the bytes of bodies that are
    /// read for it. Ten thousand records with some twenty index rows each do.
    private static let rowsAtOnceMax = 200_000
    private static let bytesAtOnceMax = 16 << 20

    /// The assets that a record holds, which only bodies of some types may.
    private func assets(of row: RecordRow, _ type: InstalledType) throws -> [AssetReference] {
        type.hasAssets || type.hasStrayFields ? try decodeBody(row.body).assets : []
    }

    /// Why the request may not remove the record's index rows, too. What goes along is bounded by its own number.
    private func refusal(ofDeleting row: RecordRow, type: InstalledType, _ batch: Batch) throws -> ServiceError? {
        guard transaction.level >= .boundedRows, batch.command.operations.count > 1 else { return nil }
        return batch.takeRows(
            try changedRows(ofDeleting: row, type: type), files: try changedFiles(ofDeleting: row, type: type))
    }

    /// The rows of files that the record names.
    private func changedFiles(ofDeleting row: RecordRow, type: InstalledType) throws -> Int {
        guard transaction.level >= .boundedFiles else { return 0 }
        return NamedAssets(transaction).changedRows(from: try assets(of: row, type), to: [])
    }

    /// The record's row, and those in indexes.
    private func changedRows(ofDeleting row: RecordRow, type: InstalledType) throws -> Int {
        let record = try transaction.indexedRecord(row, fields: try type.fields(of: row))
        return type.indexes.reduce(1) { $0 + max(record.keys(in: $1).count, 1) }
    }

    /// What a deletion makes room for; nothing where no other operation may use it.
    private func growth(
        ofDeleting row: RecordRow, type: InstalledType, _ assets: [AssetReference], _ batch: Batch
    ) throws -> QuotaAmounts {
        guard batch.growth != nil, batch.command.operations.count > 1 else { return .zero }
        var growth = QuotaAmounts.zero - transaction.counted.size(of: row, assets)
        if transaction.counted.isNone { return growth }
        if transaction.counted.containsRecord(row.id) { growth.bytes += RowBytes.record + Int64(row.name.utf8.count) }
        let record = try transaction.indexedRecord(row, fields: try type.fields(of: row))
        for index in type.indexes where index.isReady { growth.bytes -= IndexKey.rowBytes(record.keys(in: index)) }
        return growth
    }

    /// Who may not read the holder does not learn its name.
    private static func held(by holder: RecordRow, _ writer: CascadeWriter) -> ServiceError {
        let who = writer.mayRead(holder) ? "record \(holder.name)" : "another record"
        return ServiceError(.validatingReferenceError, "\(who) refers to the record with VALIDATE")
    }

    /// The record and all that go with it, nearest first and by row among equals; nil if they are more than `max`.
    ///
    /// - Parameter before: only references to the record itself that were made before this sequence count.
    private func cascade(
        from row: RecordRow, before: Int64 = .max, max: Int, _ writer: CascadeWriter
    ) throws -> [RecordRow]? {
        try Invariant.check(!row.isDeleted, "what refers to the deleted record \(row.id) would go with it again")
        var found = [row]
        var seen: Set = [row.id]
        var next = 0
        while next < found.count {
            let sources = try rows.sources(of: found[next].name, before: next == 0 ? before : .max, zone: writer.zone)
            for id in sources {
                guard seen.insert(id).inserted, let source = try rows.lightRow(id), writer.mayDelete(source) else {
                    continue
                }
                guard found.count < max else { return nil }
                found.append(source)
            }
            next += 1
        }
        return found
    }

    /// Goes on with a deletion in a default zone, or with a large one: what refers to the deleted record goes, if who
    /// deleted it may delete that too; and has what refers to those records go in its turn.
    ///
    /// A record that another one holds with VALIDATE stays, unless the other one goes with the same target.
    func goOn(with job: Job, budget: Int) throws -> Int {
        let body = try CascadeBody(decoding: job.body)
        transaction.matcher.origin = ChangeOrigin(user: body.caller.user, client: body.client)
        guard let zone = try transaction.openZone(id: job.subject), let schema = zone.database.schema else {
            try JobTable(transaction).end(job)
            return 1
        }
        let writer = CascadeWriter(
            caller: body.caller, callerID: try transaction.knownUserID(body.caller), zone: zone,
            schema: try transaction.schema(id: schema.id))
        let sources = try db.all(
            """
            SELECT source FROM edge WHERE zone = ? AND target = ? AND action = 1 AND source > ? AND made < ?
            ORDER BY source LIMIT ?
            """, zone.row.id, body.target, job.position, body.before, budget
        ) { $0.integer(0) }
        let along = try goingAlong(with: sources, body, writer)
        let versions = VersionKeeper(body.versionsMax, body.quota, zone.database, in: transaction)
        let isBounded = transaction.level >= .boundedDeletions
        var last: Int64?
        for id in sources {
            if isBounded, transaction.isPartFull, last != nil { break }
            last = id
            guard let row = try rows.row(id), !row.isDeleted, writer.mayDelete(row) else { continue }
            if isBounded { transaction.partBytes += row.body.count }
            if let along, try rows.holder(of: row, outside: along, writer) != nil { continue }
            try delete(row, writer, versions)
        }
        if let versions { try VersionTable(transaction).settle(versions, in: zone.database) }
        if let last, last != sources.last || sources.count == budget {
            try JobTable(transaction).advance(job, to: last)
        } else {
            try JobTable(transaction).end(job)
        }
        return sources.count
    }

    /// Deletes a record that goes along; what refers to it goes next.
    private func delete(_ row: RecordRow, _ writer: CascadeWriter, _ versions: VersionKeeper?) throws {
        let refersOn = try rows.isTarget(row.name, zone: writer.zone)
        try RecordWriter(transaction).leaveTombstone(
            row, type: writer.schema.byID[row.typeID], zone: writer.zone,
            by: try transaction.makeUserID(writer.caller), versions)
        guard refersOn else { return }
        try JobTable(transaction).addCascade(from: row.name, zone: writer.zone, caller: writer.caller, versions)
    }

    /// The records that are deleted with the target, where another record holds one of them; else nil. Empty if there
    /// are too many: then whatever is held stays.
    private func goingAlong(
        with sources: [Int64], _ body: CascadeBody, _ writer: CascadeWriter
    ) throws -> Set<Int64>? {
        let isHeld = try sources.contains { id in
            guard let row = try rows.lightRow(id), !row.isDeleted, writer.mayDelete(row) else { return false }
            return try rows.holder(of: row, outside: [], writer) != nil
        }
        guard isHeld, let first = try sources.first.flatMap(rows.lightRow) else { return nil }
        // The target is gone; what refers to its name is what goes with it.
        var target = first
        target.id = 0
        target.isDeleted = false
        target.name = body.target
        let cascade = try cascade(from: target, before: body.before, max: Limits.cascadeMax, writer)
        return Set((cascade ?? []).map(\.id))
    }
}

/// On whose behalf records go that refer to a deleted one.
struct CascadeWriter {
    let caller: Caller
    /// Nil where the caller never wrote to this shard.
    let callerID: Int64?
    let zone: OpenZone
    let schema: InstalledSchema

    /// Whether the caller may delete the record.
    func mayDelete(_ row: RecordRow) -> Bool {
        guard let type = schema.byID[row.typeID], !type.isUsers else { return false }
        return permissions(row, type).contains(.write)
    }

    func mayRead(_ row: RecordRow) -> Bool {
        schema.byID[row.typeID].map { permissions(row, $0).contains(.read) } ?? false
    }

    private func permissions(_ row: RecordRow, _ type: InstalledType) -> Permissions {
        let isCreator = caller.user != nil && callerID == row.createdBy
        return Permissions(of: caller, in: type.definition, of: zone.key.database, isCreator: isCreator)
    }
}

extension Rows {
    /// The rows of the records that refer to a name with DELETE_SELF since before a sequence, by id.
    func sources(of target: String, before: Int64, zone: OpenZone) throws -> [Int64] {
        try db.all(
            "SELECT source FROM edge WHERE zone = ? AND target = ? AND action = 1 AND made < ? ORDER BY source",
            zone.row.id, target, before
        ) { $0.integer(0) }
    }

    /// Whether a record refers to a name with DELETE_SELF.
    func isTarget(_ name: String, zone: OpenZone) throws -> Bool {
        try db.first(
            "SELECT 1 FROM edge WHERE zone = ? AND target = ? AND action = 1 LIMIT 1", zone.row.id, name
        ) { _ in true } ?? false
    }

    /// A row without its body: a cascade may have thousands.
    func lightRow(_ id: Int64) throws -> RecordRow? {
        try db.first(Self.findLightRow, id) { RecordRow($0) }
    }

    private static let findLightRow = "SELECT \(RecordRow.lightColumns) FROM record r WHERE r.id = ?"

    func row(_ id: Int64) throws -> RecordRow? {
        try db.first(Self.findRow, id) { RecordRow($0) }
    }

    private static let findRow = "SELECT \(RecordRow.columns) FROM record r WHERE r.id = ?"

    /// The first other record, by row, that refers to one with VALIDATE and is not in `members`; what the schema lost
    /// holds nothing. Without its body.
    func holder(of row: RecordRow, outside members: Set<Int64>, _ writer: CascadeWriter) throws -> RecordRow? {
        var found: RecordRow?
        try db.forEach(Self.findHolders, writer.zone.row.id, row.name) { columns in
            let id = columns.integer(0)
            guard id != row.id, !members.contains(id), writer.schema.byID[columns.integer(2)] != nil else {
                return true
            }
            found = RecordRow(columns)
            return false
        }
        return found
    }

    private static let findHolders = """
        SELECT \(RecordRow.lightColumns) FROM edge e JOIN record r ON r.id = e.source WHERE e.zone = ? AND e.target = ? AND e.action = 2 ORDER BY e.source
        """
}
