import Authorization
import GRDB
import RecordModel
import Wire

/// A piece of work that a command left behind: replicated state, worked off in order by `RecordCommand.maintain`.
struct Job {
    enum Kind: Int64 {
        /// `subject` is an index: its rows go.
        case dropIndex = 1
        /// `subject` is a schema: records up to row `last` get their rows in the indexes whose job this is.
        case buildIndexes = 2
        /// `subject` is a zone: the records that refer to a deleted one go (`CascadeBody`).
        case cascade = 3
        /// `subject` is a schema: records up to row `last` are cleaned of what the schema lost.
        case scrub = 4
        /// Rows from before rows were counted in quotas come to be counted; `body` has the last place that is
        /// (`RowPlace`), or nothing.
        case recount = 5
        /// Those whose queries match a record are told (`QueryMatching`), up to the watcher of row `last`; below
        /// `FeatureLevel.exactNotifications` only, then by `MatchingQueue`.
        case match = 6
    }

    /// The number of the one job that counts rows: it is found without a search, and works before all others.
    static let recountID: Int64 = 0

    var id: Int64
    /// Nil for a number that this version does not know, which is corruption.
    var kind: Kind?
    var subject: Int64
    var body: [UInt8]
    /// The greatest row that was looked at.
    var position: Int64
    var last: Int64

    private static let columns = "id, kind, subject, body, position, last"

    private init(_ row: SQLRow) {
        id = row.integer(0)
        kind = Kind(rawValue: row.integer(1))
        subject = row.integer(2)
        body = row.bytes(3)
        position = row.integer(4)
        last = row.integer(5)
    }

    static func first(in db: Database) throws -> Job? {
        try db.first("SELECT \(columns) FROM job ORDER BY id LIMIT 1") { Job($0) }
    }

    static func find(_ id: Int64, in db: Database) throws -> Job? {
        try db.first("SELECT \(columns) FROM job WHERE id = ?", id) { Job($0) }
    }

    static func first(_ kind: Kind, subject: Int64, in db: Database) throws -> Job? {
        try db.first(
            "SELECT \(columns) FROM job WHERE kind = ? AND subject = ? ORDER BY id LIMIT 1", kind.rawValue, subject
        ) { Job($0) }
    }

    /// Whether jobs of a kind wait.
    static func areWaiting(_ kind: Kind, in db: Database) throws -> Bool {
        try db.first("SELECT EXISTS (SELECT 1 FROM job WHERE kind = ?)", kind.rawValue) { $0.integer(0) != 0 } ?? false
    }

    /// Whether jobs, retired zones or changes to be matched wait.
    static func areWaiting(in db: Database) throws -> Bool {
        try db.first("SELECT \(exist)") { $0.integer(0) != 0 } ?? false
    }

    /// The same as an expression.
    static let exist =
        "EXISTS (SELECT 1 FROM job) OR EXISTS (SELECT 1 FROM zone WHERE state = 1) OR \(MatchingQueue.exists)"
}

/// What a cascade has to know of the deletion that began it.
struct CascadeBody: WireMessage {
    var target: String
    /// Only references that were made before this sequence count: the name may be in use again.
    var before: Int64
    /// On whose behalf records go.
    var caller: Caller
    /// The device that asked for it; from `FeatureLevel.exactNotifications` on.
    var client: String?
    /// How many earlier versions of each record are kept, and under what terms; from `FeatureLevel.versions` on.
    var versionsMax: UInt64 = 0
    var quota: QuotaTerms?

    static var blank: Self { CascadeBody(target: "", before: 0, caller: Caller(user: nil)) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &target)
        try wire.field(2, &before)
        try wire.field(3, &caller)
        try wire.field(4, &client)
        try wire.field(5, &versionsMax, unless: 0)
        try wire.field(6, &quota)
    }
}

/// Adds jobs and goes on with them, in a transaction.
struct JobTable: TransactionPart {
    let transaction: RecordTransaction

