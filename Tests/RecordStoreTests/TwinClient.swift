import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing

/// A client of a private database that knows nothing but what tokens brought it.
struct TwinClient {
    struct Zone {
        var records: [String: RecordModel.Record] = [:]
        var token: [UInt8]?
        /// The incarnation that the records are of, and the sequence up to which tombstones do not matter.
        var incarnation: UInt64 = 0
        var base: UInt64 = 0
    }

    var zones: [String: Zone] = [:]
    /// Zones that the database's feed named and that were not followed to their end since.
    var waiting: [String] = []
    var incarnation: UInt64 = 0
    var position: UInt64 = 0
    /// How often a token was refused.
    var restarts = 0

    /// Follows one page of something; returns whether everything is known now.
    mutating func step(_ shard: Fixture, _ twin: RecordTwin, _ random: inout Random) throws -> Bool {
        if waiting.isEmpty || Int.random(in: 0..<6, using: &random) == 0 {
            return try followDatabase(shard, twin, &random) && waiting.isEmpty
        }
        guard let name = waiting.randomElement(using: &random) else { return false }
        try followZone(name, shard, twin, &random)
        return false
    }

    private mutating func followDatabase(
        _ shard: Fixture, _ twin: RecordTwin, _ random: inout Random
    ) throws -> Bool {
        let request = DatabaseChangesRequest(
            database: Fixture.annsData, schemaVersion: twin.version, caller: Fixture.ann, incarnation: incarnation,
            after: position, limit: Int.random(in: 1...3, using: &random))
        let outcome = try shard.queue.read { try ChangeReads(shard.tables, in: $0).databaseChanges(request) }
        switch outcome {
        case .found(let page):
            for zone in page.zones {
                waiting.removeAll { $0 == zone.state.name }
                if zone.isDeleted { zones[zone.state.name] = nil } else { waiting.append(zone.state.name) }
            }
            (incarnation, position) = (page.incarnation, page.position)
            return !page.hasMore
        case .refused(let error):
            #expect(error.reason.hasPrefix("client knowledge differs from server knowledge"))
            self = TwinClient(restarts: restarts + 1)
            return false
        case .needsSchema: Issue.record("needs a schema"); return true
        }
    }

    private mutating func followZone(
        _ name: String, _ shard: Fixture, _ twin: RecordTwin, _ random: inout Random
    ) throws {
        let key = ZoneKey(database: Fixture.annsData, name: name)
        var zone = zones[name] ?? Zone()
        let state = twin.zone(key).map { twin.zones[$0] }
        if zone.token == nil {
            zone.incarnation = state?.incarnation ?? 0
            zone.base = state?.sequence ?? 0
        }
        let request = ZoneChangesRequest(
            zone: key, schemaVersion: twin.version, caller: Fixture.ann, token: zone.token,
            limit: Int.random(in: 1...7, using: &random), isReverse: Bool.random(using: &random))
        switch try shard.queue.read({ try ChangeReads(shard.tables, in: $0).zoneChanges(request) }) {
        case .found(let page):
            #expect(state != nil)
            #expect(page.records.count <= request.limit)
            for entry in page.records {
                switch entry {
                case .record(let record): zone.records[record.name] = record
                case .deleted(let name, _, _): zone.records[name] = nil
                }
            }
            zone.token = page.token
            zones[name] = zone
            guard !page.moreComing, let state else { return }
            // A reverse walk ends where it began; what came since is still to be followed.
            let current = ZoneToken.current(
                key, ZoneState(name: name, incarnation: state.incarnation, sequence: state.sequence))
            guard page.token == current else { return }
            zones[name]?.base = state.sequence
            waiting.removeAll { $0 == name }
        case .refused(let error):
            guard let state else {
                #expect(error.code == .zoneNotFound)
                zones[name] = nil
                waiting.removeAll { $0 == name }
                return
            }
            #expect(error.reason.hasPrefix("client knowledge differs from server knowledge"))
            #expect(state.incarnation != zone.incarnation || state.floor > zone.base, "refused without need")
            zones[name] = nil
            restarts += 1
        case .needsSchema: Issue.record("needs a schema")
        }
    }

    /// Forgets fields that the schema has no place for any more: their removal is no change of the records.
    mutating func forgetFields(_ twin: RecordTwin) {
        zones = zones.mapValues { zone in
            var zone = zone
            zone.records = zone.records.mapValues { record in
                var record = record
                let kept = twin.visible(record.fields, type: record.type, in: twin.between)
                record.fields = twin.visible(kept, type: record.type)
                return record
            }
            return zone
        }
    }

    /// Follows everything to its end and compares with what the twin has.
    mutating func finish(_ shard: Fixture, _ twin: RecordTwin, _ random: inout Random) throws {
        var steps = 0
        while try !step(shard, twin, &random) {
            steps += 1
            guard steps < 20_000 else { Issue.record("the feeds do not end"); return }
        }
        let live = twin.zones.indices.filter {
            twin.zones[$0].isLive && twin.zones[$0].key.database == Fixture.annsData && !twin.zones[$0].key.isDefault
        }
        #expect(Set(zones.keys) == Set(live.map { twin.zones[$0].key.name }))
        for place in live {
            let expected = twin.records(place)
            // What the schema lost with its type comes as a tombstone once maintenance gets there.
            let found = (zones[twin.zones[place].key.name]?.records ?? [:])
                .filter { twin.schema.type(named: $0.value.type) != nil }
            let names = Set(expected.keys).union(found.keys).sorted()
            for name in names where found[name] != expected[name] {
                Issue.record(
                    "\(name): the client has \(found[name].debugDescription), not \(expected[name].debugDescription)")
            }
        }
    }
}
