import Authorization
import RecordModel

/// A reference with an action, as the edge table has it: from a record to a name in the same zone.
struct Edge: Hashable {
    /// Bytes, because two names that differ in Unicode form only are two records.
    let target: [UInt8]
    let action: Int64

    static let deleteSelf: Int64 = 1
    static let validate: Int64 = 2
    /// References with an action, each target and action once, that one record may have.
    static let perRecordMax = 1_000

    init?(_ reference: Reference) {
        switch reference.action {
        case .none: return nil
        case .deleteSelf: action = Self.deleteSelf
        case .validate: action = Self.validate
        }
        target = Array(reference.recordName.utf8)
    }

    /// The edges that a body calls for, each once, in the order of the fields.
    static func all(in fields: Fields) -> [Edge] {
        var seen: Set<Edge> = []
        return fields.all.flatMap { field in
            field.value.references.compactMap(Edge.init).filter { seen.insert($0).inserted }
        }
    }

    var targetValue: SQLValue { .text(String(decoding: target, as: UTF8.self)) }
}

private let tooManyAlong = ServiceError(
    .badRequest,
    """
    the deletions of one request may take at most \(Limits.cascadeMax) records along that refer to the deleted \
    ones with DELETE_SELF: delete some of them first, or send the deletions in several requests
    """)

extension RecordTransaction {
    /// Whether records of the zone refer to others with an action.
    func hasEdges(_ zone: OpenZone) throws -> Bool {
        if let known = zone.hasEdges { return known }
        let found = try SQLStatement(cached: "SELECT 1 FROM edge WHERE zone = ? LIMIT 1", in: db)
            .first(.integer(zone.row.id)) { _ in true }
        zone.hasEdges = found ?? false
        return found ?? false
    }

    /// Writes the edges that differ between two versions of a record.
    func updateEdges(zone: OpenZone, recordID: Int64, from old: [Edge], to new: [Edge], sequence: Int64) throws {
        if old.isEmpty && new.isEmpty { return }
        if !new.isEmpty { zone.hasEdges = true }
        try updateEdges(zoneID: zone.row.id, recordID: recordID, from: old, to: new, sequence: sequence)
    }

    /// The same for a zone that may be retired.
    func updateEdges(zoneID: Int64, recordID: Int64, from old: [Edge], to new: [Edge], sequence: Int64) throws {
        let kept = Set(old).intersection(new)
        for edge in old where !kept.contains(edge) {
            try SQLStatement(
                cached: "DELETE FROM edge WHERE zone = ? AND target = ? AND action = ? AND source = ?", in: db
            ).run(.integer(zoneID), edge.targetValue, .integer(edge.action), .integer(recordID))
        }
        for edge in new where !kept.contains(edge) {
            try SQLStatement(cached: "INSERT OR IGNORE INTO edge VALUES (?, ?, ?, ?, ?)", in: db).run(
                .integer(zoneID), edge.targetValue, .integer(edge.action), .integer(recordID), .integer(sequence))
        }
    }

    /// Why the references that an operation sets are refused.
    func refusal(
        of operation: RecordChange, storedEdges: [Edge], edges: [Edge], _ judged: JudgedRecord
    ) throws -> ServiceError? {
        guard edges.count <= Edge.perRecordMax else {
            return ServiceError(
                .badRequest,
                "the record has \(edges.count) references with an action, at most \(Edge.perRecordMax) are allowed")
        }
        var seen: Set<Edge> = []
        for change in operation.fields {
            for reference in change.value?.references ?? [] where reference.action == .validate {
                guard let edge = Edge(reference), seen.insert(edge).inserted else { continue }
                guard try !isThere(reference, from: operation.recordName, judged.batch) else { continue }
                return ServiceError(
                    .validatingReferenceError,
                    "field \(change.name): there is no record \(reference.recordName) that VALIDATE could refer to")
            }
        }
        let stored = Set(storedEdges)
        for edge in edges where edge.action == Edge.deleteSelf && !stored.contains(edge) {
            guard let zone = judged.batch.zone else { continue }
            let count = try SQLStatement(
                cached: """
                    SELECT count(*) FROM (SELECT 1 FROM edge WHERE zone = ? AND target = ? AND action = 1
                    LIMIT \(Limits.deleteSelfReferencesMax))
                    """, in: db
            ).first(.integer(zone.row.id), edge.targetValue) { Int($0.integer(0)) }
            if let count, count >= Limits.deleteSelfReferencesMax {
                return ServiceError(
                    .badRequest,
                    """
                    \(Limits.deleteSelfReferencesMax) records refer to \(String(decoding: edge.target, as: UTF8.self)) \
                    with DELETE_SELF already, which is the most there may be
                    """)
            }
        }
        return nil
    }

