import RecordModel

/// One page of one query over one zone, being collected.
///
/// Here are the ways to read it. The choice depends on the query, the schema and bounded counts of index rows; any way
/// gives the same records in the same order, so each page chooses again.
struct QueryRun {
    private let plan: QueryPlan
    private let rows: IndexRows
    private let filters: FilterRows
    private let walk: OrderWalk
    /// Only what comes after it is wanted.
    private let cursor: QueryPosition?
    private let tuning: QueryTuning
    private let work: QueryWork
    private var page: CollectedPage

    init(_ reader: QueryReader, zone: ZoneRow, limit: Int, after cursor: QueryPosition?, bounds: Bounds) throws {
        tuning = QueryTuning.current
        work = bounds.work
        rows = IndexRows(db: reader.db, zoneID: zone.id, work: work)
        plan = try reader.plan(in: zone)
        filters = FilterRows(plan, rows)
        walk = OrderWalk(plan, rows, tuning)
        self.cursor = cursor
        page = CollectedPage(
            FoundRecords(order: plan.order, limit: limit, bytesMax: tuning.pageBytesMax),
            try CandidateReader(reader, plan, rows, after: cursor), bounds: bounds, examinedMax: tuning.examinedMax)
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
        return page.close()
    }

    /// In order.
    var found: [QueryCandidate] { page.found.all }
    /// Index entries that were looked at.
    var examined: Int { page.examined }

    /// What a candidate is to a client.
    mutating func record(_ candidate: QueryCandidate, zone: ZoneRow) throws -> RecordModel.Record {
        try page.reader.record(candidate, zone: zone)
    }

    /// How the page was read; to be asked after `collect`.
    func explanation(returned: Int) throws -> QueryExplanation {
        let filter = page.reader.filter
        return QueryExplanation(
            driver: page.note.driver(of: plan, lookUps: filter.probeCount),
            direction: plan.order.keys.first?.isAscending ?? true ? "ascending" : "descending",
            testedOnRecords: filter.tested.map(\.title), entriesExamined: examined,
            recordsRead: page.reader.recordsRead, recordsReturned: returned,
            indexes: try plan.indexes.map { index in
                QueryExplanation.IndexUse(
                    field: index.name, purpose: "\(index.purpose)", isReady: index.isReady,
                    progress: try index.progress(in: rows.db))
            })
    }

    // MARK: The ways

    private mutating func read() throws {
        let sources = plan.conditions.flatMap(\.sources)
        if sources.contains(where: \.ranges.isEmpty) {
            page.note.way = .nothing
            return
        }
        let ready = sources.filter(\.isReady)
        guard let first = plan.order.keys.first else { return try readByRecord(ready) }
        guard first.isReady else { return try gatherForBuilding(ready) }
        let others = ready.filter { !first.isReadThrough($0) }
        if others.isEmpty { return try walkOrder(resume: cursor) }
        if case .distance = first.kind {
            if let some = try filters.smallest(others, max: tuning.gatheredRows), try gather(some, others) { return }
            return try walkOrder(resume: cursor)
        }
        guard let begun = try walk(tuning.walkedFirst, from: cursor) else { return }
        // Very few first, so that no long list is counted far.
        let veryFew = try filters.smallest(others, max: tuning.fewRows / 8)
        if let few = try veryFew ?? filters.smallest(others, max: tuning.fewRows), try gather(few, others) { return }
        guard let reached = try walk(tuning.triedEntries, from: begun) else { return }
        try goOn(from: reached, others)
    }

    /// Walks in the order until `entriesMax` were examined in all.
    /// - Returns: where it stopped; nil if the page is complete.
    private mutating func walk(_ entriesMax: Int, from start: QueryPosition?) throws -> QueryPosition? {
        if let start, page.examined >= min(entriesMax, page.examinedBound) { return start }
        page.beginTrial(entriesMax)
        try walkOrder(resume: start)
        return page.endTrial()
    }

    private mutating func walkOrder(resume: QueryPosition?) throws {
        page.note.way = .order
        try walk.read(from: resume, into: &page)
    }

