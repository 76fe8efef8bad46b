import RecordModel

/// What the ways to read a page ask of a plan.
extension QueryPlan {
    /// The indexes that filters and order name, each once.
    var indexes: [InstalledIndex] {
        var seen: Set<Int64> = []
        let ofOrder = order.keys.flatMap { key in
            switch key.kind {
            case .values(let index), .distance(let index, _): [index]
            case .leastKey(let source): source.indexes
            }
        }
        return (conditions.flatMap(\.indexes) + ofOrder).filter { seen.insert($0.id).inserted }
    }

    /// The ranges of an index of single values that filters on it leave, ascending.
    func ranges(of index: InstalledIndex) -> [KeyRange] {
        var ranges: [KeyRange] = [.all]
        for condition in conditions where condition.indexes.count == 1 && condition.index.id == index.id {
            for source in condition.sources { ranges = KeyRange.common(ranges, source.ranges) }
        }
        return ranges
    }

    /// Whether records without a value in the index pass the filters on it.
    func takesMissing(_ index: InstalledIndex) -> Bool {
        conditions.allSatisfy { $0.indexes.count > 1 || $0.index.id != index.id || $0.holdsWithoutKeys }
    }

    /// Conditions that are not answered by index rows alone.
    /// - Parameters:
    ///   - settled: points that every record in question was found or looked up under.
    ///   - scanned: the index of single values that is read only where filters on it leave ranges.
    func tested(settled: Set<KeyPoint>, scanned: InstalledIndex? = nil) -> [Condition] {
        conditions.filter { condition in
            if let scanned, condition.indexes.count == 1, condition.index.id == scanned.id {
                switch condition.test {
                case .any, .all, .within: return false
                case .none, .notAll, .without, .near, .words: return true
                }
            }
            let sources = condition.sources
            return sources.isEmpty
                || !sources.allSatisfy { $0.point.map(settled.contains) ?? false }
        }
    }

    /// The circles around places that filters on a cell index ask for.
    func circles(over index: InstalledIndex) -> [Circle] {
        guard index.purpose == .cells else { return [] }
        return conditions.compactMap { condition in
            guard case .near(let place, let metres, _) = condition.test, condition.index.id == index.id else {
                return nil
            }
            return Circle(center: place, metres: metres)
        }
    }
}

/// A place and its neighbourhood.
struct Circle {
    var center: Place
    var metres: Double
}

extension [Circle] {
    /// Whether a location in a cell may be in all circles. A cell is a centimetre wide; a metre allows for rounding.
    func mayHold(_ key: IndexKey) -> Bool {
        guard case .number(let cell) = key else { return true }
        let middle = LocationCell(value: cell).center
        return allSatisfy { $0.center.distance(to: middle) <= $0.metres + 1 }
    }
}

extension QueryOrder.Key {
    /// Whether reading in this order already reads no more than the source's rows.
    func isReadThrough(_ source: EntrySource) -> Bool {
        switch kind {
        case .values(let index), .distance(let index, _): source.indexes.allSatisfy { $0.id == index.id }
        case .leastKey(let own): own.title == source.title && own.indexes.map(\.id) == source.indexes.map(\.id)
        }
    }
}
