import GRDB
import RecordModel
import Wire

/// One page of one query over one zone, being collected.
struct QueryRun {
    /// A record that belongs in the answer.
    struct Candidate {
        var row: RecordRow
        var fields: Fields
        var keys: [IndexKey?]
    }

    let rows: IndexRows
    let plan: QueryPlan
    let limit: Int
    /// The cursor: only what comes after it is wanted.
    let cursor: QueryPosition?
    /// What the page has got to: only what comes after it is still wanted.
    var after: QueryPosition?
    /// The only creator whose records the caller may read; nil if all.
    let onlyCreatedBy: Int64?
    let tuning: QueryTuning
    private let findRecord: SQLStatement
    var names: UserNameCache
    let work: QueryWork
    /// Whether the page may end before its first entry where no work is left for it: another zone's part goes on.
    let mayEndAtOnce: Bool
    /// Index entries to look at, at most, give or take a group of ties.
    let examinedBound: Int
    /// The same for the way that is being tried.
    var examinedMax: Int
    var examined = 0
    /// Entries that the page is complete through.
    var passed = 0
    /// Records that were read for them.
    var judged = 0
    /// In order; one more than `limit` where there is more.
    var found: [Candidate] = []
    /// Of the bodies in `found`.
    var bytes = 0
    /// Where the scan stopped for its bounds.
    var stoppedAt: QueryPosition?
    /// The first record that the page had no room for.
    var ceiling: (keys: [IndexKey?], id: Int64)?
    /// What index rows are still asked of records, and conditions that only the records themselves can answer.
    var filter: RecordFilter
    var note = QueryNote()

    init(
        _ reader: QueryReader, zone: ZoneRow, limit: Int, after cursor: QueryPosition?, bounds: Bounds
    ) throws {
        tuning = QueryTuning.current
        work = bounds.work
        mayEndAtOnce = bounds.mayEndAtOnce
        examinedBound = bounds.examined ?? tuning.examinedMax
        examinedMax = examinedBound
        rows = IndexRows(db: reader.db, zoneID: zone.id, work: work)
        plan = try reader.plan(in: zone)
        self.limit = limit
        self.cursor = cursor
        after = cursor
        onlyCreatedBy = reader.onlyCreatedBy
        findRecord = try IndexRows.findRecord(in: reader.db)
        names = UserNameCache(reader.db)
        filter = RecordFilter(tested: plan.conditions)
        work.charge(QueryCost.record + plan.conditions.count)
    }

    /// What a page may cost.
    struct Bounds {
        let work: QueryWork
        /// Index entries, if other than the tuning says.
        var examined: Int?
        var mayEndAtOnce = false
    }

    /// Collects the page: `found`, and where it ends; nil at the end of the query.
    /// - Throws: `ServiceError` where an index that the page needs is not built yet, `DatabaseError` on an I/O error.
    mutating func collect() throws -> QueryPosition? {
        try read()
        if found.count > limit {
            found.removeSubrange(limit...)
            stoppedAt = position(limit - 1)
        }
        return stoppedAt
    }

    /// Where one of the found records stands.
    func position(_ number: Int) -> QueryPosition {
        QueryPosition(keys: found[number].keys, recordID: found[number].row.id)
    }

    // MARK: Records

    /// What a candidate is to a client.
    mutating func record(_ candidate: Candidate, zone: ZoneRow) throws -> RecordModel.Record {
        let row = candidate.row
        return RecordModel.Record(
            name: row.name, type: plan.type.definition.name, changeTag: zone.changeTag(row.sequence),
            created: Stamp(timestamp: row.createdAt, user: try names.name(row.createdBy)),
            modified: Stamp(timestamp: row.modifiedAt, user: try names.name(row.modifiedBy)),
            fields: candidate.fields)
    }

