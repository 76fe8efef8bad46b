import Authorization
import Foundation
import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

/// Random commands against the twin, with clients that follow tokens.
@Suite("records, zones, references, feeds and schemas: against a naive twin")
struct TwinTests {
    /// How many commands; set ZONEKEEPER_TWIN_OPERATIONS for a long run.
    private static let wanted = ProcessInfo.processInfo.environment["ZONEKEEPER_TWIN_OPERATIONS"]
    static let operations = wanted.flatMap { Int($0) } ?? 2000

    @Test(
        "random commands have the same outcomes, and clients end with the same records", arguments: [2, 3, 6, 7])
    func twin(_ seed: UInt64) throws { try run(seed) }

    @Test("the same with earlier versions of records, without quotas", arguments: [1] as [UInt64])
    func versions(_ seed: UInt64) throws { try run(seed, keepsVersions: true) }

    private func run(_ seed: UInt64, keepsVersions: Bool = false) throws {
        let shard = try Fixture(installs: false)
        var twin = RecordTwin()
        var commands = TwinCommands(seed)
        commands.keepsVersions = keepsVersions
        var clients = [TwinClient(), TwinClient()]
        var readers = TwinReaders(seed)
        var counts = Counts()
        for step in 0..<(Self.operations / 4) {
            if step % 400 == 399 {
                // Above all that was given: resets give incarnations to databases.
                let given = try shard.count("SELECT coalesce(max(incarnation), 0) FROM database")
                let incarnation = (twin.zones.map(\.incarnation) + [UInt64(given)]).reduce(0, max) + 1
                twin.restore(incarnation)
                try shard.queue.write { try RecordTables.startNewIncarnation(incarnation, in: $0) }
            }
            let command = commands.next(twin)
            let expected = twin.apply(command)
            let outcome = try shard.apply(command).withoutReasons
            counts.count(command, outcome)
            if case .maintain = command { readers.maintain(at: twin.time) }
            for _ in 0..<2 {
                let move = readers.next(at: commands.time)
                twin.observe(commands.time)
                let isDone = try shard.run { try move.apply(in: $0) }.isDone
                #expect(isDone == readers.apply(move, floor: twin.floor), "step \(step): \(move)")
            }
            twin.rememberedBytes = try shard.rememberedBytes()
            try expectSameUsage(shard, twin, step)
            try expectSameAssets(shard, twin, step)
            guard outcome == expected.withoutReasons else {
                Issue.record("step \(step): \(command)\n got \(outcome)\nwant \(expected)")
                return
            }
            if outcome == .schemaInstalled { for place in clients.indices { clients[place].forgetFields(twin) } }
            for place in clients.indices where Int.random(in: 0..<4, using: &commands.random) == 0 {
                _ = try clients[place].step(shard, twin, &commands.random)
            }
            if step % 50 == 49 {
                try clients[step % 100 / 50].finish(shard, twin, &commands.random)
                if step % 100 == 99 { try expectSame(shard, twin) }
                try readers.expectSame(shard, step)
            }
        }
        try shard.maintain(time: commands.time)
        try shard.expectEdges()
        let stored = try shard.rowsOfIndexes()
        try shard.remakeIndexes(rows: 7)
        #expect(try shard.rowsOfIndexes() == stored)
        if !keepsVersions { counts.expectAll(restarts: clients.map(\.restarts).reduce(0, +)) }
    }

