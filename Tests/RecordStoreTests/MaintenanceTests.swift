import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

@Suite("maintenance: indexes, schemas, resets, zones")
struct MaintenanceTests {
    let shard: Fixture
    let zone = Fixture.annsDefault
    init() throws { shard = try Fixture() }

    func note(_ change: (inout FieldDefinition) -> Void) -> RecordType {
        var note = Fixture.note
        for place in note.fields.indices { change(&note.fields[place]) }
        return note
    }

    func fill(_ count: Int) throws {
        try shard.queue.write { db in
            let transaction = try shard.tables.begin(in: db)
            for number in 0..<count {
                let operation = RecordChange.make(
                    .create, "r\(number)", [("plain", .string("p\(number % 7)")), ("rank", .int64(Int64(number)))])
                _ = try transaction.apply(
                    .modifyRecords(
                        ModifyRecords(
                            zone: zone, schemaVersion: 1, caller: Fixture.ann, time: 1, operations: [operation])))
            }
            try transaction.finish()
        }
    }

    func states(_ field: String) throws -> [IndexState] {
        try shard.queue.read {
            try IndexState.all(container: "app", environment: .production, from: shard.tables, in: $0)
        }
        .filter { $0.type == "Note" && $0.field == field }
    }

    @Test("a new index is built in parts while writes go on, and its state tells how far it is")
    func building() throws {
        try fill(600)
        let changed = note { if $0.name == "plain" { $0.indexes = [.queryable, .sortable, .searchable] } }
        try shard.apply(Fixture.install(2, Schema(types: [changed, Fixture.secret, Fixture.bare])))
        var state = try states("plain")
        #expect(state.map(\.purpose) == ["QUERYABLE SORTABLE", "SEARCHABLE"])
        #expect(state.allSatisfy { !$0.isReady && $0.done == 0 && $0.total == 600 })
        #expect(try shard.apply(.maintain(Maintain(time: 1, rowsMax: 100))) == .maintained(hasMore: true))
        state = try states("plain")
        #expect(state.allSatisfy { !$0.isReady && $0.done == 50 && $0.total == 600 })
        // Behind and before the job: changed, deleted, made.
        for name in ["r3", "r400", "new"] {
            let operation = RecordChange.make(.forceUpdate, name, [("plain", .string("changed"))])
            #expect(try shard.modify(zone, version: 2, operation).codes == [nil])
        }
        for name in ["r4", "r401"] {
            #expect(try shard.modify(zone, version: 2, .make(.forceDelete, name)).codes == [nil])
        }
        #expect(try shard.maintain(rows: 100) >= 5)
        #expect(try states("plain").allSatisfy { $0.isReady })
        #expect(try states("rank").map(\.isReady) == [true])
        let stored = try shard.rowsOfIndexes()
        try shard.remakeIndexes()
        #expect(try shard.rowsOfIndexes() == stored)
    }

    @Test("the building of an index revises its schema at the end alone; below feature level 14 at each part")
    func revisions() throws {
        func revision() throws -> Int { try shard.count("SELECT revision FROM schema") }
        try fill(600)
        let levels: [(FeatureLevel, Int, UInt64)] = [(.presentHours, 7, 2), (.steadySchemas, 1, 4)]
        for (level, revisions, version) in levels {
            let changed = note { if $0.name == "plain" { $0.indexes = .queryable } }
            try shard.apply(Fixture.install(version, Schema(types: [changed, Fixture.secret, Fixture.bare])))
            let begin = try revision()
            for part in 1...6 {
                #expect(try states("plain").map(\.isReady) == [false])
                #expect(try states("plain").map(\.done) == [UInt64(100 * (part - 1))])
                _ = try shard.apply(.maintain(Maintain(time: 1, rowsMax: 100)), at: level)
            }
            let last = RecordCommand.maintain(Maintain(time: 1, rowsMax: 100))
            while try shard.apply(last, at: level) == .maintained(hasMore: true) {}
            #expect(try states("plain").map(\.isReady) == [true])
            #expect(try revision() - begin == revisions)
            try shard.apply(Fixture.install(version + 1))
            try shard.maintain()
        }
    }