    private func isThere(_ reference: Reference, from name: String, _ batch: Batch) throws -> Bool {
        if Array(reference.recordName.utf8) == Array(name.utf8) { return true }
        guard let zone = batch.zone, let row = try rows.record(zoneID: zone.row.id, name: reference.recordName)
        else { return false }
        return !row.isDeleted && batch.schema.byID[row.typeID] != nil
    }

    /// The assets that a record holds, which only bodies of some types may.
    private func assets(of row: RecordRow, _ type: InstalledType) throws -> [AssetReference] {
        type.hasAssets || type.hasStrayFields ? try decodeBody(row.body).assets : []
    }

    /// What the deletion of a record takes along, and whether it may happen.
    func planDeletion(_ row: RecordRow, type: InstalledType, _ batch: Batch) throws -> Verdict {
        if let refusal = try refusal(ofDeleting: row, type: type, batch) { return .fail(refusal, nil) }
        var plan = PlannedDeletion(row: row, type: type, assets: try assets(of: row, type))
        plan.growth = try growth(ofDeleting: row, type: type, plan.assets, batch)
        guard let zone = batch.zone, try hasEdges(zone) else { return .delete(plan) }
        let writer = CascadeWriter(
            caller: batch.command.caller, callerID: batch.callerID, zone: zone, schema: batch.schema)
        let isCustom = batch.command.zone.isAtomic
        guard try isCustom || holder(of: row, outside: [row.id], writer) != nil else {
            plan.leavesJob = try isTarget(row.name, zone: zone)
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
            if let holder = try holder(of: member, outside: members, writer) {
                return .fail(Self.held(by: holder, writer), nil)
            }
        }
        if isCustom {
            plan.cascade = cascade.dropFirst().map(\.id)
        } else {
            plan.leavesJob = true
        }
        return .delete(plan)
    }

    /// Why the request may not remove the record's index rows, too. What goes along is bounded by its own number.
    private func refusal(ofDeleting row: RecordRow, type: InstalledType, _ batch: Batch) throws -> ServiceError? {
        guard level >= .boundedRows, batch.command.operations.count > 1 else { return nil }
        let record = try indexedRecord(row, fields: try type.fields(of: row))
        return batch.takeRows(type.indexes.reduce(1) { $0 + max(record.keys(in: $1).count, 1) })
    }

    /// What a deletion makes room for; nothing where no other operation may use it.
    private func growth(
        ofDeleting row: RecordRow, type: InstalledType, _ assets: [AssetReference], _ batch: Batch
    ) throws -> QuotaAmounts {
        guard batch.growth != nil, batch.command.operations.count > 1 else { return .zero }
        var growth = QuotaAmounts.zero - counted.size(of: row, assets)
        if counted.isNone { return growth }
        if counted.containsRecord(row.id) { growth.bytes += RowBytes.record + Int64(row.name.utf8.count) }
        let record = try indexedRecord(row, fields: try type.fields(of: row))
        for index in type.indexes where index.isReady { growth.bytes -= IndexKey.rowBytes(record.keys(in: index)) }
        return growth
    }

    /// Who may not read the holder does not learn its name.
    private static func held(by holder: RecordRow, _ writer: CascadeWriter) -> ServiceError {
        let who = writer.mayRead(holder) ? "record \(holder.name)" : "another record"
        return ServiceError(.validatingReferenceError, "\(who) refers to the record with VALIDATE")
    }
}
