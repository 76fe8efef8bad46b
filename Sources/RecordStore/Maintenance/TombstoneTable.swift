import GRDB
import RecordModel

/// What is left of a deleted record.
private struct Tombstone {
    var id: Int64
    var zone: Int64
    var sequence: Int64
    var nameBytes: Int64

    static let columns = "id, zone, sequence, length(CAST(name AS BLOB))"

    init(_ row: SQLRow) {
        id = row.integer(0)
        zone = row.integer(1)
        sequence = row.integer(2)
        nameBytes = row.integer(3)
    }
}

/// What is left of deleted records, in a transaction.
struct TombstoneTable: TransactionPart {
    let transaction: RecordTransaction

    /// Removes tombstones that are too old or too many, oldest first in each zone, and raises the zones' floors.
    func purge(_ retention: Retention, budget: Int) throws -> Int {
        let old = try db.all(
            """
            SELECT \(Tombstone.columns) FROM record WHERE deleted = 1 AND modified_at < ?
            ORDER BY modified_at, zone, sequence LIMIT ?
            """, retention.cutoff(transaction.time), budget
        ) { Tombstone($0) }
        for (zoneID, tombstones) in Dictionary(grouping: old, by: \.zone).sorted(by: { $0.key < $1.key }) {
            try purge(tombstones, zoneID: zoneID)
        }
        var used = old.count
        try transaction.finish()
        while used < budget, let (zoneID, count) = try crowdedZone(retention) {
            let excess = Int64(min(budget - used, Int(count - retention.countMax)))
            let first = try db.all(
                "SELECT \(Tombstone.columns) FROM record WHERE zone = ? AND deleted = 1 ORDER BY sequence LIMIT ?",
                zoneID, excess
            ) { Tombstone($0) }
            try purge(first, zoneID: zoneID)
            try transaction.finish()
            used += max(first.count, 1)
        }
        return used
    }

    private func crowdedZone(_ retention: Retention) throws -> (id: Int64, tombstones: Int64)? {
        try db.first(
            """
            SELECT id, tombstones FROM zone WHERE tombstones > 0 AND tombstones > ? AND state = 0
            ORDER BY tombstones DESC, id LIMIT 1
            """, retention.countMax
        ) { ($0.integer(0), $0.integer(1)) }
    }

    private func purge(_ tombstones: [Tombstone], zoneID: Int64) throws {
        var bytes: Int64 = 0
        for tombstone in tombstones {
            try transaction.rows.delete(tombstone.id)
            if transaction.counted.containsRecord(tombstone.id) { bytes -= RowBytes.record + tombstone.nameBytes }
        }
        try transaction.count(bytes, zoneID: zoneID)
        // A retired zone has no feed.
        guard let zone = try transaction.openZone(id: zoneID), let last = tombstones.map(\.sequence).max() else {
            return
        }
        try Invariant.check(
            last <= zone.row.sequence, "zone \(zoneID) is at \(zone.row.sequence), and a tombstone at \(last)")
        try Invariant.check(
            zone.row.tombstones >= tombstones.count,
            "zone \(zoneID) counts \(zone.row.tombstones) tombstones, and \(tombstones.count) were removed")
        zone.row.floor = max(zone.row.floor, last)
        zone.row.tombstones -= Int64(tombstones.count)
        zone.isChanged = true
    }
}
