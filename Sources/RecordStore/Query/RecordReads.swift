package import Authorization
package import GRDB
package import RecordModel
import Wire

/// What a shard holds, as one connection's snapshot has it: zones, and records by name and by query.
package struct RecordReads {
    private let tables: RecordTables
    private let db: Database
    private let rows: Rows

    /// - Parameter tables: those of the connection's database.
    package init(_ tables: RecordTables, in db: Database) {
        self.tables = tables
        self.db = db
        rows = Rows(db: db)
    }

    // MARK: Zones

    /// The zones of a database that live in this shard and were written to or created, by name in byte order.
    package func zones(of database: DatabaseKey) throws -> [ZoneState] {
        guard let schema = try rows.schema(database),
            let databaseID = try rows.databaseID(database, schemaID: schema.id)
        else { return [] }
        return try db.all(
            "SELECT \(ZoneRow.columns), z.name FROM zone z WHERE z.database = ? AND z.state = 0 ORDER BY z.name",
            databaseID
        ) { ZoneRow($0).described(as: $0.text(ZoneRow.columnCount)) }
    }

    /// One zone; nil if it does not live here. A default zone always lives.
    package func zone(_ key: ZoneKey) throws -> ZoneState? {
        if let schema = try rows.schema(key.database),
            let databaseID = try rows.databaseID(key.database, schemaID: schema.id),
            let zone = try rows.latestZone(databaseID: databaseID, name: key.name), zone.state == ZoneLife.live
        {
            return zone.described(as: key.name)
        }
        return key.isDefault ? ZoneState(name: key.name, incarnation: 0, sequence: 0) : nil
    }

    /// The same for a node that holds a schema version: a shard with a lower one may hold zones that a reset took away.
    /// - Returns: `.found` or `.needsSchema`.
    package func zones(of database: DatabaseKey, schemaVersion: UInt64) throws -> ReadOutcome<[ZoneState]> {
        let installed = try rows.schema(database)?.version ?? 0
        guard installed >= schemaVersion else { return .needsSchema(installed: installed) }
        return .found(try zones(of: database))
    }

    /// The same for a node that holds a schema version: a shard with a lower one may hold zones that a reset took away.
    /// - Returns: `.found` or `.needsSchema`.
    package func zone(_ key: ZoneKey, schemaVersion: UInt64) throws -> ReadOutcome<ZoneState?> {
        let installed = try rows.schema(key.database)?.version ?? 0
        guard installed >= schemaVersion else { return .needsSchema(installed: installed) }
        return .found(try zone(key))
    }

    /// A zone that a caller may address, under a schema new enough.
    struct Opened: Hashable, Sendable {
        var schema: SchemaRow?
        /// Nil for a default zone that nothing was written to.
        var zone: ZoneRow?
    }

    func open(_ key: ZoneKey, caller: Caller, schemaVersion: UInt64) throws -> ReadOutcome<Opened> {
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
        return .found(Opened(schema: found, zone: zone))
    }

    /// The schema of a row; without a row, none.
    func schema(_ row: SchemaRow?) throws -> InstalledSchema {
        try row.map { try tables.installedSchema($0, in: db) } ?? .none
    }

    // MARK: Records

    /// Records by name, one item for each name in order. A request for more than `Limits.recordsPerPageMax` is refused.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package func lookup(
        _ names: [String], zone: ZoneKey, schemaVersion: UInt64 = 0, caller: Caller
    ) throws -> ReadOutcome<[LookupItem]> {
        guard names.count <= Limits.recordsPerPageMax else {
            return .refused(
                ServiceError(.badRequest, "\(names.count) records in one lookup, at most \(Limits.recordsPerPageMax)"))
        }
        switch try open(zone, caller: caller, schemaVersion: schemaVersion) {
        case .needsSchema(let installed): return .needsSchema(installed: installed)
        case .refused(let error): return .refused(error)
        case .found(let opened):
            let schema = try self.schema(opened.schema)
            let callerID = try caller.user.flatMap { try rows.userID($0) }
            var stampNames = UserNameCache(db)
            return .found(
                try names.map { name in
                    let notFound = LookupItem.failed(ServiceError(.notFound, "Record not found"))
                    guard let zoneRow = opened.zone,
                        let row = try rows.record(zoneID: zoneRow.id, name: name), !row.isDeleted,
                        let type = schema.byID[row.typeID]
                    else { return notFound }
                    let isCreator = callerID == row.createdBy
                    guard
                        Permissions(of: caller, in: type.definition, of: zone.database, isCreator: isCreator).contains(
                            .read)
                    else { return .failed(ServiceError(.accessDenied, "no permission to read the record")) }
                    return .record(try row.record(type: type, zone: zoneRow, names: &stampNames))
                })
        }
    }

    /// One page of a query.
    /// - Parameter take: is given the records in order. False is that it has no room for this one: then the page ends
    ///   before it, unless it is the first.
    /// - Throws: what `take` throws but a `ServiceError`, which is a refusal; `DatabaseError` on an I/O error,
    ///   `WireError` on a damaged row.
    package func query(
        _ request: RecordQuery, take: (RecordModel.Record) throws -> Bool = { _ in true }
    ) throws -> ReadOutcome<QueryPage> {
        switch try open(request.zone, caller: request.caller, schemaVersion: request.schemaVersion) {
        case .needsSchema(let installed): return .needsSchema(installed: installed)
        case .refused(let error): return .refused(error)
        case .found(let opened):
            do {
                return .found(try page(request, opened, take))
            } catch let error as ServiceError {
                return .refused(error)
            }
        }
    }

    /// A page of a query over the zones of a private database in this shard.
    ///
    /// With sort keys the zones are merged; else they follow one another by name. Records that do not change meanwhile
    /// come exactly once over all pages, if the caller asks every shard for what comes after the least `next` of their
    /// answers, or after the last record that it took.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package func query(_ request: DatabaseQuery) throws -> ReadOutcome<DatabaseQueryPage> {
        let found = try rows.schema(request.database)
        let installed = found?.version ?? 0
        guard installed >= request.schemaVersion else { return .needsSchema(installed: installed) }
        guard request.caller.isOwner(of: request.database) else {
            return .refused(
                ServiceError(.badRequest, "only one's own private database can be queried over all its zones"))
        }
        do {
            let schema = try self.schema(found)
            let reader = try QueryReader(
                request.query, caller: request.caller, database: request.database, schema: schema, in: db)
            var page = try DatabasePage(reader, request)
            if let found, let databaseID = try rows.databaseID(request.database, schemaID: found.id) {
                let zones = try db.all(
                    """
                    SELECT \(ZoneRow.columns), z.name FROM zone z
                    WHERE z.database = ? AND z.state = 0 AND z.name >= ? ORDER BY z.name
                    """, databaseID, page.firstZone
                ) { (row: ZoneRow($0), name: $0.text(ZoneRow.columnCount)) }
                if request.query.sorts.isEmpty { try page.follow(zones) } else { try page.merge(zones) }
            }
            return .found(page.answer)
        } catch let error as ServiceError {
            return .refused(error)
        }
    }

    private func page(
        _ request: RecordQuery, _ opened: Opened, _ take: (RecordModel.Record) throws -> Bool
    ) throws -> QueryPage {
        let schema = try self.schema(opened.schema)
        let reader = try QueryReader(
            request.query, caller: request.caller, database: request.zone.database, schema: schema, in: db)
        // Its counts are over all records that were looked at, also those that the caller may not read.
        guard !request.explains || reader.onlyCreatedBy == nil else {
            throw ServiceError(.accessDenied, "explain: only for those who may read every record of the type")
        }
        let zone = opened.zone ?? ZoneRow(id: 0, incarnation: 0, sequence: 0, state: ZoneLife.live)
        let hash = QueryCursor.hash(request.query, zone: request.zone, type: reader.type.definition)
        let cursor = try request.cursor.map { try Self.cursor($0, reader, hash: hash, zone: zone) }
        let limit = min(max(request.limit, 1), Limits.recordsPerPageMax)
        let work = QueryWork(bound: QueryTuning.current.workMax)
        var run = try QueryRun(
            reader, zone: zone, limit: limit, after: cursor?.position, bounds: QueryRun.Bounds(work: work))
        var end = try run.collect()
        var records: [RecordModel.Record] = []
        for candidate in run.found {
            let record = try run.record(candidate, zone: zone)
            guard try take(record) || records.isEmpty else {
                end = run.found[records.count - 1].position
                break
            }
            records.append(record)
        }
        let next = end.map { end in
            QueryCursor(queryHash: hash, incarnation: UInt64(bitPattern: zone.incarnation), position: end).encoded()
        }
        return QueryPage(
            records: records, next: next,
            explanation: request.explains ? try run.explanation(returned: records.count) : nil)
    }

    private static func cursor(
        _ bytes: [UInt8], _ reader: QueryReader, hash: UInt64, zone: ZoneRow
    ) throws(ServiceError) -> QueryCursor {
        let plan = try reader.plan(in: zone)
        guard let cursor = try? QueryCursor(decoding: bytes), cursor.queryHash == hash,
            plan.order.accepts(cursor.position)
        else {
            throw ServiceError(.badRequest, "continuationMarker is not one of this query: start again without it")
        }
        guard cursor.incarnation == UInt64(bitPattern: zone.incarnation) else {
            throw ServiceError(
                .badRequest, "continuationMarker is of an earlier life of the zone: start again without it")
        }
        return cursor
    }
}
