import RecordModel

/// Reading in the order's own rows: those of the first sort key, and where many records share a key of it, those of the
/// next sort key with a look at whether the record is of the group.
extension QueryRun {
    /// A position among the entries of one sort key.
    struct LevelStart {
        var key: IndexKey?
        /// Least or greatest for before or after all records with the key.
        var recordID: Int64
    }

    /// Reads on from a place in the order.
    mutating func walkOrder(resume: QueryPosition?) throws {
        note.way = .order
        after = resume
        if try walk(OrderLevel(resume: resume)) { settle() }
    }

    /// Reads one level; false where the page ended.
    mutating func walk(_ level: OrderLevel) throws -> Bool {
        let key = plan.order.keys[level.depth]
        if case .distance(let index, let place) = key.kind { return try walkDistance(level, key, index, place) }
        var start = level.start(in: plan.order)
        var closed: IndexKey??
        while true {
            try setFilter(fixed: level.points(in: plan.order), scanned: key.scannedIndex)
            var pass = WalkPass(level: level, closed: closed)
            if try scanLevel(level, key, from: start, &pass), try closeGroup(&pass) { return true }
            guard let deeper = pass.descendsTo else { return false }
            note.descended = true
            guard try walk(level.deeper(deeper)) else { return false }
            guard goesOn(at: QueryPosition(keys: level.fixed + [deeper], recordID: nil)) else { return false }
            start = LevelStart(key: deeper, recordID: key.isAscending ? .max : .min)
            closed = .some(deeper)
        }
    }

    /// Missing values and values in the key's order; false where the pass ended early.
    private mutating func scanLevel(
        _ level: OrderLevel, _ key: QueryOrder.Key, from start: LevelStart?, _ pass: inout WalkPass
    ) throws -> Bool {
        switch key.kind {
        case .values(let index):
            if key.missingFirst {
                return try scanMissing(index, key, from: start, &pass)
                    && scanValues(index, key, from: start, &pass)
            }
            return try scanValues(index, key, from: start, &pass)
                && scanMissing(index, key, from: start, &pass)
        case .leastKey(let source): return try scanSource(source, from: start, &pass)
        case .distance: preconditionFailure("distances are read in rings")
        }
    }

    /// Records without the field; also the only part of an order by distance that is read here.
    mutating func scanMissing(
        _ index: InstalledIndex, _ key: QueryOrder.Key, from start: LevelStart?, _ pass: inout WalkPass
    ) throws -> Bool {
        guard plan.takesMissing(index) else { return true }
        var bounds: (lower: Int64, upper: Int64) = (.min, .max)
        if let start {
            if start.key != nil {
                if key.missingFirst { return true }
            } else if key.isAscending {
                bounds.lower = start.recordID
            } else {
                bounds.upper = start.recordID
            }
        }
        return try rows.missing(
            index, between: bounds, ascending: key.isAscending, lookUps: filter.lookUps
        ) { try visit(nil, $0, isWanted: $1, &pass) }
    }

    private mutating func scanValues(
        _ index: InstalledIndex, _ key: QueryOrder.Key, from start: LevelStart?, _ pass: inout WalkPass
    ) throws -> Bool {
        var ranges = plan.ranges(of: index)
        if let start {
            if let startKey = start.key {
                let position = KeyPosition(key: startKey, recordID: start.recordID)
                let rest =
                    key.isAscending ? KeyRange(lower: position, upper: nil) : KeyRange(lower: nil, upper: position)
                ranges = ranges.compactMap { $0.intersection(rest) }
            } else if !key.missingFirst {
                return true
            }
        }
        for range in key.isAscending ? ranges : ranges.reversed() {
            let isAtEnd = try rows.scan(index, range, ascending: key.isAscending, lookUps: filter.lookUps) {
                try visit($0, $1, isWanted: $2, &pass)
            }
            guard isAtEnd else { return false }
        }
        return true
    }