    func add(
        _ kind: Job.Kind, subject: Int64, body: [UInt8] = [], position: Int64 = 0, last: Int64 = 0
    ) throws -> Int64 {
        transaction.hasJobs = true
        try db.run("INSERT INTO job VALUES (NULL, ?, ?, ?, ?, ?)", kind.rawValue, subject, body, position, last)
        return db.lastInsertedRowID
    }

    /// Has the records go that refer to a deleted one.
    func addCascade(from target: String, zone: OpenZone, caller: Caller, _ versions: VersionKeeper?) throws {
        var body = CascadeBody(target: target, before: zone.row.sequence, caller: caller)
        if transaction.level >= .exactNotifications { body.client = transaction.matcher.origin.client }
        if let versions { (body.versionsMax, body.quota) = (versions.versionsMax, versions.quota) }
        _ = try add(.cascade, subject: zone.row.id, body: body.encoded())
    }

    func advance(_ job: Job, to position: Int64) throws {
        try Invariant.check(
            position > job.position, "job \(job.id) would go from \(job.position) to \(position): it would never end")
        try db.run("UPDATE job SET position = ? WHERE id = ?", position, job.id)
        try db.checkOneRow("job \(job.id) at \(position)")
    }

    func end(_ job: Job) throws {
        try db.run("DELETE FROM job WHERE id = ?", job.id)
        try db.checkOneRow("the end of job \(job.id)")
    }

    /// Calls `body` with rows, in order, until the part has read enough; returns the row to go on after, which is `end`
    /// where all were taken.
    func forEachRow(
        _ ids: [Int64], end: Int64?, body: (_ row: RecordRow, _ zoneID: Int64) throws -> Void
    ) throws -> Int64? {
        for (place, id) in ids.enumerated() {
            if transaction.isPartFull && place > 0 { return ids[place - 1] }
            guard let (row, zoneID) = try transaction.rows.rowAndZone(id) else { continue }
            transaction.partBytes += row.body.count
            try body(row, zoneID)
        }
        return end
    }

    /// The rows of records after a job's position that have one of some types, and what looking for them counts for.
    ///
    /// - Returns: `end` is the last row looked at; nil where there are no more.
    func scan(_ job: Job, types: Set<Int64>, budget: Int) throws -> (ids: [Int64], end: Int64?, used: Int) {
        var ids: [Int64] = []
        var end: Int64?
        var looked = 0
        // Looking at a row is much cheaper than working on it.
        let lookedMax = budget.multipliedReportingOverflow(by: 10)
        let limit = lookedMax.overflow ? Int.max : lookedMax.partialValue
        try db.forEach(
            "SELECT id, type FROM record WHERE id > ? AND id <= ? ORDER BY id", job.position, job.last
        ) { row in
            if ids.count >= budget || looked >= limit { return false }
            looked += 1
            end = row.integer(0)
            if types.contains(row.integer(1)) { ids.append(row.integer(0)) }
            return true
        }
        let isAtEnd = ids.count < budget && looked < limit
        return (ids, isAtEnd ? nil : end, ids.count + (looked - ids.count) / 10)
    }
}

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
            if let next { try JobTable(transaction).advance(job, to: next) } else { try finish(job) }
            return used
        }
        let (ids, end, used) = try JobTable(transaction).scan(job, types: types, budget: budget)
        let next = try JobTable(transaction).forEachRow(ids, end: end) { row, zoneID in
            // What is in a retired zone stays as its index rows were made from, until it is reclaimed with them.
            guard !row.isDeleted, let zone = try transaction.openZone(id: zoneID) else { return }
            if let type = schema.byID[row.typeID] {
                try strip(row, type: type, zone: zone)
            } else {
                try RecordWriter(transaction).leaveTombstone(
                    row, type: nil, zone: zone, by: UserNameCache.anonymous, nil)
            }
        }
        if let next {
            try JobTable(transaction).advance(job, to: next)
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
        try JobTable(transaction).end(job)
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
        try EdgeTable(transaction).update(
            zone: zone, recordID: row.id, from: Edge.all(in: body), to: Edge.all(in: visible), sequence: row.sequence)
    }
}

