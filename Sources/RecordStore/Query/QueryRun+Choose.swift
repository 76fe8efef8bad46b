import RecordModel

/// The ways to read a page. The choice depends on the query, the schema and bounded counts of index rows; any way gives
/// the same records in the same order, so each page chooses anew.
extension QueryRun {
    mutating func read() throws {
        let sources = plan.conditions.flatMap(\.sources)
        if sources.contains(where: \.ranges.isEmpty) {
            note.way = .nothing
            return
        }
        let ready = sources.filter(\.isReady)
        guard let first = plan.order.keys.first else { return try readByRecord(ready) }
        guard first.isReady else { return try gatherForBuilding(ready) }
        let others = ready.filter { !first.isReadThrough($0) }
        if others.isEmpty { return try walkOrder(resume: cursor) }
        if case .distance = first.kind {
            if let some = try smallest(others, max: tuning.gatheredRows), try gather(some, others) { return }
            return try walkOrder(resume: cursor)
        }
        guard let begun = try walk(tuning.walkedFirst, from: cursor) else { return }
        // Very few first, so that no long list is counted far.
        let veryFew = try smallest(others, max: tuning.fewRows / 8)
        if let few = try veryFew ?? smallest(others, max: tuning.fewRows), try gather(few, others) { return }
        guard let reached = try walk(tuning.triedEntries, from: begun) else { return }
        try goOn(from: reached, others)
    }

    /// Walks in the order until `entriesMax` were examined in all.
    /// - Returns: where it stopped; nil if the page is complete.
    private mutating func walk(_ entriesMax: Int, from start: QueryPosition?) throws -> QueryPosition? {
        examinedMax = min(entriesMax, examinedBound)
        defer { examinedMax = examinedBound }
        if examined >= examinedMax, let start { return start }
        try walkOrder(resume: start)
        return takeBack()
    }

    /// Where the page stopped only for the bound of the way that was tried; then it goes on.
    private mutating func takeBack() -> QueryPosition? {
        guard let reached = stoppedAt, examined < examinedBound, !isFull, !work.isSpent else { return nil }
        stoppedAt = nil
        return reached
    }

    /// The scan did not fill the page within its first entries: goes on with it, or intersects the filters' rows.
    private mutating func goOn(from reached: QueryPosition, _ others: [EntrySource]) throws {
        // Entries that the scan would still look at, if matches go on as densely as before.
        let missing = limit + 1 - found.count
        let entriesLeft = min(examined * missing / max(found.count, 1), examinedBound - examined)
        let scanCost = entriesLeft * (1 + QueryCost.probe * filter.probeCount)
        guard let smallest = try smallest(others, max: min(scanCost / 3, examinedBound)),
            let ids = try work.within(work.left / 2, { try intersection(smallest, others) })
        else { return try walkOrder(resume: reached) }
        if ids.count * QueryCost.record <= entriesLeft * 2, try gather(ids) { return }
        filter.members = Set(ids)
        note.intersected = true
        try walkOrder(resume: reached)
    }