    /// The rows of a filter, index by index.
    private mutating func scanSource(
        _ source: EntrySource, from start: LevelStart?, _ pass: inout WalkPass
    ) throws -> Bool {
        let isSingle = source.indexes.count == 1
        for (ordinal, index) in source.indexes.enumerated() {
            let circles = plan.circles(over: index)
            for range in source.ranges {
                guard let range = range.rest(from: start, ordinal: isSingle ? nil : ordinal) else { continue }
                let isAtEnd = try rows.scan(index, range, lookUps: filter.lookUps) { key, id, isWanted in
                    work.charge(circles.count)
                    return try visit(
                        source.orderKey(key, ordinal: ordinal), id,
                        isWanted: isWanted && (circles.isEmpty || circles.mayHold(key)), &pass)
                }
                guard isAtEnd else { return false }
                // There may be very many ranges without any row.
                guard let upper = range.upper else { continue }
                passed += 1
                let reached = source.orderKey(upper.key, ordinal: ordinal)
                guard goesOn(at: QueryPosition(keys: pass.level.fixed + [reached], recordID: upper.recordID)) else {
                    return false
                }
            }
        }
        return true
    }

    // MARK: Entries

    /// Takes an entry in the level's order; false ends the pass.
    private mutating func visit(
        _ key: IndexKey?, _ id: Int64, isWanted: Bool, _ pass: inout WalkPass
    ) throws -> Bool {
        let level = pass.level
        guard level.depth == plan.order.keys.count - 1 else {
            return try visitGroup(key, id, isWanted: isWanted, &pass)
        }
        let position = QueryPosition(keys: level.fixed + [key], recordID: id)
        if mayEndAtOnce, work.isSpent {
            stoppedAt = QueryPosition(keys: position.keys, recordID: plan.order.tiesAscend ? id - 1 : id + 1)
            return false
        }
        examined += 1
        passed += 1
        let recordsRead = note.recordsRead
        if isWanted, let candidate = try candidate(id, key, level) { append(candidate) }
        judged += note.recordsRead - recordsRead
        return goesOn(at: position)
    }

    /// Takes an entry of a group that shares a key of several, to be sorted in memory.
    private mutating func visitGroup(
        _ key: IndexKey?, _ id: Int64, isWanted: Bool, _ pass: inout WalkPass
    ) throws -> Bool {
        if pass.count > 0, pass.key != key {
            guard try closeGroup(&pass) else { return false }
        }
        if pass.count == 0 { pass.begin(key, at: found.count, work) }
        pass.count += 1
        examined += 1
        if pass.count == tuning.groupLooked, try isLarge(key, pass.level) { return descend(&pass) }
        guard pass.count <= QueryLimits.tieGroupMax else { throw building() }
        guard isWanted else { return true }
        // The first record that a page comes to is read in any case.
        let isFirst = !mayEndAtOnce && pass.closed == nil && pass.judged == 0
        guard isFirst || work.spent < pass.workMax else { return try giveUp(&pass) }
        let recordsRead = note.recordsRead
        if let candidate = try candidate(id), candidate.keys.starts(with: pass.level.fixed) {
            insert(candidate, from: pass.start)
        }
        pass.judged += note.recordsRead - recordsRead
        return true
    }

    /// Reads the current group through the next sort key.
    private mutating func descend(_ pass: inout WalkPass) -> Bool {
        discard(from: pass.start)
        pass.descendsTo = .some(pass.key)
        return false
    }

    /// The work does not suffice to sort the current group: the page ends before it. If the page holds nothing else,
    /// the group is read in order instead, to make progress.
    private mutating func giveUp(_ pass: inout WalkPass) throws -> Bool {
        if let closed = pass.closed {
            discard(from: pass.start)
            stoppedAt = QueryPosition(keys: pass.level.fixed + [closed], recordID: nil)
            return false
        }
        guard plan.order.keys[pass.level.depth + 1].isReady else { throw building() }
        return descend(&pass)
    }

