import RecordModel

/// Reading by distance: growing rings around the place, or for the farthest first around its antipode. In a ring the
/// index says where each location is to a centimetre, so records are read about in order, and only until the page is
/// full.
struct RingWalk {
    /// Width of the first ring, in metres.
    private static let firstWidth = 1_000.0
    /// What a cell's middle may be off, with rounding, in metres: half a diagonal of 9 mm squares.
    private static let slack = 0.02

    private let rows: IndexRows
    private let tuning: QueryTuning
    private let level: OrderLevel
    /// The sort key, which the index has the locations of.
    private let key: QueryOrder.Key
    private let index: InstalledIndex
    private var rings: Rings

    /// - Parameter start: the distance to go on from; nil from the first.
    init(_ plan: QueryPlan, _ rows: IndexRows, _ tuning: QueryTuning, _ level: OrderLevel, from start: IndexKey?) {
        key = plan.order.keys[level.depth]
        guard case .distance(let index, let place) = key.kind else { preconditionFailure("no order by distance") }
        (self.rows, self.tuning, self.level, self.index) = (rows, tuning, level, index)
        rings = Rings(
            pivot: key.isAscending ? place : place.antipode, isAscending: key.isAscending,
            circles: plan.circles(over: index), from: start)
    }

    /// False where the page ended.
    mutating func read(into page: inout CollectedPage) throws -> Bool {
        while !rings.isAtEnd {
            guard try readRing(&page) else { return false }
        }
        return true
    }

    private mutating func readRing(_ page: inout CollectedPage) throws -> Bool {
        var entries: [(distance: Double, id: Int64)]?
        while entries == nil { entries = try rings.isThinnest ? scan(max: .max) : fitting() }
        let inRing = (entries ?? []).sorted { ($0.distance, $0.id) < ($1.distance, $1.id) }
        page.note.rings += 1
        let start = page.found.all.count
        for entry in inRing {
            if page.found.hasMore, let last = page.found.all.last?.keys[level.depth],
                rings.isBehind(entry.distance, last)
            {
                break
            }
            if rows.work.isSpent, let key = rings.key(behind: inRing[0].distance, before: entry.distance) {
                cut(&page, at: key, from: start)
                return false
            }
            page.examine()
            page.advance()
            guard let candidate = try page.reader.candidate(entry.id), candidate.keys.starts(with: level.fixed),
                let found = candidate.keys[level.depth], rings.holds(found)
            else { continue }
            page.found.insert(candidate, from: start)
        }
        page.settle()
        let reached = rings.reachedKey
        rings.grow(inRing.count, fewerThan: tuning.ringMin)
        page.advance(0, judged: 1)
        guard let reached else { return !page.hasEnded }
        return page.goesOn(at: QueryPosition(keys: level.fixed + [reached], recordID: nil))
    }

    /// Ends the page within a ring: what was found farther is left to the next page.
    private func cut(_ page: inout CollectedPage, at end: IndexKey, from start: Int) {
        page.found.discard(from: start) { key.precedes(end, $0[level.depth]) ?? false }
        page.settle(or: QueryPosition(keys: level.fixed + [end], recordID: nil))
    }

    /// The entries of the ring; nil where they were too many, and the ring was made thinner.
    private mutating func fitting() throws -> [(Double, Int64)]? {
        let entries = try scan(max: tuning.ringMax)
        if entries == nil { rings.shrink() }
        return entries
    }