    /// By record id: the rows under one key come in that order, or those of another filter are few enough to be sorted.
    private mutating func readByRecord(_ ready: [EntrySource]) throws {
        guard var best = ready.first(where: { $0.point != nil }) else { return try gatherForBuilding(ready) }
        var start = cursor
        if ready.count > 1 {
            examinedMax = min(tuning.walkedFirst, examinedBound)
            try walkRecords(best, from: start)
            examinedMax = examinedBound
            guard let reached = takeBack() else { return }
            start = reached
            if let smallest = try smallest(ready, max: tuning.gatheredRows) {
                if smallest.point != nil {
                    best = smallest
                } else if let ids = try work.within(work.left / 2, { try intersection(smallest, ready) }) {
                    after = start
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
        try setFilter(reading: point)
        note.way = .source(source.title, point.index.name)
        _ = try rows.records(
            under: key, of: point.index, after: start?.recordID ?? .min, lookUps: filter.lookUps
        ) { id, isWanted in
            examined += 1
            passed += 1
            judged += isWanted ? 1 : 0
            if isWanted, let candidate = try candidate(id, known: []) { append(candidate) }
            return goesOn(at: QueryPosition(keys: [], recordID: id))
        }
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
            guard let smallest = try smallest(sources, max: examinedBound),
                let ids = try intersection(smallest, ready)
            else { return false }
            return try gather(ids)
        }
        guard isDone else { throw building() }
    }

    /// The refusal that names the indexes which are not ready.
    func building() -> ServiceError {
        let names = plan.indexes.filter { !$0.isReady }.map { index in
            "index on \(index.name) of record type \(plan.type.definition.name): "
                + "\(Int((index.progress * 100).rounded(.down))) % built"
        }
        return ServiceError(
            .tryAgainLater, "an index that the query needs is being built; " + names.joined(separator: ", "),
            retryAfterSeconds: 1)
    }

    /// Tries to have the matches of a source sorted, with half of the work that is left. Where that is not enough,
    /// nothing has changed.
    private mutating func gather(_ source: EntrySource, _ others: [EntrySource]) throws -> Bool {
        let before = note
        let isDone = try work.within(work.left / 2) {
            guard let ids = try intersection(source, others) else { return false }
            return try gather(ids)
        }
        if !isDone { note = before }
        return isDone
    }

    /// Puts the matches among some records in order. False where the work does not suffice for all of them; then what
    /// was found before is there again.
    private mutating func gather(_ ids: [Int64]) throws -> Bool {
        note.gathered = true
        if plan.order.keys.isEmpty {
            try gatherInOrder(ids)
            return true
        }
        let kept = (found, bytes, after, filter, examined)
        (found, bytes, after) = ([], 0, cursor)
        for id in ids {
            guard !work.isSpent else {
                (found, bytes, after, filter, examined) = kept
                ceiling = nil
                note.gathered = false
                return false
            }
            examined += 1
            if let candidate = try candidate(id) { insert(candidate, from: 0) }
        }
        settle()
        return true
    }

    /// The matches among records, ascending, in an order that is the records' own.
    private mutating func gatherInOrder(_ ids: [Int64]) throws {
        for id in ids where id > after?.recordID ?? .min {
            examined += 1
            passed += 1
            judged += 1
            if let candidate = try candidate(id, known: []) { append(candidate) }
            guard goesOn(at: QueryPosition(keys: [], recordID: id)) else { return }
        }
    }

    /// The source with the fewest rows, if it has at most `max`. Counting takes an eighth of the work that is left.
    private func smallest(_ sources: [EntrySource], max: Int) throws -> EntrySource? {
        try work.within(work.left / 8) {
            var best: EntrySource?
            var bestCount = max + 1
            for source in sources {
                guard let count = try count(source, max: bestCount) else { return best }
                if count < bestCount { (best, bestCount) = (source, count) }
            }
            return best
        }
    }

    /// How many rows a source has, counted up to `max`; nil where no work is left for that.
    private func count(_ source: EntrySource, max: Int) throws -> Int? {
        var count = 0
        for index in source.indexes {
            for range in source.ranges where count < max {
                guard !work.isSpent else { return nil }
                count += try rows.count(index, range, max: max - count)
            }
        }
        return count
    }

    /// The records that have rows of the smallest source and of every other that is the rows under one key, by record
    /// id: the other's rows are read too where they are few, and else looked up. Nil where the work does not suffice.
    private mutating func intersection(_ smallest: EntrySource, _ others: [EntrySource]) throws -> [Int64]? {
        note.way = .source(smallest.title, smallest.indexes.first?.name ?? "")
        let points = others.compactMap(\.point).filter { $0 != smallest.point }
        guard var ids = try recordIDs(of: smallest) else { return nil }
        for point in points {
            guard let key = point.key, !ids.isEmpty else { continue }
            guard !work.isSpent else { return nil }
            let lookUps = ids.count * QueryCost.probe
            if try rows.count(point.index, .point(key), max: lookUps) < lookUps {
                let source = EntrySource(indexes: [point.index], ranges: [.point(key)], title: "")
                guard let others = try recordIDs(of: source) else { return nil }
                ids = ids.common(with: others)
            } else {
                let probe = try rows.probe(point)
                ids = try ids.filter { try probe.holds($0) }
            }
        }
        filter = RecordFilter(tested: plan.tested(settled: Set(points + [smallest.point].compactMap { $0 })))
        return ids
    }

    /// Ascending, without duplicates; nil if the work does not suffice.
    private func recordIDs(of source: EntrySource) throws -> [Int64]? {
        var ids: [Int64] = []
        for index in source.indexes {
            let circles = plan.circles(over: index)
            for range in source.ranges {
                let isAtEnd = try rows.scan(index, range) { key, id, _ in
                    work.charge(circles.count)
                    if circles.isEmpty || circles.mayHold(key) { ids.append(id) }
                    return !work.isSpent
                }
                guard isAtEnd, !work.isSpent else { return nil }
            }
        }
        if source.point != nil { return ids }
        work.charge(QueryCost.members(ids.count))
        ids.sort()
        var last: Int64?
        return ids.filter { id in
            defer { last = id }
            return id != last
        }
    }
}

extension [Int64] {
    /// The numbers that two ascending lists share.
    fileprivate func common(with other: [Int64]) -> [Int64] {
        var result: [Int64] = []
        var position = 0
        for number in self {
            while position < other.count, other[position] < number { position += 1 }
            if position < other.count, other[position] == number { result.append(number) }
        }
        return result
    }
}