    @Test("up to 500 records an index is filled at once; a new type's indexes are ready at once")
    func atOnce() throws {
        try fill(500)
        let changed = note { if $0.name == "plain" { $0.indexes = .queryable } }
        try shard.apply(Fixture.install(2, Schema(types: [changed, Fixture.secret, Fixture.bare])))
        #expect(try states("plain").map(\.isReady) == [true])
        _ = try shard.modify(zone, version: 2, .make(.create, "one more"))
        var other = Fixture.note
        other.name = "Other"
        try shard.apply(Fixture.install(3, Schema(types: [changed, other, Fixture.secret, Fixture.bare])))
        #expect(try shard.count("SELECT count(*) FROM job") == 0)
        try shard.apply(Fixture.install(4, Schema(types: [Fixture.note, other, Fixture.secret, Fixture.bare])))
        #expect(try shard.count("SELECT count(*) FROM job") == 1)
        #expect(try states("plain").isEmpty)
    }

    @Test("an index that is dropped loses its rows in parts, and one that comes back meanwhile is another")
    func dropping() throws {
        try fill(600)
        let without = note { if $0.name == "rank" { $0.indexes = [] } }
        try shard.apply(Fixture.install(2, Schema(types: [without, Fixture.secret, Fixture.bare])))
        let rows = "SELECT count(*) FROM index_number WHERE value < 600"
        let before = try shard.count(rows)
        try shard.apply(.maintain(Maintain(time: 1, rowsMax: 50)))
        #expect(try shard.count(rows) == before - 50)
        try shard.apply(Fixture.install(3))
        #expect(try states("rank").map(\.isReady) == [false])
        try shard.maintain(rows: 70)
        let query = Query(recordType: "Note", sorts: [Sort(field: "rank")])
        #expect(try shard.names(zone, query).count == 600)
        #expect(try shard.count("SELECT count(*) FROM field_index WHERE name = 'rank'") == 1)
    }

    @Test("a removed field is hidden at once and scrubbed without a change; its values do not come back with it")
    func removedField() throws {
        try shard.zone(.create, Fixture.work)
        let value: [(String, FieldValue?)] = [("plain", .string("x")), ("rank", .int64(1))]
        _ = try shard.one(Fixture.work, .make(.create, "a", value))
        var without = Fixture.note
        without.fields.removeAll { $0.name == "plain" }
        let next = Schema(types: [without, Fixture.secret, Fixture.bare])
        try shard.apply(Fixture.install(2, next))
        let request = ZoneChangesRequest(zone: Fixture.work, schemaVersion: 2, caller: Fixture.ann)
        func entries() throws -> [RecordEntry] {
            let outcome = try shard.queue.read { try ChangeReads(shard.tables, in: $0).zoneChanges(request) }
            guard case .found(let page) = outcome else { return [] }
            return page.records
        }
        guard case .record(let hidden)? = try entries().first else { Issue.record("no record"); return }
        #expect(hidden.fields.all.map(\.name) == ["rank"] && hidden.changeTag.sequence == 1)
        // What has nothing to do with it leaves the work to maintenance.
        #expect(try shard.apply(Fixture.install(3, next)) == .schemaInstalled)
        #expect(try shard.count("SELECT count(*) FROM stray") == 1)
        #expect(try entries() == [.record(hidden)])
        #expect(try shard.apply(Fixture.install(4)) == .schemaInstalled)
        #expect(try shard.count("SELECT count(*) FROM stray") == 0)
        #expect(try shard.lookup("a", in: Fixture.work)?.fields.all.map(\.name) == ["rank"])
        try shard.maintain()
        #expect(try entries() == [.record(hidden)])
    }

