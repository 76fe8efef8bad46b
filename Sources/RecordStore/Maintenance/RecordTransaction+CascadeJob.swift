import Authorization
import GRDB
import RecordModel
import Wire

extension RecordTransaction {
    /// Goes on with a deletion in a default zone: what refers to the deleted record goes, if who deleted it may delete
    /// that too; and has what refers to those records go in its turn.
    ///
    /// A record that another one holds with VALIDATE stays, unless the other one goes with the same target.
    func goOn(with job: Job, budget: Int) throws -> Int {
        let body = try CascadeBody(decoding: job.body)
        matcher.origin = ChangeOrigin(user: body.caller.user, client: body.client)
        guard let zone = try openZone(id: job.subject), let schema = zone.database.schema else {
            try end(job)
            return 1
        }
        let writer = CascadeWriter(
            caller: body.caller, callerID: try knownUserID(body.caller), zone: zone,
            schema: try self.schema(id: schema.id))
        let sources = try SQLStatement(
            cached: """
                SELECT source FROM edge WHERE zone = ? AND target = ? AND action = 1 AND source > ? AND made < ?
                ORDER BY source LIMIT ?
                """, in: db
        ).all(
            .integer(zone.row.id), .text(body.target), .integer(job.position), .integer(body.before),
            .integer(Int64(budget))
        ) { $0.integer(0) }
        let along = try goingAlong(with: sources, body, writer)
        for id in sources {
            guard let row = try row(id), !row.isDeleted, writer.mayDelete(row) else { continue }
            if let along, try holder(of: row, outside: along, writer) != nil { continue }
            let refersOn = try isTarget(row.name, zone: zone)
            try leaveTombstone(row, type: writer.schema.byID[row.typeID], zone: zone, by: try makeUserID(body.caller))
            if refersOn { try addCascade(from: row.name, zone: zone, caller: body.caller) }
        }
        if sources.count == budget, let last = sources.last {
            try advance(job, to: last)
        } else {
            try end(job)
        }
        return sources.count
    }

    /// All that go with the target by the time the part begins, where one of the records is held by another; nil where
    /// none is. Empty where they are too many: then whatever is held stays.
    private func goingAlong(
        with sources: [Int64], _ body: CascadeBody, _ writer: CascadeWriter
    ) throws -> Set<Int64>? {
        let isHeld = try sources.contains { id in
            guard let row = try lightRow(id), !row.isDeleted, writer.mayDelete(row) else { return false }
            return try holder(of: row, outside: [], writer) != nil
        }
        guard isHeld, let first = try sources.first.flatMap(lightRow) else { return nil }
        // The target is gone; what refers to its name is what goes with it.
        var target = first
        target.id = 0
        target.isDeleted = false
        target.name = body.target
        let cascade = try cascade(from: target, before: body.before, max: Limits.cascadeMax, writer)
        return Set((cascade ?? []).map(\.id))
    }
}
