import RecordModel

/// Reading in the order's own rows: those of the first sort key, and where many records share a key of it, those of the
/// next sort key with a look at whether the record is of the group. Distances are read in rings.
struct OrderWalk {
    private let plan: QueryPlan
    private let rows: IndexRows
    private let tuning: QueryTuning

    init(_ plan: QueryPlan, _ rows: IndexRows, _ tuning: QueryTuning) {
        self.plan = plan
        self.rows = rows
        self.tuning = tuning
    }

    /// Reads on from a place in the order.
    func read(from resume: QueryPosition?, into page: inout CollectedPage) throws {
        page.reader.after = resume
        if try walk(OrderLevel(resume: resume), &page) { page.settle() }
    }

    /// Reads one level; false where the page ended.
    private func walk(_ level: OrderLevel, _ page: inout CollectedPage) throws -> Bool {
        let key = plan.order.keys[level.depth]
        if case .distance(let index, _) = key.kind { return try walkDistance(level, key, index, &page) }
        var start = level.start(in: plan.order)
        var closed: IndexKey??
        while true {
            try page.reader.setFilter(fixed: level.points(in: plan.order), scanned: key.scannedIndex)
            var pass = WalkPass(level: level, from: start, closed: closed)
            if try scanLevel(key, &pass, &page), try closeGroup(&pass, &page) { return true }
            guard let deeper = pass.descendsTo else { return false }
            page.note.descended = true
            guard try walk(level.deeper(deeper), &page) else { return false }
            guard page.goesOn(at: QueryPosition(keys: level.fixed + [deeper], recordID: nil)) else { return false }
            start = OrderLevel.Start(key: deeper, recordID: key.isAscending ? .max : .min)
            closed = .some(deeper)
        }
    }

    /// Missing values and values in the key's order; false where the pass ended early.
    private func scanLevel(
        _ key: QueryOrder.Key, _ pass: inout WalkPass, _ page: inout CollectedPage
    ) throws -> Bool {
        switch key.kind {
        case .values(let index):
            if key.missingFirst {
                return try scanMissing(index, key, &pass, &page) && scanValues(index, key, &pass, &page)
            }
            return try scanValues(index, key, &pass, &page) && scanMissing(index, key, &pass, &page)
        case .leastKey(let source): return try scanSource(source, &pass, &page)
        case .distance: preconditionFailure("distances are read in rings")
        }
    }

    /// Records without the field; also those that an order by distance has no distance of.
    private func scanMissing(
        _ index: InstalledIndex, _ key: QueryOrder.Key, _ pass: inout WalkPass, _ page: inout CollectedPage
    ) throws -> Bool {
        guard plan.takesMissing(index) else { return true }
        var bounds: (lower: Int64, upper: Int64) = (.min, .max)
        if let start = pass.from {
            if start.key != nil {
                if key.missingFirst { return true }
            } else if key.isAscending {
                bounds.lower = start.recordID
            } else {
                bounds.upper = start.recordID
            }
        }
        return try rows.missing(
            index, between: bounds, ascending: key.isAscending, lookUps: page.reader.filter.lookUps
        ) { try visit(nil, $0, isWanted: $1, &pass, &page) }
    }

    private func scanValues(
        _ index: InstalledIndex, _ key: QueryOrder.Key, _ pass: inout WalkPass, _ page: inout CollectedPage
    ) throws -> Bool {
        var ranges = plan.ranges(of: index)
        if let start = pass.from {
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
            let isAtEnd = try rows.scan(index, range, ascending: key.isAscending, lookUps: page.reader.filter.lookUps) {
                try visit($0, $1, isWanted: $2, &pass, &page)
            }
            guard isAtEnd else { return false }
        }
        return true
    }

