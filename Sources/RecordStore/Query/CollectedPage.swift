import RecordModel
import Wire

/// The records that were found for a page, in order.
struct FoundRecords {
    private let order: QueryOrder
    private let limit: Int
    private let bytesMax: Int
    /// One more than the page's limit where there is more.
    private(set) var all: [QueryCandidate] = []
    /// Of the bodies.
    private var bytes = 0
    /// The first record that the page had no room for.
    private var ceiling: (keys: [IndexKey?], id: Int64)?

    init(order: QueryOrder, limit: Int, bytesMax: Int) {
        self.order = order
        self.limit = limit
        self.bytesMax = bytesMax
    }

    /// Whether there are more than the page may have.
    var hasMore: Bool { all.count > limit }
    /// How many are missing to know that there is more.
    var missing: Int { limit + 1 - all.count }
    var isTooLarge: Bool { bytes > bytesMax }
    /// Whether something that was found had no room.
    var isFull: Bool { ceiling != nil || isTooLarge }
    /// The last position, where something behind it had no room.
    var end: QueryPosition? { ceiling == nil ? nil : all[all.count - 1].position }

    /// Takes a candidate that comes after all that were found.
    mutating func append(_ candidate: QueryCandidate) {
        all.append(candidate)
        bytes += candidate.row.body.count
    }

    /// Puts a candidate in its place behind `start`, and drops what the page cannot hold.
    mutating func insert(_ candidate: QueryCandidate, from start: Int) {
        let place = (keys: candidate.keys, id: candidate.row.id)
        if let ceiling, order.precedes(ceiling, place) { return }
        let index = all[start...].prefixEnd { order.precedes(($0.keys, $0.row.id), place) }
        guard index <= limit else { return }
        all.insert(candidate, at: index)
        bytes += candidate.row.body.count
        if all.count > limit + 1 { dropLast() }
        while bytes > bytesMax, all.count > max(start, 1) {
            if let last = all.last { ceiling = (last.keys, last.row.id) }
            dropLast()
        }
    }

    /// Takes back what was inserted behind `start`.
    mutating func discard(from start: Int) {
        while all.count > start { dropLast() }
        ceiling = nil
    }

    /// Takes back what was inserted behind `start` and has such keys, which what comes last has.
    mutating func discard(from start: Int, where isBehind: ([IndexKey?]) -> Bool) {
        while all.count > start, isBehind(all[all.count - 1].keys) { dropLast() }
        if let ceiling, isBehind(ceiling.keys) { self.ceiling = nil }
    }

    /// Drops what is more than the page may have, and returns the position of the last one.
    mutating func removeExcess() -> QueryPosition {
        all.removeSubrange(limit...)
        return all[limit - 1].position
    }

    /// The same page without records.
    var emptied: FoundRecords { FoundRecords(order: order, limit: limit, bytesMax: bytesMax) }

    private mutating func dropLast() { if let last = all.popLast() { bytes -= last.row.body.count } }
}

/// What a page has come to: its records, what it has cost, and where it ends.
struct CollectedPage {
    var found: FoundRecords
    var reader: CandidateReader
    var note = QueryNote()
    private let work: QueryWork
    /// Whether the page may end before its first entry where no work is left for it: another zone's part goes on.
    let mayEndAtOnce: Bool
    /// Index entries to look at, at most, give or take a group of ties.
    let examinedBound: Int
    /// The same for the way that is being tried.
    private var examinedMax: Int
    private(set) var examined = 0
    /// Entries that the page is complete through.
    private var passed = 0
    /// Records that were read for them.
    private var judged = 0
    /// Where the scan stopped for its bounds.
    private var stoppedAt: QueryPosition?

    init(_ found: FoundRecords, _ reader: CandidateReader, bounds: QueryRun.Bounds, examinedMax: Int) {
        self.found = found
        self.reader = reader
        work = bounds.work
        mayEndAtOnce = bounds.mayEndAtOnce
        examinedBound = bounds.examined ?? examinedMax
        self.examinedMax = examinedBound
    }

