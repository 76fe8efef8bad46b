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

extension RecordTransaction {
    func addJob(
        _ kind: Job.Kind, subject: Int64, body: [UInt8] = [], position: Int64 = 0, last: Int64 = 0
    ) throws -> Int64 {
        hasJobs = true
        try db.run("INSERT INTO job VALUES (NULL, ?, ?, ?, ?, ?)", kind.rawValue, subject, body, position, last)
        return db.lastInsertedRowID
    }

    /// Has the records go that refer to a deleted one.
    func addCascade(from target: String, zone: OpenZone, caller: Caller, _ versions: VersionKeeper?) throws {
        var body = CascadeBody(target: target, before: zone.row.sequence, caller: caller)
        if level >= .exactNotifications { body.client = matcher.origin.client }
        if let versions { (body.versionsMax, body.quota) = (versions.versionsMax, versions.quota) }
        _ = try addJob(.cascade, subject: zone.row.id, body: body.encoded())
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
}