    /// The rows of a filter, index by index.
    private func scanSource(_ source: EntrySource, _ pass: inout WalkPass, _ page: inout CollectedPage) throws -> Bool {
        let isSingle = source.indexes.count == 1
        for (ordinal, index) in source.indexes.enumerated() {
            let circles = plan.circles(over: index)
            for range in source.ranges {
                guard let range = range.rest(from: pass.from, ordinal: isSingle ? nil : ordinal) else { continue }
                let isAtEnd = try rows.scan(index, range, lookUps: page.reader.filter.lookUps) { key, id, isWanted in
                    rows.work.charge(circles.count)
                    return try visit(
                        source.orderKey(key, ordinal: ordinal), id,
                        isWanted: isWanted && (circles.isEmpty || circles.mayHold(key)), &pass, &page)
                }
                guard isAtEnd else { return false }
                // There may be very many ranges without any row.
                guard let upper = range.upper else { continue }
                page.advance()
                let keys = pass.level.fixed + [source.orderKey(upper.key, ordinal: ordinal)]
                guard page.goesOn(at: QueryPosition(keys: keys, recordID: upper.recordID)) else { return false }
            }
        }
        return true
    }

    // MARK: Distances

    /// Reads by distance, and before or after that the records without a location; false where the page ended.
    private func walkDistance(
        _ level: OrderLevel, _ key: QueryOrder.Key, _ index: InstalledIndex, _ page: inout CollectedPage
    ) throws -> Bool {
        let start = level.start(in: plan.order)
        if key.missingFirst {
            guard try walkMissing(level, key, index, from: start, &page) else { return false }
        }
        if start.map({ $0.key == nil && !key.missingFirst }) != true {
            try page.reader.setFilter(fixed: level.points(in: plan.order), inScan: false)
            var walk = RingWalk(plan, rows, tuning, level, from: start?.key)
            guard try walk.read(into: &page) else { return false }
        }
        return try key.missingFirst || walkMissing(level, key, index, from: start, &page)
    }

    /// Records without a location; false where the page ended.
    private func walkMissing(
        _ level: OrderLevel, _ key: QueryOrder.Key, _ index: InstalledIndex, from first: OrderLevel.Start?,
        _ page: inout CollectedPage
    ) throws -> Bool {
        var start = first
        while true {
            try page.reader.setFilter(fixed: level.points(in: plan.order))
            var pass = WalkPass(level: level, from: start)
            if try scanMissing(index, key, &pass, &page), try closeGroup(&pass, &page) { return true }
            guard pass.descendsTo != nil else { return false }
            guard try walk(level.deeper(nil), &page) else { return false }
            guard page.goesOn(at: QueryPosition(keys: level.fixed + [nil], recordID: nil)) else { return false }
            start = OrderLevel.Start(key: nil, recordID: key.isAscending ? .max : .min)
        }
    }

    // MARK: Entries

    /// Takes an entry in the level's order; false ends the pass.
    private func visit(
        _ key: IndexKey?, _ id: Int64, isWanted: Bool, _ pass: inout WalkPass, _ page: inout CollectedPage
    ) throws -> Bool {
        let level = pass.level
        guard level.depth == plan.order.keys.count - 1 else {
            return try visitGroup(key, id, isWanted: isWanted, &pass, &page)
        }
        let position = QueryPosition(keys: level.fixed + [key], recordID: id)
        if page.mayEndAtOnce, rows.work.isSpent {
            page.stop(at: QueryPosition(keys: position.keys, recordID: plan.order.tiesAscend ? id - 1 : id + 1))
            return false
        }
        page.examine()
        let recordsRead = page.reader.recordsRead
        if isWanted, let candidate = try candidate(id, key, level, &page) { page.found.append(candidate) }
        page.advance(judged: page.reader.recordsRead - recordsRead)
        return page.goesOn(at: position)
    }