    /// The entries of a ring with their distances from the pivot, about; nil if there are more than `max`.
    private func scan(max: Int) throws -> [(Double, Int64)]? {
        var entries: [(Double, Int64)] = []
        let covering = CellCovering.ranges(
            around: rings.pivot, inner: rings.inner - Self.slack, outer: rings.outer + Self.slack,
            rangesMax: rings.isThin ? 160 : 40)
        for cells in covering {
            let range = KeyRange(lower: .before(.number(cells.lowerBound)), upper: .after(.number(cells.upperBound)))
            let isAtEnd = try rows.scan(index, range) { key, id, _ in
                guard case .number(let cell) = key else { return true }
                let middle = LocationCell(value: cell).center
                rows.work.charge(QueryCost.statement + rings.circles.count)
                let distance = rings.pivot.distance(to: middle)
                guard distance >= rings.inner - Self.slack, distance <= rings.outer + Self.slack,
                    rings.circles.allSatisfy({ $0.center.distance(to: middle) <= $0.metres + Self.slack })
                else { return true }
                entries.append((distance, id))
                return entries.count <= max
            }
            if !isAtEnd { return nil }
        }
        return entries
    }

    /// The rings around a pivot, one after another, each from where the one before ended.
    private struct Rings {
        let pivot: Place
        let isAscending: Bool
        let circles: [Circle]
        /// Metres from the pivot.
        private(set) var inner: Double
        private var width: Double
        /// Beyond this distance from the pivot nothing passes the filters.
        private let last: Double
        /// The sort key that the ring before ended with.
        private var after: IndexKey?

        init(pivot: Place, isAscending: Bool, circles: [Circle], from key: IndexKey?) {
            self.pivot = pivot
            self.isAscending = isAscending
            self.circles = circles
            var inner = 0.0
            if case .number(let number)? = key {
                // A cursor that somebody made up may hold no number.
                let decoded = IndexKey.double(ordered: number)
                let distance = decoded.isNaN ? Place.farthest : decoded
                inner = min(max(isAscending ? distance : Place.farthest - distance, 0), Place.farthest)
            }
            let reaches = circles.map { (middle: pivot.distance(to: $0.center), metres: $0.metres) }
            for reach in reaches { inner = max(inner, reach.middle - reach.metres - RingWalk.slack) }
            self.inner = inner
            width = max(RingWalk.firstWidth, inner / 8)
            last = reaches.reduce(Place.farthest) { min($0, $1.middle + $1.metres + RingWalk.slack) }
        }

        var outer: Double { min(inner + width, Place.farthest) }
        /// Whether the last ring was read.
        private(set) var isAtEnd = false
        var isThinnest: Bool { width < 2 * RingWalk.slack }

        /// Whether few large squares would hold much more than the ring.
        var isThin: Bool { inner > 4 * width }

        /// The sort key of records at the ring's outer edge; nil where the ring reaches the end.
        var reachedKey: IndexKey? {
            outer >= last
                ? nil : .number(IndexKey.number(ordering: isAscending ? outer : Place.farthest - outer))
        }

        /// Whether a record with the sort key belongs to this ring, not to the one before or after.
        func holds(_ key: IndexKey) -> Bool {
            if let after, isAscending ? key <= after : key >= after { return false }
            guard let reachedKey else { return true }
            return isAscending ? key <= reachedKey : key >= reachedKey
        }

        /// Whether an entry's record surely comes after one with the sort key.
        func isBehind(_ distance: Double, _ key: IndexKey) -> Bool {
            guard case .number(let number) = key else { return false }
            let other = IndexKey.double(ordered: number)
            return distance - RingWalk.slack > (isAscending ? other : Place.farthest - other)
        }

        /// A sort key in this ring that is surely behind the record of one entry and before that of another; nil where
        /// they are too close to tell.
        func key(behind near: Double, before far: Double) -> IndexKey? {
            let between = far - 2 * RingWalk.slack
            guard between > max(near, inner) + RingWalk.slack else { return nil }
            return .number(IndexKey.number(ordering: isAscending ? between : Place.farthest - between))
        }

        mutating func shrink() { width /= 4 }

        mutating func grow(_ count: Int, fewerThan wanted: Int) {
            after = reachedKey
            isAtEnd = after == nil
            inner = outer
            if count < wanted { width *= count < wanted / 4 ? 4 : 2 }
        }
    }
}