    /// Whether the page takes nothing more.
    var hasEnded: Bool { found.hasMore || stoppedAt != nil }

    /// Ends the page.
    /// - Returns: where; nil at the end of the query.
    mutating func close() -> QueryPosition? {
        if found.hasMore { stoppedAt = found.removeExcess() }
        return stoppedAt
    }

    /// Counts an entry that is looked at.
    mutating func examine() { examined += 1 }

    /// Counts entries that the page is complete through, and records that were read for them.
    mutating func advance(_ entries: Int = 1, judged records: Int = 0) {
        passed += entries
        judged += records
    }

    mutating func stop(at position: QueryPosition) { stoppedAt = position }

    /// Ends a run of insertions: where something had no room, the page ends with what is there; else at a position, if
    /// there is one.
    mutating func settle(or position: QueryPosition? = nil) { stoppedAt = stoppedAt ?? found.end ?? position }

    /// Whether the page has to end for its work. It has come to a record by then, or past some entries.
    private var isOutOfWork: Bool { work.isSpent && (judged > 0 || passed >= 64) }

    /// Whether the page has room and the scan has work left; remembers the position where not.
    mutating func goesOn(at position: @autoclosure () -> QueryPosition) -> Bool {
        if hasEnded { return false }
        if !found.isTooLarge && examined < examinedMax && !isOutOfWork { return true }
        stoppedAt = position()
        return false
    }

    /// Begins to try a way that looks at some entries at most, those before it counted.
    mutating func beginTrial(_ entriesMax: Int) { examinedMax = min(entriesMax, examinedBound) }

    /// Ends the trial.
    /// - Returns: where the page stopped only for the bound of the way that was tried; then it goes on.
    mutating func endTrial() -> QueryPosition? {
        examinedMax = examinedBound
        guard let reached = stoppedAt, examined < examinedBound, !found.isFull, !work.isSpent else { return nil }
        stoppedAt = nil
        return reached
    }

    // MARK: Records by id

    /// Takes a record in an order of ids; false where the page ends with it.
    mutating func take(_ id: Int64, isWanted: Bool = true) throws -> Bool {
        examine()
        advance(judged: isWanted ? 1 : 0)
        if isWanted, let candidate = try reader.candidate(id, known: []) { found.append(candidate) }
        return goesOn(at: QueryPosition(keys: [], recordID: id))
    }

    /// Puts the matches among some records in order, in place of what was found. False where the work does not suffice
    /// for all of them; then what was found before is there again.
    mutating func gather(_ ids: [Int64], after cursor: QueryPosition?) throws -> Bool {
        let kept = (found, reader.after, examined)
        (found, reader.after) = (found.emptied, cursor)
        for id in ids {
            guard !work.isSpent else {
                (found, reader.after, examined) = kept
                return false
            }
            examine()
            if let candidate = try reader.candidate(id) { found.insert(candidate, from: 0) }
        }
        settle()
        return true
    }
}

/// A record that belongs in the answer.
struct QueryCandidate {
    var row: RecordRow
    var fields: Fields
    var keys: [IndexKey?]
    var position: QueryPosition { QueryPosition(keys: keys, recordID: row.id) }
}

/// Reads the records that index entries name, as far as they belong in the answer.
struct CandidateReader {
    private let plan: QueryPlan
    private let rows: IndexRows
    /// The only creator whose records the caller may read; nil if all.
    private let onlyCreatedBy: Int64?
    private let findRecord: SQLStatement
    private var names: UserNameCache
    /// What the page has got to: only what comes after it is still wanted.
    var after: QueryPosition?
    /// What index rows are still asked of records, and conditions that only the records themselves can answer.
    private(set) var filter: RecordFilter
    var recordsRead = 0