/// Work on indexes that come and go, in a transaction.
struct IndexJobs: TransactionPart {
    let transaction: RecordTransaction

    /// Gives records their rows in indexes that are being built.
    ///
    /// Writes keep those indexes up from the first moment, so rows may be there already.
    func build(_ job: Job, budget: Int) throws -> Int {
        let building = Set(
            try db.all("SELECT id FROM field_index WHERE job = ? AND state = 0", job.id) { $0.integer(0) })
        let schema = try transaction.schema(id: job.subject)
        let wanted = schema.byID.mapValues { type in type.indexes.filter { building.contains($0.id) } }
            .filter { !$0.value.isEmpty }
        let rowsEach = transaction.level < .boundedRows ? 1 : wanted.values.map(\.count).max() ?? 1
        let (ids, end, used) =
            wanted.isEmpty
            ? ([], nil, 1)
            : try JobTable(transaction).scan(job, types: Set(wanted.keys), budget: max(budget / rowsEach, 1))
        var growth: [Int64: Int64] = [:]
        let next = try JobTable(transaction).forEachRow(ids, end: end) { row, zoneID in
            guard !row.isDeleted, let type = schema.byID[row.typeID] else { return }
            let record = try transaction.indexedRecord(row, fields: try type.fields(of: row))
            for index in wanted[row.typeID] ?? [] {
                growth[zoneID, default: 0] += try IndexTable(transaction).update(
                    index, zoneID: zoneID, recordID: row.id, from: nil, to: record.keys(in: index))
            }
        }
        try transaction.count(growth)
        if let next {
            try JobTable(transaction).advance(job, to: next)
        } else {
            try db.run("UPDATE field_index SET state = 1, job = 0 WHERE job = ? AND state = 0", job.id)
            try JobTable(transaction).end(job)
        }
        // How far a job is, is read from its row: a part of it changes nothing of what is kept in memory.
        if next == nil || transaction.level < .steadySchemas { try transaction.revise(schemaID: job.subject) }
        return used * rowsEach
    }

    /// Removes rows of an index that is gone.
    func drop(_ job: Job, budget: Int) throws -> Int {
        let used = try drop(job.subject, zones: .min ... .max, budget: budget)
        if used < budget {
            try db.run("DELETE FROM field_index WHERE id = ?", job.subject)
            try JobTable(transaction).end(job)
        }
        return used
    }

    /// Removes rows of an index from the table and the quotas.
    /// - Returns: how many; less than `budget` once all are gone.
    func drop(_ indexID: Int64, zones: ClosedRange<Int64>, budget: Int) throws -> Int {
        var left = budget
        var growth: [Int64: Int64] = [:]
        func dropRows(_ table: String, _ columns: String, read: (SQLRow) -> (Int64, IndexKey?, Int64)) throws {
            let rows = try db.all(
                "SELECT \(columns) FROM \(table) WHERE field = ? AND zone BETWEEN ? AND ? ORDER BY \(columns) LIMIT ?",
                indexID, zones.lowerBound, zones.upperBound, left, body: read)
            for (zone, key, record) in rows {
                growth[zone, default: 0] -= try IndexTable(transaction).remove(indexID, zoneID: zone, key, record)
            }
            left -= rows.count
        }
        try dropRows("index_number", "zone, value, record") { ($0.integer(0), .number($0.integer(1)), $0.integer(2)) }
        try dropRows("index_bytes", "zone, value, record") { ($0.integer(0), .bytes($0.bytes(1)), $0.integer(2)) }
        try dropRows("index_missing", "zone, record") { ($0.integer(0), nil, $0.integer(1)) }
        try transaction.count(growth)
        return budget - left
    }
}
