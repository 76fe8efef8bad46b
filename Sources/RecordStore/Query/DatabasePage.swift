import RecordModel

/// One page of a query over several zones, being collected.
struct DatabasePage {
    private let reader: QueryReader
    private let tuning = QueryTuning.current
    private let positions: PositionBytes
    private let limit: Int
    private let after: PositionBytes.Place?
    private let work = QueryWork(bound: QueryTuning.current.workMax)
    private(set) var answer = DatabaseQueryPage(items: [], next: nil)
    /// Of the bodies in the answer, one number an item.
    private var sizes: [Int] = []

    /// Zones without a match that one page looks into.
    private static let zonesMax = 1_000

    init(_ reader: QueryReader, _ request: DatabaseQuery) throws {
        self.reader = reader
        positions = PositionBytes(order: try reader.plan(in: nil).order, zoneFirst: request.query.sorts.isEmpty)
        limit = min(max(request.limit, 1), Limits.recordsPerPageMax)
        after = try request.cursor.map { [positions] bytes in
            guard let place = positions.decode(bytes) else {
                throw ServiceError(.badRequest, "continuationMarker is not one of this query: start again without it")
            }
            return place
        }
    }

    /// The first zone that is of interest; by bytes, as SQLite compares.
    var firstZone: String { positions.zoneFirst ? after?.zone ?? "" : "" }

    /// Zone after zone.
    mutating func follow(_ zones: [(row: ZoneRow, name: String)]) throws {
        var (examined, looked) = (0, 0)
        for zone in zones {
            let bounds = QueryRun.Bounds(work: work)
            guard let run = try collect(zone, limit: limit - answer.items.count, bounds) else { continue }
            answer.items += run.items
            sizes += run.sizes
            examined += run.examined
            looked += 1
            let isFull =
                answer.items.count >= limit || examined >= tuning.examinedMax || looked >= Self.zonesMax
                || sizes.reduce(0, +) > tuning.pageBytesMax || work.isSpent
            if let end = run.end {
                answer.next = end
                return
            }
            if isFull {
                let end = QueryPosition(keys: [], recordID: nil)
                answer.next = positions.encode(PositionBytes.Place(zone: zone.name, position: end))
                break
            }
        }
        if let last = zones.last, let next = answer.next, positions.decode(next)?.zone == last.name {
            answer.next = nil
        }
    }

    /// All zones, by position: what comes next in the order is read on, a few records at a time, and nothing that
    /// another zone's records come before.
    ///
    /// At first each zone says where it begins, which takes an entry of its index and no record. The page is complete
    /// up to the least position at which a zone's part stopped; at least the first part gets on.
    mutating func merge(_ zones: [(row: ZoneRow, name: String)]) throws {
        var parts: [MergePart] = []
        let start = QueryRun.Bounds(work: work, mayEndAtOnce: true)
        for zone in zones {
            guard let run = try work.within(0, { try collect(zone, limit: limit, start) }) else { continue }
            take(run)
            if let end = run.end, let stop = run.stop { parts.append(MergePart(zone: zone, end: end, stop: stop)) }
        }
        let chunk = max(2, 2 * limit / max(parts.count, 1))
        for place in parts.indices { parts[place].chunk = min(chunk, limit) }
        // The least is the last.
        parts.sort { $1.end.lexicographicallyPrecedes($0.end) }
        var (examined, isFirst) = (0, true)
        while var part = parts.last, !isComplete(before: part.end) {
            guard isFirst || (!work.isSpent && examined < tuning.examinedMax) else { break }
            let bounds = QueryRun.Bounds(
                work: work, examined: max(tuning.examinedMax - examined, 1), mayEndAtOnce: !isFirst)
            isFirst = false
            parts.removeLast()
            let run = try collect(part.zone, limit: part.chunk, from: part.stop, bounds)
            examined += run.examined
            take(run)
            guard let end = run.end, let stop = run.stop else { continue }
            part = MergePart(zone: part.zone, end: end, stop: stop, chunk: min(4 * part.chunk, limit))
            let place = parts.firstIndex { $0.end.lexicographicallyPrecedes(end) } ?? parts.count
            parts.insert(part, at: place)
        }
        let horizon = parts.last?.end
        if let horizon, let first = answer.items.firstIndex(where: { horizon.lexicographicallyPrecedes($0.position) }) {
            answer.items.removeSubrange(first...)
            answer.next = horizon
        } else if answer.next == nil {
            answer.next = horizon
        }
    }

    /// Whether the page has all that it has room for before a position.
    private func isComplete(before end: [UInt8]) -> Bool {
        guard let last = answer.next else { return false }
        return !end.lexicographicallyPrecedes(last)
    }

    /// Puts a zone's records in their places, and keeps what the page has room for; where there is more, `next` is the
    /// last one's position.
    private mutating func take(_ part: ZonePart) {
        // Behind what had no room nothing has.
        let wanted = zip(part.items, part.sizes).prefix { item, _ in
            answer.next.map { !$0.lexicographicallyPrecedes(item.position) } ?? true
        }
        if wanted.isEmpty { return }
        let both = (Array(zip(answer.items, sizes)) + wanted).sorted {
            $0.0.position.lexicographicallyPrecedes($1.0.position)
        }
        (answer.items, sizes) = ([], [])
        var bytes = 0
        for (item, size) in both {
            bytes += size
            if answer.items.count == limit || (bytes > tuning.pageBytesMax && !answer.items.isEmpty) {
                answer.next = answer.items.last?.position
                return
            }
            answer.items.append(item)
            sizes.append(size)
        }
    }

    /// A zone that has more, as far as it was read.
    private struct MergePart {
        var zone: (row: ZoneRow, name: String)
        /// What it was read to, in the order of all zones and in its own.
        var end: [UInt8]
        var stop: QueryPosition
        /// How many records are read of it at a time.
        var chunk = 1
    }

    private struct ZonePart {
        var items: [DatabaseQueryPage.Item]
        var sizes: [Int]
        /// Where it stopped, in the order of all zones and in its own; nil at the zone's end.
        var end: [UInt8]?
        var stop: QueryPosition?
        var examined: Int
    }

    /// One zone's part; nil where the cursor is behind it.
    private func collect(
        _ zone: (row: ZoneRow, name: String), limit: Int, _ bounds: QueryRun.Bounds
    ) throws -> ZonePart? {
        var start: QueryPosition?
        if let after {
            switch positions.start(in: zone.name, after: after) {
            case .beginning: start = nil
            case .atEnd: return nil
            case .after(let position): start = position
            }
        }
        return try collect(zone, limit: limit, from: start, bounds)
    }

    private func collect(
        _ zone: (row: ZoneRow, name: String), limit: Int, from start: QueryPosition?, _ bounds: QueryRun.Bounds
    ) throws -> ZonePart {
        var run = try QueryRun(reader, zone: zone.row, limit: limit, after: start, bounds: bounds)
        let end = try run.collect()
        let items = try run.found.map { candidate in
            DatabaseQueryPage.Item(
                zone: zone.name, record: try run.record(candidate, zone: zone.row),
                position: bytes(zone.name, candidate.position))
        }
        return ZonePart(
            items: items, sizes: run.found.map(\.row.body.count), end: end.map { bytes(zone.name, $0) }, stop: end,
            examined: run.examined)
    }

    private func bytes(_ zone: String, _ position: QueryPosition) -> [UInt8] {
        positions.encode(PositionBytes.Place(zone: zone, position: position))
    }
}
