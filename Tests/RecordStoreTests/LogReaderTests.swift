import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

@Suite("Readers of notifications, and webhooks as subscribers")
struct LogReaderTests {
    private let pair: Pair
    init() throws { pair = try Pair() }

    private static let webhook = DatabaseKey.webhook("ab", container: "app", environment: .production)
    private static let bobsZone = ZoneKey(
        database: DatabaseKey(container: "app", environment: .production, scope: .private, owner: "_bob"),
        name: "bobs")

    private func apply(
        _ command: LogReaderCommand, at level: FeatureLevel = FeatureLevel.supported.upperBound
    ) throws -> Bool {
        let decoded = try LogReaderCommand(decodingStrictly: command.encoded())
        #expect(decoded == command)
        let outcome = try pair.home.run(level: level) { try decoded.apply(in: $0) }
        return try LogReaderOutcome(decoding: outcome.encoded()).isDone
    }

    private func move(
        _ name: String = "r", from version: UInt64, expires: Int64? = nil, body: String = "",
        at level: FeatureLevel = FeatureLevel.supported.upperBound
    ) throws -> Bool {
        try apply(
            .move(
                subscriber: Pair.subscriber, home: Pair.homeGroup, time: 1000, name: name, from: version,
                to: LogReader(version: 0, expires: expires, body: Array(body.utf8))), at: level)
    }

    private func reader(_ name: String = "r") throws -> LogReader? {
        try pair.home.queue.read { try LogReader.find(name, of: Pair.subscriber, in: $0) }
    }

    private func subscribe(_ changes: ModifySubscriptions.Change...) throws {
        let command = ModifySubscriptions(
            subscriber: Self.webhook, home: Pair.homeGroup, time: 1000, changes: changes)
        #expect(try pair.home.run { try $0.modify(command) }.failures.allSatisfy { $0 == nil })
        try pair.deliverAll()
    }

    private func told() throws -> [JSONValue] {
        let page = try pair.home.queue.read {
            try NotificationLog.page(
                of: Self.webhook, since: nil, client: nil, hidden: NotificationLog.Hidden(), limit: 200, in: $0)
        }
        guard case .entries(let entries, _, false) = page else { return [] }
        return try entries.map { try JSONParser.parse($0.payload)["ck"] ?? .null }
    }

    @Test("a reader moves only from where its mover saw it")
    func moves() throws {
        #expect(try reader() == nil)
        #expect(try move(from: 0, body: "a"))
        #expect(try reader() == LogReader(version: 1, expires: nil, body: Array("a".utf8)))
        #expect(try !move(from: 0, body: "b"))
        #expect(try !move(from: 2, body: "b"))
        #expect(try move(from: 1, expires: 9, body: "c"))
        #expect(try reader() == LogReader(version: 2, expires: 9, body: Array("c".utf8)))
        #expect(try !move(from: 2, body: String(repeating: "x", count: LogReader.bytesMax + 1)))
    }

    @Test("below its level nothing is done, and nothing is stored")
    func level() throws {
        #expect(try !move(from: 0, body: "a", at: .exactNotifications))
        #expect(try pair.home.count("SELECT count(*) FROM log_reader") == 0)
        #expect(try pair.home.count("SELECT count(*) FROM registry") == 0)
        #expect(try !apply(.forget(subscriber: Pair.subscriber, time: 1), at: .exactNotifications))
    }