    @Test("what is dropped and comes again while the shard has an earlier schema comes without its values")
    func skippedVersions() throws {
        try shard.zone(.create, Fixture.work)
        let first = Fixture.schema.dated(1, after: Schema())
        try shard.apply(Fixture.install(2, first))
        let values: [(String, FieldValue?)] = [
            ("plain", .string("x")), ("rank", .int64(1)), ("score", .double(2)),
            ("tags", .list(.string, [.string("t")])),
            ("sealed", .sealed([1, 2, 3])),
        ]
        _ = try shard.modify(
            Fixture.work, version: 2, .make(.create, "a", values), RecordChange(.create, "s", type: "Secret"))
        var note = Fixture.note
        note.fields.removeAll { ["plain", "rank", "tags", "sealed"].contains($0.name) }
        let third = Schema(types: [note, Fixture.bare]).dated(3, after: first)
        let fourth = Fixture.schema.dated(4, after: third)
        // Version 3 never comes here, and version 4 has all again.
        try shard.apply(Fixture.install(4, fourth))
        #expect(try shard.lookup("a", in: Fixture.work)?.fields.all.map(\.name) == ["score"])
        #expect(try shard.lookup("s", in: Fixture.work) == nil)
        #expect(try shard.count("SELECT count(*) FROM stray") == 0)
        let sorted = Query(recordType: "Note", sorts: [Sort(field: "rank")])
        #expect(try shard.names(Fixture.work, sorted, version: 4) == ["a"])
        let ranked = Query(
            recordType: "Note", filters: [Filter(field: "rank", comparator: .equals, value: .int64(1))])
        #expect(try shard.names(Fixture.work, ranked, version: 4) == [])
        // What came with the version that is there stays.
        _ = try shard.modify(Fixture.work, version: 4, .make(.create, "b", [("plain", .string("y"))]))
        try shard.apply(Fixture.install(5, fourth.dated(5, after: fourth)))
        #expect(try shard.lookup("b", in: Fixture.work)?.fields.all.map(\.name) == ["plain"])
        try shard.maintain()
        let stored = try shard.rowsOfIndexes()
        try shard.remakeIndexes(rows: 7)
        #expect(try shard.rowsOfIndexes() == stored)
    }

    @Test("records of a removed type are gone at once and come to feeds as tombstones")
    func removedType() throws {
        try shard.zone(.create, Fixture.work)
        _ = try shard.one(Fixture.work, RecordChange(.create, "s", type: "Secret"))
        _ = try shard.one(Fixture.work, RecordChange(.create, "t", type: "Secret"))
        var request = ZoneChangesRequest(zone: Fixture.work, schemaVersion: 1, caller: Fixture.ann)
        guard
            case .found(let before) = try shard.queue.read({
                try ChangeReads(shard.tables, in: $0).zoneChanges(request)
            })
        else {
            Issue.record("no page")
            return
        }
        request.token = before.token
        try shard.apply(Fixture.install(2, Schema(types: [Fixture.note, Fixture.bare])))
        #expect(try shard.lookup("s", in: Fixture.work) == nil)
        // The name is free.
        #expect(try shard.modify(Fixture.work, version: 2, .make(.create, "t")).codes == [nil])
        try shard.maintain()
        let outcome = try shard.queue.read { try ChangeReads(shard.tables, in: $0).zoneChanges(request) }
        guard case .found(let page) = outcome else { Issue.record("\(outcome)"); return }
        let tag = ChangeTag(incarnation: 1, sequence: 4)
        #expect(page.records.last == .deleted(name: "s", type: nil, changeTag: tag))
        #expect(page.records.count == 2)
        #expect(try shard.apply(Fixture.install(3)) == .schemaInstalled)
        #expect(try shard.lookup("s", in: Fixture.work) == nil)
    }

