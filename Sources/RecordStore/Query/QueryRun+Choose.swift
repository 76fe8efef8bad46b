import RecordModel

/// The ways to read a page. The choice depends on the query, the schema and bounded counts of index rows; any way gives
/// the same records in the same order, so each page chooses anew.
extension QueryRun {
    /// What reading and judging a record costs, what a probe of an index, in steps of an index scan.
    private static let recordCost = 30
    private static let probeCost = 6

    mutating func read() throws {
        let sources = plan.conditions.flatMap(\.sources)
        if sources.contains(where: { $0.parts.isEmpty }) {
            note.way = .nothing
            return
        }
        let ready = sources.filter(\.isReady)
        guard let first = plan.order.keys.first else { return try readByRecord(ready) }
        guard first.isReady else { return try gatherForBuilding(ready) }
        let others = ready.filter { !first.isReadThrough($0) }
        // Very few first, so that no long list is counted far.
        let veryFew = try smallest(others, max: tuning.fewRows / 8)
        if let few = try veryFew ?? smallest(others, max: tuning.fewRows) {
            return try gather(try intersection(few, others))
        }
        if case .distance = first.kind {
            if let some = try smallest(others, max: tuning.gatheredRows) {
                return try gather(try intersection(some, others))
            }
            return try walkOrder(resume: after)
        }
        if others.isEmpty { return try walkOrder(resume: after) }
        examinedMax = min(tuning.triedEntries, examinedBound)
        try walkOrder(resume: after)
        examinedMax = examinedBound
        guard let reached = stoppedAt, examined < examinedMax, !isFull else { return }
        stoppedAt = nil
        try goOn(from: reached, others)
    }

    /// The scan did not fill the page within its first entries: goes on with it, or intersects the filters' rows.
    private mutating func goOn(from reached: QueryPosition, _ others: [EntrySource]) throws {
        // Entries that the scan would still look at, if matches go on as densely as before.
        let missing = limit + 1 - found.count
        let entriesLeft = min(examined * missing / max(found.count, 1), examinedBound - examined)
        let scanCost = entriesLeft * (1 + Self.probeCost * filter.probeCount)
        guard let smallest = try smallest(others, max: min(scanCost / 3, examinedBound)) else {
            return try walkOrder(resume: reached)
        }
        let ids = try intersection(smallest, others)
        if ids.count * Self.recordCost <= entriesLeft * 2 {
            (found, bytes) = ([], 0)
            return try gather(ids)
        }
        filter.members = Set(ids)
        note.intersected = true
        try walkOrder(resume: reached)
    }

    /// By record id: the rows under one key come in that order, or those of another filter are few enough to be sorted.
    private mutating func readByRecord(_ ready: [EntrySource]) throws {
        let points = ready.compactMap(\.point)
        if points.isEmpty { return try gatherForBuilding(ready) }
        var best = ready.first { $0.point != nil }
        if ready.count > 1, let smallest = try smallest(ready, max: tuning.gatheredRows) {
            if smallest.point == nil { return try gather(try intersection(smallest, ready)) }
            best = smallest
        }
        guard let best, let point = best.point, let key = point.key else { return }
        try setFilter(reading: point)
        note.way = .source(best.title, point.index.name)
        _ = try rows.records(
            under: key, of: point.index, after: after?.recordID ?? .min, lookUps: filter.lookUps
        ) { id, isWanted in
            examined += 1
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
            sources.append(EntrySource(parts: [EntrySource.Part(index: all, range: .all)], title: "all records"))
        }
        guard let smallest = try smallest(sources, max: examinedBound) else { throw building() }
        try gather(try intersection(smallest, ready))
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

    /// Puts the matches among some records in order.
    private mutating func gather(_ ids: [Int64]) throws {
        note.gathered = true
        for id in ids {
            examined += 1
            if let candidate = try candidate(id) { insert(candidate, from: 0) }
        }
        settle()
    }

    /// The source with the fewest rows, if it has at most `max`.
    private func smallest(_ sources: [EntrySource], max: Int) throws -> EntrySource? {
        var best: EntrySource?
        var bestCount = max + 1
        for source in sources {
            var count = 0
            for part in source.parts where count < bestCount {
                count += try rows.count(part.index, part.range, max: bestCount - count)
            }
            if count < bestCount { (best, bestCount) = (source, count) }
        }
        return best
    }

    /// The records that have rows of the smallest source and of every other that is the rows under one key, by record
    /// id: the other's rows are read too where they are few, and else looked up.
    private mutating func intersection(_ smallest: EntrySource, _ others: [EntrySource]) throws -> [Int64] {
        note.way = .source(smallest.title, smallest.parts.first?.index.name ?? "")
        let points = others.compactMap(\.point).filter { !$0.isSame(as: smallest.point) }
        var ids = try recordIDs(of: smallest)
        for point in points {
            guard let key = point.key, !ids.isEmpty else { continue }
            let lookUps = ids.count * Self.probeCost
            if try rows.count(point.index, .point(key), max: lookUps) < lookUps {
                let source = EntrySource(parts: [EntrySource.Part(index: point.index, range: .point(key))], title: "")
                ids = ids.common(with: try recordIDs(of: source))
            } else {
                let probe = try rows.probe(point)
                ids = try ids.filter { try probe.holds($0) }
            }
        }
        filter = RecordFilter(tested: plan.tested(settled: points + [smallest.point].compactMap { $0 }))
        return ids
    }

    /// Ascending, none twice.
    private func recordIDs(of source: EntrySource) throws -> [Int64] {
        var ids: [Int64] = []
        for part in source.parts {
            let circles = plan.circles(over: part.index)
            _ = try rows.scan(part.index, part.range) { key, id, _ in
                if circles.isEmpty || circles.mayHold(key) { ids.append(id) }
                return true
            }
        }
        if source.point != nil { return ids }
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