    /// Takes an entry of a group that shares a key of several, to be sorted in memory.
    private func visitGroup(
        _ key: IndexKey?, _ id: Int64, isWanted: Bool, _ pass: inout WalkPass, _ page: inout CollectedPage
    ) throws -> Bool {
        if pass.count > 0, pass.key != key {
            guard try closeGroup(&pass, &page) else { return false }
        }
        if pass.count == 0 { pass.begin(key, at: page.found.all.count, rows.work) }
        pass.count += 1
        page.examine()
        if pass.count == tuning.groupLooked, try isLarge(key, pass.level) { return descend(&pass, &page) }
        guard pass.count <= QueryLimits.tieGroupMax else { throw try plan.building(in: rows.db) }
        guard isWanted else { return true }
        // The first record that a page comes to is read in any case.
        let isFirst = !page.mayEndAtOnce && pass.closed == nil && pass.judged == 0
        guard isFirst || rows.work.spent < pass.workMax else { return try giveUp(&pass, &page) }
        let recordsRead = page.reader.recordsRead
        if let candidate = try page.reader.candidate(id), candidate.keys.starts(with: pass.level.fixed) {
            page.found.insert(candidate, from: pass.start)
        }
        pass.judged += page.reader.recordsRead - recordsRead
        return true
    }

    /// Reads the current group through the next sort key.
    private func descend(_ pass: inout WalkPass, _ page: inout CollectedPage) -> Bool {
        page.found.discard(from: pass.start)
        pass.descendsTo = .some(pass.key)
        return false
    }

    /// The work does not suffice to sort the current group: the page ends before it. If the page holds nothing else,
    /// the group is read in order instead, to make progress.
    private func giveUp(_ pass: inout WalkPass, _ page: inout CollectedPage) throws -> Bool {
        if let closed = pass.closed {
            page.found.discard(from: pass.start)
            page.stop(at: QueryPosition(keys: pass.level.fixed + [closed], recordID: nil))
            return false
        }
        guard plan.order.keys[pass.level.depth + 1].isReady else { throw try plan.building(in: rows.db) }
        return descend(&pass, &page)
    }

    /// The entry of a last level as a candidate: its keys are known, unless a record has several rows.
    private func candidate(
        _ id: Int64, _ key: IndexKey?, _ level: OrderLevel, _ page: inout CollectedPage
    ) throws -> QueryCandidate? {
        if case .leastKey = plan.order.keys[level.depth].kind {
            guard let candidate = try page.reader.candidate(id), candidate.keys.last == key else { return nil }
            return candidate
        }
        return try page.reader.candidate(id, known: level.fixed + [key])
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
    private func closeGroup(_ pass: inout WalkPass, _ page: inout CollectedPage) throws -> Bool {
        guard pass.count > 0 else { return true }
        page.settle()
        let key = pass.key
        page.advance(pass.count, judged: pass.judged)
        pass.count = 0
        pass.closed = .some(key)
        return page.goesOn(at: QueryPosition(keys: pass.level.fixed + [key], recordID: nil))
    }
}

/// A sort key, and the keys before it that a group of records shares.
struct OrderLevel {
    /// A position among the entries of one sort key.
    struct Start {
        var key: IndexKey?
        /// Least or greatest for before or after all records with the key.
        var recordID: Int64
    }

    var fixed: [IndexKey?] = []
    /// Where the walk goes on; says something here only if it is in this group.
    var resume: QueryPosition?

    var depth: Int { fixed.count }

    func deeper(_ key: IndexKey?) -> OrderLevel { OrderLevel(fixed: fixed + [key], resume: resume) }

    /// Where this level's entries go on.
    func start(in order: QueryOrder) -> Start? {
        guard let resume, resume.keys.count > depth, resume.keys.starts(with: fixed) else { return nil }
        let isAscending = order.keys[depth].isAscending
        let behind: Int64 = isAscending ? .max : .min
        let before: Int64 = isAscending ? .min : .max
        let isLast = depth == order.keys.count - 1
        // Of several sort keys the position's group is read again, unless the position is behind it.
        let isBehind = resume.keys.count == depth + 1 && resume.recordID == nil
        let recordID = isLast ? resume.recordID ?? behind : isBehind ? behind : before
        return Start(key: resume.keys[depth], recordID: recordID)
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
    /// Where its entries go on.
    let from: OrderLevel.Start?
    /// The key of the group that the page is complete through, if there is one.
    var closed: IndexKey??
    /// The current group.
    private(set) var key: IndexKey?
    var count = 0
    /// Records of it that were read.
    var judged = 0
    /// Where the group's candidates begin in what was found.
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