    @Test("a greater generation takes every zone of the container environment away, and what requests did to them")
    func reset() throws {
        try shard.zone(.create, Fixture.work)
        let key = IdempotencyKey(
            key: [UInt8](repeating: 1, count: 16), bodyHash: [UInt8](repeating: 1, count: 32), caller: "c")
        for zone in [Fixture.work, zone, Fixture.publicZone] {
            _ = try shard.modify(zone, idempotency: zone == self.zone ? key : nil, .make(.create, "a"))
        }
        #expect(try shard.apply(Fixture.install(2, generation: 1)) == .schemaInstalled)
        for zone in [Fixture.work, zone, Fixture.publicZone] { #expect(try shard.lookup("a", in: zone) == nil) }
        #expect(try shard.count("SELECT count(*) FROM idempotency") == 0)
        let again = try shard.modify(zone, version: 2, idempotency: key, .make(.create, "a"))
        #expect(again.items.first?.saved?.changeTag == ChangeTag(incarnation: 2, sequence: 1))
        try shard.maintain(rows: 1)
        #expect(try shard.count("SELECT count(*) FROM record") == 1)
        #expect(try shard.count("SELECT count(DISTINCT zone) FROM index_bytes") == 1)
        // A node that knows of the reset makes no zone on a shard that does not.
        let late = ModifyZone(.create, zone: Fixture.work, caller: Fixture.ann, time: 1, schemaVersion: 3)
        #expect(try shard.apply(.modifyZone(late)) == .needsSchema(installed: 2))
        let zones = try shard.queue.read {
            try RecordReads(shard.tables, in: $0).zones(of: Fixture.annsData, schemaVersion: 3)
        }
        #expect(zones == .needsSchema(installed: 2))
    }

    @Test("retired zones leave no index rows, however schemas showed their records meanwhile", arguments: [1, 500])
    func retiredRows(_ rows: UInt64) throws {
        func install(_ version: UInt64, _ generation: UInt64, due: FieldType, score: FieldType, drops: String = "")
            throws
        {
            var changed = note {
                if $0.name == "due" { ($0.type, $0.indexes) = (due, due.scalar == .timestamp ? .queryable : []) }
                if $0.name == "score" { $0.type = score }
            }
            changed.fields.removeAll { $0.name == drops }
            let outcome = try shard.apply(Fixture.install(version, Schema(types: [changed]), generation: generation))
            #expect(outcome == .schemaInstalled)
        }
        let settled = FieldType(.number, preferred: .int64)
        try install(2, 0, due: FieldType(.int64), score: FieldType(.number))
        for name in ["a", "b"] {
            let values: [(String, FieldValue?)] = [("due", .int64(5)), ("score", .double(2)), ("plain", .string("x"))]
            #expect(try shard.modify(zone, version: 2, .make(.create, name, values)).codes == [nil])
        }
        // The score has rows as the integer that the body does not hold.
        try install(3, 0, due: FieldType(.int64), score: settled)
        // The number in "due" has rows as a time; the next schema hides it, and would have it scrubbed.
        try install(4, 1, due: FieldType(.timestamp), score: FieldType(.int64))
        try install(5, 1, due: FieldType(.timestamp), score: FieldType(.int64), drops: "plain")
        #expect(try shard.count("SELECT count(*) FROM index_number") > 0)
        try shard.maintain(rows: rows)
        for table in ["record", "index_number", "index_bytes", "index_missing", "edge", "job"] {
            #expect(try shard.count("SELECT count(*) FROM \(table)") == 0, "\(table)")
        }
    }

    @Test("a zone command repeated with its key and position is applied once")
    func zoneRetries() throws {
        func command(_ kind: ModifyZone.Kind, position: UInt64, hash: UInt8 = 1) -> RecordCommand {
            let key = IdempotencyKey(
                key: [UInt8](repeating: 1, count: 16), bodyHash: [UInt8](repeating: hash, count: 32), caller: "c",
                position: position)
            return .modifyZone(
                ModifyZone(
                    kind, zone: Fixture.work, caller: Fixture.ann, time: 1, schemaVersion: 1, idempotency: key))
        }
        let made = try shard.apply(command(.create, position: 0))
        #expect(try shard.apply(command(.delete, position: 1)) == .zone(.deleted))
        #expect(try shard.apply(command(.create, position: 0)) == made)
        #expect(try shard.apply(command(.delete, position: 1)) == .zone(.deleted))
        #expect(try shard.apply(command(.create, position: 0, hash: 2)).refusal?.code == .badRequest)
        #expect(try shard.count("SELECT count(*) FROM zone WHERE state = 0") == 0)
    }

    @Test("a database has at most 10,000 zones on a shard")
    func zoneLimit() throws {
        try shard.zone(.create, Fixture.work)
        try shard.queue.write { try $0.execute(sql: "UPDATE database SET zones = 9999") }
        func make(_ name: String) throws -> RecordOutcome {
            try shard.zone(.create, ZoneKey(database: Fixture.annsData, name: name))
        }
        #expect(try make("last").refusal == nil)
        #expect(try make("over").refusal?.code == .badRequest)
        #expect(try make("last").refusal == nil)
        try shard.zone(.delete, Fixture.work)
        #expect(try make("over").refusal == nil)
    }

    @Test("commands and outcomes survive their binary forms")
    func wire() throws {
        let retention = Retention(tombstoneAgeMax: 5, tombstonesMax: 6)
        for command: RecordCommand in [
            .maintain(Maintain(time: -4, rowsMax: 9, retention: retention)), Fixture.install(7, generation: 8),
        ] {
            #expect(try RecordCommand(decoding: command.encoded()) == command)
        }
        for hasMore in [true, false] {
            let outcome = RecordOutcome.maintained(hasMore: hasMore)
            #expect(try RecordOutcome(decoding: outcome.encoded()) == outcome)
        }
    }
}
