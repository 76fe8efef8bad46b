import Authorization
package import GRDB
import RecordModel

extension RecordTables {
    /// A page of a query over the zones of a private database that live in this shard, on a reader's snapshot.
    ///
    /// With sort keys the zones are merged; without, they follow one another by name. Records that nobody writes
    /// meanwhile come exactly once over the pages, if the caller asks all shards for what comes after the least `next`
    /// of their answers, or after the last record that it took.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row.
    package func query(_ request: DatabaseQuery, in db: Database) throws -> ReadOutcome<DatabaseQueryPage> {
        let rows = Rows(db: db)
        let found = try rows.schema(request.database)
        let installed = found?.version ?? 0
        guard installed >= request.schemaVersion else { return .needsSchema(installed: installed) }
        guard request.caller.isOwner(of: request.database) else {
            return .refused(
                ServiceError(.badRequest, "only one's own private database can be queried over all its zones"))
        }
        do {
            let schema = try found.map { try installedSchema($0, in: db) } ?? .none
            let reader = try QueryReader(
                request.query, caller: request.caller, database: request.database, schema: schema, in: db)
            var page = try DatabasePage(reader, request)
            if let found, let databaseID = try rows.databaseID(request.database, schemaID: found.id) {
                let zones = try SQLStatement(
                    cached: """
                        SELECT \(ZoneRow.columns), z.name FROM zone z
                        WHERE z.database = ? AND z.state = 0 AND z.name >= ? ORDER BY z.name
                        """, in: db
                ).all(.integer(databaseID), .text(page.firstZone)) {
                    (row: ZoneRow($0), name: $0.text(ZoneRow.columnCount))
                }
                if request.query.sorts.isEmpty { try page.follow(zones) } else { try page.merge(zones) }
            }
            return .found(page.answer)
        } catch let error as ServiceError {
            return .refused(error)
        }
    }
}

/// One page of a query over several zones, being collected.
private struct DatabasePage {
    let reader: QueryReader
    let tuning = QueryTuning.current
    let positions: PositionBytes
    let limit: Int
    let after: PositionBytes.Place?
    private let work = QueryWork(bound: QueryTuning.current.workMax)
    var answer = DatabaseQueryPage(items: [], next: nil)
    /// Of the bodies in the answer, one number an item.
    private var sizes: [Int] = []

    /// Zones without a match that one page looks into.
    private static let zonesMax = 1_000
    /// Index entries that are looked at in each of very many zones.
    private static let examinedMin = 100

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

    /// All zones, by position. An answer is complete up to the least position at which a zone's part of it stopped.
    /// Each zone has an equal share of the work that is left.
    mutating func merge(_ zones: [(row: ZoneRow, name: String)]) throws {
        let bound = max(tuning.examinedMax / max(zones.count, 1), min(Self.examinedMin, tuning.examinedMax))
        let bounds = QueryRun.Bounds(work: work, examined: bound, mayEndAtOnce: true)
        /// The zone that stopped first, if it did so before its first entry.
        var untouched: (zone: (row: ZoneRow, name: String), end: [UInt8], entry: [UInt8])?
        for (number, zone) in zones.enumerated() {
            let share = work.left / (zones.count - number)
            guard let run = try work.within(share, { try collect(zone, limit: limit, bounds) }) else { continue }
            guard take(run) else { continue }
            untouched = nil
            if run.passed == 0, let end = run.end, let entry = run.before { untouched = (zone, end, entry) }
        }
        guard let untouched, untouched.end == answer.next else { return }
        // No zone has anything before this entry: whatever it takes, the page gets past it, and no farther.
        let one = QueryRun.Bounds(work: QueryWork(bound: 0), examined: 1)
        guard let run = try collect(untouched.zone, limit: limit, one) else { return }
        answer.next = untouched.entry
        take(run)
    }

    /// Merges a zone's part. Returns whether it stopped before all others.
    @discardableResult
    private mutating func take(_ part: ZonePart) -> Bool {
        let isFirst = part.end.map { end in answer.next.map { end.lexicographicallyPrecedes($0) } ?? true } ?? false
        if isFirst { answer.next = part.end }
        let both = Array(zip(answer.items + part.items, sizes + part.sizes))
        cut(both.sorted { $0.0.position.lexicographicallyPrecedes($1.0.position) })
        return isFirst
    }

    /// Keeps what the page has room for and what comes before where a zone's part stopped.
    private mutating func cut(_ merged: [(DatabaseQueryPage.Item, Int)]) {
        (answer.items, sizes) = ([], [])
        var bytes = 0
        for (item, size) in merged {
            if let next = answer.next, next.lexicographicallyPrecedes(item.position) { return }
            bytes += size
            if answer.items.count == limit || (bytes > tuning.pageBytesMax && !answer.items.isEmpty) {
                answer.next = answer.items.last?.position
                return
            }
            answer.items.append(item)
            sizes.append(size)
        }
    }

    private struct ZonePart {
        var items: [DatabaseQueryPage.Item]
        var sizes: [Int]
        var end: [UInt8]?
        var examined: Int
        /// Entries that the part is complete through, and the position of the next where there was no work left for it.
        var passed: Int
        var before: [UInt8]?
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
        var run = try QueryRun(reader, zone: zone.row, limit: limit, after: start, bounds: bounds)
        let end = try run.collect()
        let items = try run.found.map { candidate in
            DatabaseQueryPage.Item(
                zone: zone.name, record: try run.record(candidate, zone: zone.row),
                position: bytes(zone.name, QueryPosition(keys: candidate.keys, recordID: candidate.row.id)))
        }
        return ZonePart(
            items: items, sizes: run.found.map(\.row.body.count), end: end.map { bytes(zone.name, $0) },
            examined: run.examined, passed: run.passed,
            before: run.stoppedBefore.map { bytes(zone.name, $0) })
    }

    private func bytes(_ zone: String, _ position: QueryPosition) -> [UInt8] {
        positions.encode(PositionBytes.Place(zone: zone, position: position))
    }
}
