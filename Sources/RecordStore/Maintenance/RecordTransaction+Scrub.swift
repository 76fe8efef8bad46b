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
            if row.isDeleted { return }
            if let type = schema.byID[row.typeID] {
                try strip(row, type: type, zoneID: zoneID)
            } else if let zone = try openZone(id: zoneID) {
                try bury(row, type: nil, zone: zone, by: StampNames.anonymous)
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

    /// Index rows are made from visible fields, so they stay as they are. Numbers that the preferred kind of their field
    /// cannot hold stay hidden.
    private func strip(_ row: RecordRow, type: InstalledType, zoneID: Int64) throws {
        let body = try decodeBody(row.body)
        let visible = type.scrubbed(body)
        if visible == body { return }
        try SQLStatement(cached: "UPDATE record SET body = ? WHERE id = ?", in: db)
            .run(.blob(encodeBody(visible)), .integer(row.id))
        try updateEdges(
            zoneID: zoneID, recordID: row.id, from: Edge.all(in: body), to: Edge.all(in: visible),
            sequence: row.sequence)
    }
}
