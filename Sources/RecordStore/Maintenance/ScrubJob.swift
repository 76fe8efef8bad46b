import GRDB
import RecordModel

/// The removal of what a schema lost from its records, in a transaction.
struct ScrubJob: TransactionPart {
    let transaction: RecordTransaction

    /// Cleans records of what the schema lost: records of lost types become tombstones, which feeds show; values of
    /// lost fields go without a trace, since reads have not shown them since.
    ///
    /// Their earlier versions follow.
    func work(on job: Job, budget: Int) throws -> Int {
        let types = Set(
            try db.all("SELECT type FROM stray WHERE job = ?", job.id) { $0.integer(0) })
        let schema = try transaction.schema(id: job.subject)
        if !job.body.isEmpty {
            let (next, used) = try VersionTable(transaction).scrub(job, types: types, schema, budget: budget)
            if let next { try transaction.advance(job, to: next) } else { try finish(job) }
            return used
        }
        let (ids, end, used) = try transaction.scan(job, types: types, budget: budget)
        let next = try transaction.forEachRow(ids, end: end) { row, zoneID in
            // What is in a retired zone stays as its index rows were made from, until it is reclaimed with them.
            guard !row.isDeleted, let zone = try transaction.openZone(id: zoneID) else { return }
            if let type = schema.byID[row.typeID] {
                try strip(row, type: type, zone: zone)
            } else {
                try transaction.leaveTombstone(row, type: nil, zone: zone, by: UserNameCache.anonymous, nil)
            }
        }
        if let next {
            try transaction.advance(job, to: next)
        } else if try !VersionTable(transaction).isEmpty() {
            try db.run("UPDATE job SET body = x'01', position = 0 WHERE id = ?", job.id)
            try db.checkOneRow("the versions of job \(job.id)")
        } else {
            try finish(job)
        }
        return used
    }

    private func finish(_ job: Job) throws {
        try db.run("DELETE FROM stray WHERE job = ?", job.id)
        try transaction.end(job)
        try transaction.revise(schemaID: job.subject)
    }

    /// Index rows are made from visible fields, so they stay as they are. Numbers that the preferred kind of their
    /// field cannot hold stay hidden.
    private func strip(_ row: RecordRow, type: InstalledType, zone: OpenZone) throws {
        let body = try decodeBody(row.body)
        let visible = type.scrubbed(body)
        if visible == body { return }
        var scrubbed = row
        scrubbed.body = encodeBody(visible)
        try db.run("UPDATE record SET body = ? WHERE id = ?", scrubbed.body, row.id)
        try db.checkOneRow("the values of record \(row.id)")
        zone.count(scrubbed.size(visible.assets) - row.size(body.assets))
        try NamedAssets(transaction).update(from: body.assets, to: visible.assets)
        try transaction.updateEdges(
            zone: zone, recordID: row.id, from: Edge.all(in: body), to: Edge.all(in: visible), sequence: row.sequence)
    }
}