    /// The entry of a last level as a candidate: its keys are known, unless a record has several rows.
    private mutating func candidate(_ id: Int64, _ key: IndexKey?, _ level: OrderLevel) throws -> Candidate? {
        if case .leastKey = plan.order.keys[level.depth].kind {
            guard let candidate = try candidate(id), candidate.keys.last == key else { return nil }
            return candidate
        }
        return try candidate(id, known: level.fixed + [key])
    }

    /// Whether to read a group through the next sort key.
    private func isLarge(_ key: IndexKey?, _ level: OrderLevel) throws -> Bool {
        guard plan.order.keys[level.depth + 1].isReady else { return false }
        let index: InstalledIndex
        switch plan.order.keys[level.depth].kind {
        case .values(let values): index = values
        case .distance(let cells, _): index = cells
        case .leastKey: return false
        }
        let max = tuning.groupMax + 1
        let count = try key.map { try rows.count(index, .point($0), max: max) } ?? rows.countMissing(index, max: max)
        return count == max
    }

    /// Ends a group of ties; false if the page is full.
    mutating func closeGroup(_ pass: inout WalkPass) throws -> Bool {
        guard pass.count > 0 else { return true }
        settle()
        let key = pass.key
        passed += pass.count
        judged += pass.judged
        pass.count = 0
        pass.closed = .some(key)
        return goesOn(at: QueryPosition(keys: pass.level.fixed + [key], recordID: nil))
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
            work.charge(condition.sources.count)
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

/// A sort key, and the keys before it that a group of records shares.
struct OrderLevel {
    var fixed: [IndexKey?] = []
    /// Where the walk goes on; says something here only if it is in this group.
    var resume: QueryPosition?

    var depth: Int { fixed.count }

    func deeper(_ key: IndexKey?) -> OrderLevel { OrderLevel(fixed: fixed + [key], resume: resume) }

    /// Where this level's entries go on.
    func start(in order: QueryOrder) -> QueryRun.LevelStart? {
        guard let resume, resume.keys.count > depth, resume.keys.starts(with: fixed) else { return nil }
        let isAscending = order.keys[depth].isAscending
        let behind: Int64 = isAscending ? .max : .min
        let before: Int64 = isAscending ? .min : .max
        let isLast = depth == order.keys.count - 1
        // Of several sort keys the position's group is read again, unless the position is behind it.
        let isBehind = resume.keys.count == depth + 1 && resume.recordID == nil
        let recordID = isLast ? resume.recordID ?? behind : isBehind ? behind : before
        return QueryRun.LevelStart(key: resume.keys[depth], recordID: recordID)
    }

    /// The rows that all records of the group have.
    func points(in order: QueryOrder) -> [KeyPoint] {
        zip(order.keys, fixed).compactMap { key, value in
            switch key.kind {
            case .values(let index): return KeyPoint(index: index, key: value)
            case .distance(let index, _): return value == nil ? KeyPoint(index: index, key: nil) : nil
            case .leastKey: return nil
            }
        }
    }
}

/// One pass over a level's entries.
struct WalkPass {
    let level: OrderLevel
    /// The key of the group that the page is complete through, if there is one.
    var closed: IndexKey??
    /// The current group.
    private(set) var key: IndexKey?
    var count = 0
    /// Records of it that were read.
    var judged = 0
    /// Where the group's candidates begin in `found`.
    private(set) var start = 0
    /// The work that is given up at.
    private(set) var workMax = 0
    /// The key of the group to read through the next level.
    var descendsTo: IndexKey??

    /// Begins a group. Where the page could not end before it, half of the work is left for another way to read it.
    mutating func begin(_ key: IndexKey?, at start: Int, _ work: QueryWork) {
        self.key = key
        self.start = start
        judged = 0
        workMax = work.spent + (closed == nil ? work.left / 2 : work.left)
    }
}
