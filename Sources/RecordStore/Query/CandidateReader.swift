import RecordModel
import Wire

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
