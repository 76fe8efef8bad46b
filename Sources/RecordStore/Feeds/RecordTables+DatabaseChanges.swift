import Authorization
package import GRDB
import RecordModel

extension RecordTables {
    /// One page of a private database's zones that changed, on a reader's snapshot.
    ///
    /// A zone that was deleted and made anew shows once, as it is now, with a greater incarnation.
    /// - Returns: `.refused` with `BAD_REQUEST` where the position is of another life of the database.
    /// - Throws: `DatabaseError` on an I/O error.
    package func databaseChanges(
        _ request: DatabaseChangesRequest, in db: Database
    ) throws -> ReadOutcome<DatabaseChangesPage> {
        let rows = Rows(db: db)
        let found = try rows.schema(request.database)
        let installed = found?.version ?? 0
        guard installed >= request.schemaVersion else { return .needsSchema(installed: installed) }
        if let refusal = ZoneRules.refusal(of: request.caller, inZonesOf: request.database) {
            return .refused(refusal)
        }
        let database = try found.flatMap { try rows.database(request.database, schemaID: $0.id) }
        let floor = try SQLStatement(cached: "SELECT incarnation_floor FROM record_state", in: db)
            .first { $0.integer(0) }
        let incarnation = UInt64(bitPattern: database?.incarnation ?? floor ?? 1)
        let sequence = UInt64(bitPattern: database?.sequence ?? 0)
        if let refusal = Self.refusal(of: request, incarnation: incarnation, sequence: sequence) {
            return .refused(refusal)
        }
        var page = DatabaseChangesPage(zones: [], incarnation: incarnation, position: sequence, hasMore: false)
        if let database { try Self.collect(&page, request, databaseID: database.id, in: db) }
        return .found(page)
    }

    private static func refusal(
        of request: DatabaseChangesRequest, incarnation: UInt64, sequence: UInt64
    ) -> ServiceError? {
        if request.incarnation == 0 {
            return request.after == 0 ? nil : FeedErrors.unknownToken("a position without an incarnation")
        }
        guard request.incarnation == incarnation else {
            return FeedErrors.expired("the database was reset or restored since the token was given")
        }
        guard request.after <= sequence else { return FeedErrors.expired("the token is of a future that was lost") }
        return nil
    }

    private static func collect(
        _ page: inout DatabaseChangesPage, _ request: DatabaseChangesRequest, databaseID: Int64, in db: Database
    ) throws {
        let limit = min(max(request.limit, 1), Limits.recordsPerPageMax)
        var examined = 0
        var last = request.after
        var zones: [ChangedZone] = []
        var hasMore = false
        // A later zone of the name speaks for it.
        try SQLStatement(
            cached: """
                SELECT \(ZoneRow.columns), z.name, EXISTS (
                    SELECT 1 FROM zone l WHERE l.database = z.database AND l.name = z.name
                        AND l.incarnation > z.incarnation)
                FROM zone z WHERE z.database = ? AND z.changed_at > 0 AND z.changed_at > ? ORDER BY z.changed_at
                """, in: db
        ).forEach([.integer(databaseID), .integer(Int64(clamping: request.after))]) { row in
            guard zones.count < limit, examined < FeedLimits.examinedMax else {
                hasMore = true
                return false
            }
            examined += 1
            let zone = ZoneRow(row)
            last = UInt64(bitPattern: zone.changedAt)
            let isDeleted = zone.state != ZoneLife.live
            if row.integer(ZoneRow.columnCount + 1) != 0 || (isDeleted && request.after == 0) { return true }
            let state = zone.described(as: row.text(ZoneRow.columnCount))
            zones.append(ChangedZone(state: state, isDeleted: isDeleted))
            return true
        }
        page.zones = zones
        page.hasMore = hasMore
        if hasMore { page.position = last }
    }
}
