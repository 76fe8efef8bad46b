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
                        SELECT \(ZoneRow.columns), z.name FROM zone z WHERE z.database = ? AND z.state = 0
                        ORDER BY z.name
                        """, in: db
                ).all(.integer(databaseID)) { (row: ZoneRow($0), name: $0.text(ZoneRow.columnCount)) }
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

    /// Zone after zone.
    mutating func follow(_ zones: [(row: ZoneRow, name: String)]) throws {
        var (examined, looked) = (0, 0)
        for zone in zones {
            guard let run = try collect(zone, limit: limit - answer.items.count, examinedBound: tuning.examinedMax)
            else { continue }
            answer.items += run.items
            sizes += run.sizes
            examined += run.examined
            looked += 1
            let isFull =
                answer.items.count >= limit || examined >= tuning.examinedMax || looked >= Self.zonesMax
                || sizes.reduce(0, +) > tuning.pageBytesMax
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
    mutating func merge(_ zones: [(row: ZoneRow, name: String)]) throws {
        let bound = max(tuning.examinedMax / max(zones.count, 1), min(Self.examinedMin, tuning.examinedMax))
        for zone in zones {
            guard let run = try collect(zone, limit: limit, examinedBound: bound) else { continue }
            if let end = run.end, answer.next.map({ end.lexicographicallyPrecedes($0) }) ?? true { answer.next = end }
            let both = Array(zip(answer.items + run.items, sizes + run.sizes))
            cut(both.sorted { $0.0.position.lexicographicallyPrecedes($1.0.position) })
        }
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
    }

    /// One zone's part; nil where the cursor is behind it.
    private func collect(
        _ zone: (row: ZoneRow, name: String), limit: Int, examinedBound: Int
    ) throws -> ZonePart? {
        var start: QueryPosition?
        if let after {
            switch positions.start(in: zone.name, after: after) {
            case .beginning: start = nil
            case .atEnd: return nil
            case .after(let position): start = position
            }
        }
        let plan = try reader.plan(in: zone.row)
        var run = try reader.run(plan, zone: zone.row, limit: limit, after: start, examinedBound: examinedBound)
        let end = try run.collect()
        let items = try run.found.map { candidate in
            DatabaseQueryPage.Item(
                zone: zone.name, record: try run.record(candidate, zone: zone.row),
                position: bytes(zone.name, QueryPosition(keys: candidate.keys, recordID: candidate.row.id)))
        }
        return ZonePart(
            items: items, sizes: run.found.map(\.row.body.count), end: end.map { bytes(zone.name, $0) },
            examined: run.examined)
    }

    private func bytes(_ zone: String, _ position: QueryPosition) -> [UInt8] {
        positions.encode(PositionBytes.Place(zone: zone, position: position))
    }
}