    /// Compares what lookups show of all zones.
    private func expectSame(_ shard: Fixture, _ twin: RecordTwin) throws {
        for place in twin.zones.indices where twin.zones[place].isLive {
            let key = twin.zones[place].key
            let owner = key.database.scope == .public ? nil : Fixture.ann
            let expected = twin.records(place)
            for name in (0..<14).map({ "r\($0)" }) + ["_ann", "_bob"] {
                let caller = owner ?? Caller(user: expected[name]?.created.user)
                let found = try shard.lookup(name, in: key, by: caller)
                let type = expected[name].flatMap { twin.schema.type(named: $0.type) }
                let mayRead = type.map {
                    Permissions(of: caller, in: $0, of: key.database, isCreator: caller.user != nil).contains(.read)
                }
                #expect(found == (mayRead == true ? expected[name] : nil), "\(key.name) \(name)")
                #expect(
                    try shard.versions(name, in: key, by: caller) == twin.versions(of: name, zone: place, by: caller),
                    "versions of \(key.name) \(name)")
            }
        }
    }

    /// Compares what counts files with the twin's records and with a recount of what is stored.
    private func expectSameAssets(_ shard: Fixture, _ twin: RecordTwin?, _ step: Int) throws {
        let (counts, again) = try shard.assetCounts()
        #expect(counts == again, "step \(step)")
        if let twin { #expect(counts == twin.assetCounts(), "step \(step)") }
    }

    /// Compares counters, recounts and allotments of all databases and zones.
    private func expectSameUsage(_ shard: Fixture, _ twin: RecordTwin, _ step: Int) throws {
        for key in [Fixture.publicData, Fixture.annsData] {
            let found = try shard.queue.read { try UsageCounts.database(key, recount: true, in: $0) }
            var expected = twin.usage(of: key)
            if twin.hasRetiredRows(key) {
                // Index rows of deleted zones are what earlier schemas made of them, which the twin does not follow.
                (expected.used.bytes, expected.others.bytes) = (found.used.bytes, found.others.bytes)
            }
            #expect(found == expected, "step \(step)")
            #expect(found.recount == found.used, "step \(step)")
        }
    }

    @Test("in whatever parts maintenance is done, clients end with the server's records", arguments: 1...2)
    func parts(_ seed: UInt64) throws {
        let shard = try Fixture()
        let other = try Fixture()
        var commands = TwinCommands(seed &+ 500)
        commands.isOftenMaintained = false
        var view = RecordTwin()
        view.version = 1
        var pending: [RecordCommand] = []
        for _ in 0..<(Self.operations / 8) {
            var command = commands.next(view)
            if case .maintain = command {
                command = .maintain(commands.maintain(rows: UInt64.random(in: 1...5, using: &commands.random)))
            }
            let outcome = try shard.apply(command)
            if case .installSchema(let install) = command, outcome == .schemaInstalled {
                (view.version, view.generation) = (install.version, max(view.generation, install.generation))
                view.schema = install.schema
            }
            pending.append(command)
            guard Int.random(in: 0..<20, using: &commands.random) == 0 else { continue }
            try other.queue.write { db in
                let transaction = try other.tables.begin(in: db)
                for command in pending { _ = try transaction.apply(command) }
                try transaction.finish()
            }
            pending.removeAll()
            #expect(try shard.stateBytes() == other.stateBytes())
            try expectSameAssets(shard, nil, pending.count)
            for key in [Fixture.publicData, Fixture.annsData] {
                let usage = try shard.queue.read { try UsageCounts.database(key, recount: true, in: $0) }
                #expect(usage.zones.allSatisfy { $0.recount == $0.used } && usage.recount == usage.used)
                #expect(usage.others.records == 0)
            }
        }
        try shard.expectEdges()
        try shard.maintain(rows: 3)
        let stored = try shard.rowsOfIndexes()
        try shard.remakeIndexes(rows: 5)
        #expect(try shard.rowsOfIndexes() == stored)
        #expect(try shard.count("SELECT count(*) FROM job") == 0)
        #expect(try shard.count("SELECT count(*) FROM field_index WHERE state <> 1") == 0)
        #expect(
            try shard.count(
                """
                SELECT count(*) FROM zone z WHERE state = 0 AND tombstones <>
                    (SELECT count(*) FROM record r WHERE r.zone = z.id AND r.deleted = 1)
                """) == 0)
    }
}

extension RecordTwin {
    mutating func apply(_ command: RecordCommand) -> RecordOutcome {
        stamp = time
        switch command {
        case .modifyRecords(let command): return modifyRecords(command)
        case .modifyZone(let command): return modifyZone(command)
        case .installSchema(let command): return install(command)
        case .maintain(let command): return maintain(command)
        case .quota(let command): return quota(command)
        }
    }
}

/// Whether the random commands met everything that there is to meet.
private struct Counts {
    private var seen: [String: Int] = [:]

    mutating func count(_ command: RecordCommand, _ outcome: RecordOutcome) {
        switch outcome {
        case .records(let items): for item in items { add(item.error?.code.rawValue ?? "success") }
        case .atomicFailure: add("atomicFailure")
        case .refused(let error): add("refused " + error.code.rawValue)
        case .needsSchema: add("needsSchema")
        case .zone(.deleted): add("zone deleted")
        case .needsAllotment: add("needsAllotment")
        case .zone, .schemaInstalled, .maintained, .quota: break
        }
    }

    private mutating func add(_ what: String) { seen[what, default: 0] += 1 }

    func expectAll(restarts: Int) {
        for what in [
            "success", "ACCESS_DENIED", "BAD_REQUEST", "CONFLICT", "EXISTS", "NOT_FOUND", "VALIDATING_REFERENCE_ERROR",
            "QUOTA_EXCEEDED", "atomicFailure", "refused BAD_REQUEST", "refused ZONE_NOT_FOUND", "needsSchema",
            "needsAllotment", "zone deleted",
        ] {
            #expect(seen[what, default: 0] > 0, "never met: \(what)")
        }
        #expect(restarts > 0)
    }
}