    /// The scan did not fill the page within its first entries: goes on with it, or intersects the filters' rows.
    private mutating func goOn(from reached: QueryPosition, _ others: [EntrySource]) throws {
        // Entries that the scan would still look at, if matches go on as densely as before.
        let bound = page.examinedBound
        let expected = page.examined * page.found.missing / max(page.found.all.count, 1)
        let entriesLeft = min(expected, bound - page.examined)
        let scanCost = entriesLeft * (1 + QueryCost.probe * page.reader.filter.probeCount)
        guard let smallest = try filters.smallest(others, max: min(scanCost / 3, bound)),
            let ids = try work.within(work.left / 2, { try intersection(smallest, others) })
        else { return try walkOrder(resume: reached) }
        if ids.count * QueryCost.record <= entriesLeft * 2, try gather(ids) { return }
        page.reader.take(only: ids)
        page.note.intersected = true
        try walkOrder(resume: reached)
    }

    /// By record id: the rows under one key come in that order, or those of another filter are few enough to be sorted.
    private mutating func readByRecord(_ ready: [EntrySource]) throws {
        guard var best = ready.first(where: { $0.point != nil }) else { return try gatherForBuilding(ready) }
        var start = cursor
        if ready.count > 1 {
            page.beginTrial(tuning.walkedFirst)
            try walkRecords(best, from: start)
            guard let reached = page.endTrial() else { return }
            start = reached
            if let smallest = try filters.smallest(ready, max: tuning.gatheredRows) {
                if smallest.point != nil {
                    best = smallest
                } else if let ids = try work.within(work.left / 2, { try intersection(smallest, ready) }) {
                    page.reader.after = start
                    _ = try gather(ids)
                    return
                }
            }
        }
        try walkRecords(best, from: start)
    }

    /// Reads the rows under one key, which are in the order of the records' ids.
    private mutating func walkRecords(_ source: EntrySource, from start: QueryPosition?) throws {
        guard let point = source.point, let key = point.key else { return }
        try page.reader.setFilter(reading: point)
        page.note.way = .source(source.title, point.index.name)
        _ = try rows.records(
            under: key, of: point.index, after: start?.recordID ?? .min, lookUps: page.reader.filter.lookUps
        ) { try page.take($0, isWanted: $1) }
    }

    /// A page whose own order cannot be read, because its index is being built: all matches are sorted, if another
    /// index says that they are few enough.
    private mutating func gatherForBuilding(_ ready: [EntrySource]) throws {
        var sources = ready
        let recordID = SystemField.recordID.rawValue
        if let all = plan.type.index(named: recordID), all.isReady, all.options.contains(.queryable) {
            sources.append(EntrySource(indexes: [all], ranges: [.all], title: "all records"))
        }
        let isDone = try work.withAll {
            guard let smallest = try filters.smallest(sources, max: page.examinedBound),
                let ids = try intersection(smallest, ready)
            else { return false }
            return try gather(ids)
        }
        guard isDone else { throw try plan.building(in: rows.db) }
    }

    /// Tries to have the matches of a source sorted, with half of the work that is left. Where that is not enough,
    /// nothing has changed.
    private mutating func gather(_ source: EntrySource, _ others: [EntrySource]) throws -> Bool {
        let before = (page.note, page.reader.recordsRead)
        let isDone = try work.within(work.left / 2) {
            guard let ids = try intersection(source, others) else { return false }
            return try gather(ids)
        }
        if !isDone { (page.note, page.reader.recordsRead) = before }
        return isDone
    }

    /// Puts the matches among some records, ascending, in order. False where the work does not suffice for all of them;
    /// then what was found before is there again.
    private mutating func gather(_ ids: [Int64]) throws -> Bool {
        page.note.gathered = true
        if plan.order.keys.isEmpty {
            for id in ids where id > page.reader.after?.recordID ?? .min {
                guard try page.take(id) else { break }
            }
        } else {
            page.note.gathered = try page.gather(ids, after: cursor)
        }
        return page.note.gathered
    }

    /// The records that several filters share; those are not asked of records again. Nil where the work does not
    /// suffice.
    private mutating func intersection(_ smallest: EntrySource, _ others: [EntrySource]) throws -> [Int64]? {
        page.note.way = .source(smallest.title, smallest.indexes.first?.name ?? "")
        guard let (ids, settled) = try filters.intersection(smallest, others) else { return nil }
        page.reader.setFilter(settled: settled)
        return ids
    }
}