    init(_ reader: QueryReader, _ plan: QueryPlan, _ rows: IndexRows, after cursor: QueryPosition?) throws {
        self.plan = plan
        self.rows = rows
        onlyCreatedBy = reader.onlyCreatedBy
        findRecord = try IndexRows.findRecord(in: reader.db)
        names = UserNameCache(reader.db)
        after = cursor
        filter = RecordFilter(tested: plan.conditions)
    }

    /// What a candidate is to a client.
    mutating func record(_ candidate: QueryCandidate, zone: ZoneRow) throws -> RecordModel.Record {
        let row = candidate.row
        return RecordModel.Record(
            name: row.name, type: plan.type.definition.name, changeTag: zone.changeTag(row.sequence),
            created: Stamp(timestamp: row.createdAt, user: try names.name(row.createdBy)),
            modified: Stamp(timestamp: row.modifiedAt, user: try names.name(row.modifiedBy)),
            fields: candidate.fields)
    }

    /// The record as a candidate, if it passes and comes after the cursor.
    /// - Parameter known: its sort keys where the index says them, and that it comes after the cursor.
    mutating func candidate(_ id: Int64, known: [IndexKey?]? = nil) throws -> QueryCandidate? {
        guard try filter.passes(id), let row = try findRecord.first([id], body: { RecordRow($0) }) else {
            return nil
        }
        recordsRead += 1
        rows.work.charge(QueryCost.record + QueryCost.body(row.body.count))
        if let onlyCreatedBy, row.createdBy != onlyCreatedBy { return nil }
        var record = KeyedRecord(
            IndexedRecord(
                name: row.name, sequence: row.sequence,
                created: Stamp(timestamp: row.createdAt, user: try names.name(row.createdBy)),
                modified: Stamp(timestamp: row.modifiedAt, user: try names.name(row.modifiedBy)),
                fields: try plan.type.fields(of: row)), work: rows.work)
        for condition in filter.tested where !condition.holds(&record) { return nil }
        let keys = known ?? plan.order.keys(of: &record)
        if known == nil, let after, !plan.order.isAfter(after, keys: keys, id: id) { return nil }
        return QueryCandidate(row: row, fields: record.record.fields, keys: keys)
    }

    // MARK: Filter

    /// Takes nothing but these records from now on, which an intersection of indexes found.
    mutating func take(only members: [Int64]) { filter.members = Set(members) }

    /// Tests records on what is not settled by points that all of them were found under.
    mutating func setFilter(settled: Set<KeyPoint>) {
        filter = RecordFilter(tested: plan.tested(settled: settled))
    }

    /// Sets what is asked of entries: a look-up for every filter on one key, and for the keys that a group shares.
    /// - Parameters:
    ///   - reading: the point whose rows are read, so that it needs no look-up.
    ///   - scanned: the index of single values that is read in the ranges that filters on it leave.
    ///   - inScan: whether the scan itself can look rows up.
    mutating func setFilter(
        reading: KeyPoint? = nil, fixed: [KeyPoint] = [], scanned: InstalledIndex? = nil, inScan: Bool = true
    ) throws {
        let members = filter.members
        filter = RecordFilter(tested: [], members: members)
        var settled = Set(fixed)
        var lookedUp = fixed
        if let reading { settled.insert(reading) }
        for condition in plan.conditions where condition.isReady && condition.index.id != scanned?.id {
            rows.work.charge(condition.sources.count)
            for point in condition.sources.compactMap(\.point) where settled.insert(point).inserted {
                // Members were found by an intersection of all such points.
                if members == nil { lookedUp.append(point) }
            }
            if let key = condition.unwantedKey {
                filter.unwanted.append(try rows.probe(KeyPoint(index: condition.index, key: key)))
            }
        }
        filter.lookUps = inScan ? Array(lookedUp.prefix(IndexRows.lookUpsMax)) : []
        filter.wanted = try lookedUp.dropFirst(filter.lookUps.count).map { try rows.probe($0) }
        filter.tested = plan.tested(settled: settled, scanned: scanned)
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