    /// The record as a candidate, if it passes and comes after the cursor.
    /// - Parameter known: its sort keys where the index says them, and that it comes after the cursor.
    mutating func candidate(_ id: Int64, known: [IndexKey?]? = nil) throws -> Candidate? {
        guard try filter.passes(id), let row = try findRecord.first([id], body: { RecordRow($0) }) else {
            return nil
        }
        note.recordsRead += 1
        work.charge(QueryCost.record + QueryCost.body(row.body.count))
        if let onlyCreatedBy, row.createdBy != onlyCreatedBy { return nil }
        var record = KeyedRecord(
            IndexedRecord(
                name: row.name, sequence: row.sequence,
                created: Stamp(timestamp: row.createdAt, user: try names.name(row.createdBy)),
                modified: Stamp(timestamp: row.modifiedAt, user: try names.name(row.modifiedBy)),
                fields: try plan.type.fields(of: row)), work: work)
        for condition in filter.tested where !condition.holds(&record) { return nil }
        let keys = known ?? plan.order.keys(of: &record)
        if known == nil, let after, !plan.order.isAfter(after, keys: keys, id: id) { return nil }
        return Candidate(row: row, fields: record.record.fields, keys: keys)
    }

    /// Takes a candidate that comes after all that were found.
    mutating func append(_ candidate: Candidate) {
        found.append(candidate)
        bytes += candidate.row.body.count
    }

    /// Puts a candidate in its place behind `start`, and drops what the page cannot hold.
    mutating func insert(_ candidate: Candidate, from start: Int) {
        let place = (keys: candidate.keys, id: candidate.row.id)
        if let ceiling, plan.order.precedes(ceiling, place) { return }
        let index = found[start...].prefixEnd { plan.order.precedes(($0.keys, $0.row.id), place) }
        guard index <= limit else { return }
        found.insert(candidate, at: index)
        bytes += candidate.row.body.count
        if found.count > limit + 1 { dropLast() }
        while bytes > tuning.pageBytesMax, found.count > max(start, 1) {
            if let last = found.last { ceiling = (last.keys, last.row.id) }
            dropLast()
        }
    }

    /// Whether something that was found had no room.
    var isFull: Bool { ceiling != nil || bytes > tuning.pageBytesMax }

    /// Takes back what was inserted behind `start`.
    mutating func discard(from start: Int) {
        while found.count > start { dropLast() }
        ceiling = nil
    }

    mutating func dropLast() { if let last = found.popLast() { bytes -= last.row.body.count } }

    /// Ends a run of insertions: where something had no room, the page ends with what is there.
    mutating func settle() {
        if ceiling != nil, stoppedAt == nil { stoppedAt = position(found.count - 1) }
    }

    /// Whether the page has to end for its work. It has come to a record by then, or past some entries.
    private var isOutOfWork: Bool { work.isSpent && (judged > 0 || passed >= 64) }

    /// Whether the page has room and the scan has work left; remembers the position where not.
    mutating func goesOn(at position: @autoclosure () -> QueryPosition) -> Bool {
        if found.count > limit || stoppedAt != nil { return false }
        if bytes <= tuning.pageBytesMax && examined < examinedMax && !isOutOfWork { return true }
        stoppedAt = position()
        return false
    }
}

/// The rows under one key of one index; a nil key means records without the field.
struct KeyPoint: Hashable {
    var index: InstalledIndex
    var key: IndexKey?

    static func == (left: KeyPoint, right: KeyPoint) -> Bool {
        left.index.id == right.index.id && left.key == right.key
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(index.id)
        hasher.combine(key)
    }
}

/// What decides whether an index entry is worth reading its record.
struct RecordFilter {
    /// Conditions that are tested on the record.
    var tested: [Condition]
    /// What scans look up by themselves.
    var lookUps: [KeyPoint] = []
    var wanted: [RowProbe] = []
    var unwanted: [RowProbe] = []
    var probeCount: Int { lookUps.count + wanted.count + unwanted.count }
    /// The only records in question, where an intersection of indexes found them.
    var members: Set<Int64>?

    func passes(_ id: Int64) throws -> Bool {
        if let members, !members.contains(id) { return false }
        for probe in wanted where try !probe.holds(id) { return false }
        for probe in unwanted where try probe.holds(id) { return false }
        return true
    }
}