    @Test("a user has a hundred readers: where another comes, the one that expires first goes")
    func bound() throws {
        for number in 0..<100 { #expect(try move("r\(number)", from: 0, expires: Int64(1000 + number))) }
        #expect(try move("kept", from: 0))
        #expect(try reader("r0") == nil)
        #expect(try pair.home.count("SELECT count(*) FROM log_reader") == 100)
        #expect(try move("r1", from: 1, expires: 5000))
        #expect(try move("more", from: 0, expires: 6000))
        #expect(try reader("r1") != nil && reader("r2") == nil && reader("kept") != nil)
    }

    @Test("maintenance removes readers whose time is over")
    func expiry() throws {
        #expect(try move("a", from: 0, expires: 2000))
        #expect(try move("b", from: 0))
        try pair.home.setTime(1000)
        try pair.home.maintain(time: 1000)
        #expect(try reader("a") != nil)
        try pair.home.setTime(2000)
        #expect(try pair.home.queue.read { try RecordTables.hasWork(now: 2000, in: $0) })
        try pair.home.maintain(time: 2000)
        #expect(try reader("a") == nil && reader("b") != nil)
    }

    @Test("a subscriber is forgotten with everything, in parts, and its copies go")
    func forgotten() throws {
        for number in 0..<60 { try pair.watch(Pair.subscription("s\(number)", zone: "z\(number)")) }
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        #expect(try move(from: 0))
        #expect(try pair.log().count == 1)
        let forget = LogReaderCommand.forget(subscriber: Pair.subscriber, time: 1000)
        #expect(try !apply(forget))
        #expect(try apply(forget))
        #expect(try apply(forget))
        for table in ["registry", "subscription", "notification", "log_reader"] {
            #expect(try pair.home.count("SELECT count(*) FROM \(table)") == 0, "\(table)")
        }
        try pair.deliverAll()
        #expect(try pair.shard.count("SELECT count(*) FROM watcher") == 0)
    }

    @Test("the token of a log that is forgotten in parts has expired, and fits no later log")
    func endedToken() throws {
        for number in 0..<60 { try pair.watch(Pair.subscription("s\(number)", zone: "z\(number)")) }
        try pair.watch(Pair.subscription("all"))
        let old = try pair.token()
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        let forget = LogReaderCommand.forget(subscriber: Pair.subscriber, time: 1000)
        #expect(try !apply(forget))
        #expect(try pair.expiry(of: old) == .tooOld)
        #expect(try apply(forget))
        try pair.watch(Pair.subscription("all"))
        #expect(try pair.expiry(of: old) == .lost)
    }

    @Test("a log that is forgotten leaves databases and their tokens as they are, from its level on")
    func othersTokens() throws {
        for (level, stays) in [(FeatureLevel.changeTimes, false), (.ownLives, true)] {
            let pair = try Pair()
            func changes(_ last: DatabaseChangesPage?) throws -> ReadOutcome<DatabaseChangesPage> {
                let request = DatabaseChangesRequest(
                    database: Self.bobsZone.database, schemaVersion: 1, caller: Fixture.bob,
                    incarnation: last?.incarnation ?? 0, after: last?.position ?? 0)
                return try pair.home.queue.read { try ChangeReads(pair.home.tables, in: $0).databaseChanges(request) }
            }
            guard case .found(let empty) = try changes(nil) else { throw ServiceError(.internalError, "no page") }
            try pair.watch(Pair.subscription("all"))
            let old = try pair.token()
            let forget = LogReaderCommand.forget(subscriber: Pair.subscriber, time: 1000)
            #expect(try pair.home.run(level: level) { try forget.apply(in: $0) }.isDone)
            if case .found(let page) = try changes(empty) { #expect(stays && page == empty) } else { #expect(!stays) }
            try pair.watch(Pair.subscription("all"))
            #expect(try pair.expiry(of: old) == .lost)
        }
    }

    @Test("readers of a container that is purged go")
    func purged() throws {
        #expect(try move(from: 0))
        try pair.home.run { while try !$0.removeContainer("app") {} }
        #expect(try pair.home.count("SELECT count(*) FROM log_reader") == 0)
    }

    @Test("a webhook is told of every user's custom zones in order, and of no values in them")
    func everyUser() throws {
        try subscribe(
            .save(Subscription(id: "private", scope: .private, kind: .database), targets: [Pair.shardGroup]))
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        try pair.shard.apply(.modifyZone(ModifyZone(.create, zone: Self.bobsZone, caller: Fixture.bob, time: 1000)))
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        _ = try pair.shard.one(Fixture.annsDefault, .make(.forceUpdate, "a"))
        try pair.deliverAll()
        let told = try told()
        #expect(told.compactMap { $0["met"]?["zid"]?.string } == ["work", "bobs", "work"])
        #expect(told.compactMap { $0["met"]?["zoid"]?.string } == ["_ann", "_bob", "_ann"])
        #expect(told.allSatisfy { $0["met"]?["sid"]?.string == "private" && $0["qry"] == nil })
        // The user's own subscription tells of the user's zones, as before.
        #expect(try pair.log().compactMap { $0["ck"]?["met"]?["zid"]?.string } == ["work", "work"])
        try subscribe(.delete(.private, id: "private"))
        try pair.shard.zone(.delete, Fixture.work)
        try pair.deliverAll()
        #expect(try self.told().count == 3)
    }

    @Test("below the level nobody watches the databases of all users")
    func everyUserBelowTheLevel() throws {
        try subscribe(
            .save(Subscription(id: "private", scope: .private, kind: .database), targets: [Pair.shardGroup]))
        try pair.shard.run(level: .exactNotifications) {
            _ = try $0.apply(
                .modifyZone(ModifyZone(.create, zone: Fixture.work, caller: Fixture.ann, time: 1000)))
        }
        try pair.deliverAll()
        #expect(try told().isEmpty)
    }

    @Test("a replaced subscription waits for the groups that match it no more")
    func replaced() throws {
        try pair.watch(Pair.subscription("s", zone: "work"))
        let outcome = try pair.modify(.save(Pair.subscription("s", zone: "other"), targets: [7]))
        #expect(outcome.marks.map(\.destination) == [Pair.shardGroup, 7])
        #expect(outcome.marks.first?.sequence == 2)
    }
}
