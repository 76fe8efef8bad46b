import Authorization
import RecordModel

@testable import RecordStore

/// Earlier versions of records, told naively.
extension RecordTwin {
    struct Version {
        var zone: Int
        var record: Row
        var fields: Fields
        var replaced: Stamp
        var isDeletion: Bool
        var since: Int64

        func size(isLive: Bool) -> QuotaAmounts {
            QuotaAmounts(
                bytes: 128 + Int64(record.name.utf8.count + encodeBody(fields).count),
                assets: isLive ? Int64(RecordTwin.assets(fields).reduce(0) { $0 + $1.size }) : 0)
        }
    }

    /// Keeps a row as it is.
    mutating func leave(_ place: Int, by user: String, isDeletion: Bool, _ versionsMax: UInt64) {
        let row = rows[place]
        guard versionsMax > 0, type(of: row) != nil else { return }
        versions.append(
            Version(
                zone: row.zone, record: row, fields: visible(row), replaced: Stamp(timestamp: stamp, user: user),
                isDeletion: isDeletion, since: time))
        let all = versions.indices.filter { versions[$0].zone == row.zone && versions[$0].record.name == row.name }
        let excess = all.sorted { versions[$0].record.sequence < versions[$1].record.sequence }
            .prefix(max(all.count - Int(versionsMax), 0))
        for place in excess.sorted(by: >) { versions.remove(at: place) }
    }

    mutating func scrubVersions(_ types: Set<String>) {
        for place in versions.indices.reversed() where types.contains(versions[place].record.type) {
            guard zones.contains(where: { $0.id == versions[place].zone && $0.isLive }) else { continue }
            if schema.type(named: versions[place].record.type) == nil {
                versions.remove(at: place)
            } else {
                versions[place].fields = visible(versions[place].fields, type: versions[place].record.type)
            }
        }
    }

    /// The twin has one container.
    mutating func purgeVersions(_ ages: [VersionAge]) {
        for age in ages { versions.removeAll { age.ageMax <= 0 || $0.since <= time - age.ageMax } }
    }

    /// What a caller sees of a record's earlier versions, the newest first.
    func versions(of name: String, zone: Int, by caller: Caller) -> [RecordVersion] {
        func mayRead(_ row: Row) -> Bool {
            guard let type = type(of: row) else { return false }
            let isCreator = caller.user != nil && row.created.user == caller.user
            return Permissions(of: caller, in: type, of: zones[zone].key.database, isCreator: isCreator).contains(.read)
        }
        if let live = live(name, zone: zone), !mayRead(rows[live]) { return [] }
        return versions.filter { $0.zone == zones[zone].id && $0.record.name == name && mayRead($0.record) }
            .sorted { $0.record.sequence > $1.record.sequence }
            .map { version in
                var row = version.record
                row.fields = version.fields
                return RecordVersion(
                    record: record(row, incarnation: zones[zone].incarnation), replaced: version.replaced,
                    isDeletion: version.isDeletion)
            }
    }
}
