package import Authorization
package import GRDB
package import RecordModel
import Wire

extension RecordTables {
    /// One page of a query, on a reader's snapshot.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package func query(_ request: RecordQuery, in db: Database) throws -> ReadOutcome<QueryPage> {
        switch try open(request.zone, caller: request.caller, schemaVersion: request.schemaVersion, in: db) {
        case .needsSchema(let installed): return .needsSchema(installed: installed)
        case .refused(let error): return .refused(error)
        case .found(let opened):
            do {
                return .found(try page(request, opened, in: db))
            } catch let error as ServiceError {
                return .refused(error)
            }
        }
    }

    /// Records by name, one item for each name in order. A request for more than `Limits.recordsPerPageMax` is refused.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package func lookup(
        _ names: [String], zone: ZoneKey, schemaVersion: UInt64 = 0, caller: Caller, in db: Database
    ) throws -> ReadOutcome<[LookupItem]> {
        guard names.count <= Limits.recordsPerPageMax else {
            return .refused(
                ServiceError(.badRequest, "\(names.count) records in one lookup, at most \(Limits.recordsPerPageMax)"))
        }
        switch try open(zone, caller: caller, schemaVersion: schemaVersion, in: db) {
        case .needsSchema(let installed): return .needsSchema(installed: installed)
        case .refused(let error): return .refused(error)
        case .found(let opened):
            let rows = Rows(db: db)
            let callerID = try caller.user.flatMap { try rows.userID($0) }
            var stampNames = StampNames(db)
            return .found(
                try names.map { name in
                    let notFound = LookupItem.failed(ServiceError(.notFound, "Record not found"))
                    guard let zoneRow = opened.zone,
                        let row = try rows.record(zoneID: zoneRow.id, name: name), !row.isDeleted,
                        let type = opened.schema.byID[row.typeID]?.definition
                    else { return notFound }
                    let isCreator = callerID == row.createdBy
                    guard
                        Permissions(of: caller, in: type, of: zone.database, isCreator: isCreator).contains(.read)
                    else { return .failed(ServiceError(.accessDenied, "no permission to read the record")) }
                    return .record(try row.record(type: type, zone: zoneRow, names: &stampNames))
                })
        }
    }

    private struct Opened: Hashable, Sendable {
        var schemaID: Int64
        var schema: InstalledSchema
        /// Nil for a default zone that nothing was written to.
        var zone: ZoneRow?
        static func == (left: Opened, right: Opened) -> Bool {
            left.schemaID == right.schemaID && left.zone?.id == right.zone?.id
        }
        func hash(into hasher: inout Hasher) { hasher.combine(schemaID) }
    }

    private func open(
        _ key: ZoneKey, caller: Caller, schemaVersion: UInt64, in db: Database
    ) throws -> ReadOutcome<Opened> {
        let rows = Rows(db: db)
        let found = try rows.schema(key.database)
        let installed = found?.version ?? 0
        guard installed >= schemaVersion else { return .needsSchema(installed: installed) }
        if let refusal = ZoneRules.refusal(of: caller, in: key) { return .refused(refusal) }
        var zone: ZoneRow?
        if let found, let databaseID = try rows.databaseID(key.database, schemaID: found.id) {
            zone = try rows.latestZone(databaseID: databaseID, name: key.name)
            if zone?.state != ZoneLife.live { zone = nil }
        }
        if zone == nil && !key.isDefault { return .refused(ZoneRules.notFound(key)) }
        let schema =
            try found.map { try installedSchema(id: $0.id, version: $0.version, in: db) }
            ?? InstalledSchema(version: 0, byName: [:], byID: [:])
        return .found(Opened(schemaID: found?.id ?? 0, schema: schema, zone: zone))
    }

    private func page(_ request: RecordQuery, _ opened: Opened, in db: Database) throws -> QueryPage {
        guard let type = opened.schema.byName[request.query.recordType] else {
            throw ServiceError(.badRequest, "record type not found: \(request.query.recordType)")
        }
        let caller = request.caller
        func mayRead(isCreator: Bool) -> Bool {
            Permissions(of: caller, in: type.definition, of: request.zone.database, isCreator: isCreator)
                .contains(.read)
        }
        guard mayRead(isCreator: true) else {
            throw ServiceError(.accessDenied, "no permission to read records of type \(type.definition.name)")
        }
        let zone = opened.zone ?? ZoneRow(id: 0, incarnation: 0, sequence: 0, state: ZoneLife.live)
        let plan = try QueryPlan(request.query, type: type, zone: zone)
        let hash = QueryCursor.hash(request.query, zone: request.zone)
        let cursor = try request.cursor.map { try Self.cursor($0, plan: plan, hash: hash, zone: zone) }
        var onlyCreatedBy: Int64?
        if !mayRead(isCreator: false) {
            // Nobody's number: a caller who never wrote here has no records.
            onlyCreatedBy = try caller.user.flatMap { try Rows(db: db).userID($0) } ?? -1
        }
        let limit = min(max(request.limit, 1), Limits.recordsPerPageMax)
        var run = QueryRun(
            db: db, plan: plan, zone: zone, limit: limit, cursor: cursor, onlyCreatedBy: onlyCreatedBy)
        return try run.page(queryHash: hash)
    }

    private static func cursor(
        _ bytes: [UInt8], plan: QueryPlan, hash: UInt64, zone: ZoneRow
    ) throws(ServiceError) -> QueryCursor {
        let unknown = ServiceError(.badRequest, "continuationMarker is not one of this query: start again without it")
        guard let cursor = try? QueryCursor(decoding: bytes), cursor.queryHash == hash, plan.accepts(cursor) else {
            throw unknown
        }
        guard cursor.incarnation == UInt64(bitPattern: zone.incarnation) else {
            throw ServiceError(
                .badRequest, "continuationMarker is of an earlier life of the zone: start again without it")
        }
        return cursor
    }
}
