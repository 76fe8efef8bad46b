import GRDB
import RecordModel
import Wire

extension RecordTransaction {
    /// Cleans records of what the schema lost: records of lost types become tombstones, which feeds show; values of
    /// lost fields go without a trace, since reads have not shown them since.
    func scrub(_ job: Job, budget: Int) throws -> Int {
        let types = Set(
            try SQLStatement(cached: "SELECT type FROM stray WHERE job = ?", in: db).all(.integer(job.id)) {
                $0.integer(0)
            })
        let schema = try schema(id: job.subject)
        let (ids, end, used) = try scan(job, types: types, budget: budget)
        let next = try forEachRow(ids, end: end) { row, zoneID in
            // What is in a retired zone stays as its index rows were made from, until it is reclaimed with them.
            guard !row.isDeleted, let zone = try openZone(id: zoneID) else { return }
            if let type = schema.byID[row.typeID] {
                try strip(row, type: type, zone: zone)
            } else {
                try leaveTombstone(row, type: nil, zone: zone, by: UserNameCache.anonymous)
            }
        }
        if let next {
            try advance(job, to: next)
        } else {
            try SQLStatement(cached: "DELETE FROM stray WHERE job = ?", in: db).run(.integer(job.id))
            try self.end(job)
            try revise(schemaID: job.subject)
        }
        return used
    }

    /// Index rows are made from visible fields, so they stay as they are. Numbers that the preferred kind of their
    /// field cannot hold stay hidden.
    private func strip(_ row: RecordRow, type: InstalledType, zone: OpenZone) throws {
        let body = try decodeBody(row.body)
        let visible = type.scrubbed(body)
        if visible == body { return }
        var scrubbed = row
        scrubbed.body = encodeBody(visible)
        try SQLStatement(cached: "UPDATE record SET body = ? WHERE id = ?", in: db)
            .run(.blob(scrubbed.body), .integer(row.id))
        try db.checkOneRow("the values of record \(row.id)")
        zone.count(scrubbed.size(visible.assets) - row.size(body.assets))
        try updateAssets(from: body.assets, to: visible.assets)
        try updateEdges(
            zone: zone, recordID: row.id, from: Edge.all(in: body), to: Edge.all(in: visible), sequence: row.sequence)
    }
}
