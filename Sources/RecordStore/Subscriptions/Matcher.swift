import Authorization
import GRDB
import RecordModel
import Wire

/// A change of a zone or a record by the current command, in a database that somebody watches.
struct WatchedChange {
    var zone: ZoneKey
    /// Tells it from every other change: the zone's incarnation and sequence.
    var tag: ChangeTag
    /// The type of the record; nil where the zone itself came or went.
    var type: String?
    /// The record, where queries may match it: as it is now, or as it was before it was deleted.
    var record: IndexedRecord?
    var event: Match.Event = .updated
}

/// Who makes a change, and with which device.
struct ChangeOrigin: Hashable {
    var user: String?
    /// As the device names itself.
    var client: String?
}

/// Tells those who watch of what the commands of one transaction change.
///
/// Changes are noted while a command is applied, and told of once it is done; what a savepoint takes back is forgotten.
final class Matcher {
    /// Subscriptions to queries that one command looks at, of those that may match; the rest is left to maintenance.
    static let candidatesMax = 1_000

    /// A change of a record that somebody has to go on with.
    struct Leftover {
        var matching: QueryMatching
        /// The row of the watcher that was looked at last.
        var position: Int64
        /// Watchers that came later do not count.
        var last: Int64
    }

    private struct Noted {
        var change: WatchedChange
        var database: OpenDatabase
        var origin: ChangeOrigin
    }

    private let tables: RecordTables
    private let db: Database
    private let level: FeatureLevel
    private let isOn: Bool
    private var noted: [Noted] = []
    /// Of the changes that are noted from now on.
    var origin = ChangeOrigin() {
        // Changes that wait had no user below the level.
        didSet { if level < .exactNotifications { origin.user = nil } }
    }
    /// Of the shard's watchers; nil until it is asked for, and once they have changed.
    private var revision: Int64?

    init(tables: RecordTables, db: Database, level: FeatureLevel) {
        self.tables = tables
        self.db = db
        self.level = level
        isOn = level >= .notifications
    }

    private var outbox: Outbox { Outbox(db: db, level: level) }

    // MARK: Who watches

    private func watchers(of database: OpenDatabase, _ key: DatabaseKey) throws -> DatabaseWatchers {
        let version = DatabaseWatchers.Version(revision: try currentRevision(), schema: database.schema)
        if let known = database.watchers, known.version == version { return known }
        let found = try tables.watchers(of: key, at: version) { try load(of: key, version) }
        database.watchers = found
        return found
    }

    private func currentRevision() throws -> Int64 {
        if let revision { return revision }
        let read = try SQLStatement(cached: "SELECT watchers FROM outbox_self", in: db).first { $0.integer(0) } ?? 0
        revision = read
        return read
    }

    private func load(of key: DatabaseKey, _ version: DatabaseWatchers.Version) throws -> DatabaseWatchers {
        let rows = try SQLStatement(
            cached: """
                SELECT id, body FROM watcher WHERE container = ? AND environment = ? AND scope = ? AND owner = ?
                ORDER BY id
                """, in: db
        ).all(
            .text(key.container), .integer(key.environment.column), .integer(key.scope.column), .text(key.owner)
        ) { (id: $0.integer(0), watcher: try Watcher(decoding: $0.bytes(1))) }
        if rows.isEmpty { return DatabaseWatchers(version: version) }
        let schema = try version.schema.map { try tables.installedSchema($0, in: db) } ?? .none
        var zones: [Watcher] = []
        var queries: [String: QueryWatchers] = [:]
        for (id, watcher) in rows {
            guard let query = watcher.subscription.query else {
                zones.append(watcher)
                continue
            }
            let scope = schema.byName[query.recordType].map { QueryScope(container: key.container, type: $0) }
            let conditions = scope.flatMap { scope in
                try? query.filters.map { filter throws(ServiceError) in try Condition(filter, scope: scope) }
            }
            queries[query.recordType, default: QueryWatchers()].add(
                QueryWatchers.Entry(id: id, watcher: watcher, conditions: conditions))
        }
        return DatabaseWatchers(version: version, zones: zones, queries: queries)
    }

    /// Has a watcher match what comes after.
    func install(_ watcher: Watcher) throws {
        let database = watcher.database
        try SQLStatement(
            cached: """
                INSERT INTO watcher VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (container, environment, scope, owner, user, name) DO UPDATE SET body = excluded.body
                """, in: db
        ).run(
            .text(database.container), .integer(database.environment.column), .integer(database.scope.column),
            .text(database.owner), .text(watcher.subscriber.owner), .text(watcher.subscription.id),
            .blob(watcher.encoded()))
        try revise()
    }

    func remove(watcherOf subscriber: DatabaseKey, scope: Scope, id: String) throws {
        let database = Watcher(
            subscriber: subscriber, home: 0, subscription: Subscription(id: id, scope: scope, kind: .database)
        ).database
        try SQLStatement(
            cached: """
                DELETE FROM watcher WHERE container = ? AND environment = ? AND scope = ? AND owner = ? AND user = ?
                    AND name = ?
                """, in: db
        ).run(
            .text(database.container), .integer(database.environment.column), .integer(database.scope.column),
            .text(database.owner), .text(subscriber.owner), .text(id))
        try revise()
    }

    /// Watchers have come, changed or gone.
    private func revise() throws {
        revision = nil
        try SQLStatement(cached: "UPDATE outbox_self SET watchers = watchers + 1", in: db).run()
    }

    /// Removes a part of those who watch a container; uses up the budget where more is left.
    func remove(container: String, budget: inout Int) throws {
        try SQLStatement(
            cached: "DELETE FROM watcher WHERE id IN (SELECT id FROM watcher WHERE container = ? LIMIT ?)", in: db
        ).run(.text(container), .integer(Int64(budget)))
        guard db.changesCount > 0 else { return }
        budget -= db.changesCount
        try revise()
    }

    // MARK: What has changed

    /// Remembers a change of a record, or of its zone where there is no type, until the command is done.
    func note(
        _ zone: OpenZone, type: String?, _ event: Match.Event = .updated,
        _ record: @autoclosure () -> IndexedRecord? = nil
    ) throws {
        guard isOn else { return }
        let watchers = try watchers(of: zone.database, zone.key.database)
        if watchers.isEmpty { return }
        var change = WatchedChange(zone: zone.key, tag: zone.row.changeTag(zone.row.sequence), type: type)
        change.event = event
        if let type, watchers.queries[type] != nil { change.record = record() }
        noted.append(Noted(change: change, database: zone.database, origin: origin))
    }

    /// How many changes are noted: where a savepoint goes back to.
    var mark: Int { noted.count }

    func forget(after mark: Int) { noted.removeSubrange(mark...) }

    /// Tells those who watch what the current command has changed.
    /// - Parameter time: that of the change, in milliseconds since 1970.
    /// - Returns: what is to be gone on with, in order.
    func tell(time: Int64) throws -> [Leftover] {
        if noted.isEmpty { return [] }
        defer { noted.removeAll() }
        try tellOfZones(time)
        var budget = Self.candidatesMax
        var leftovers: [Leftover] = []
        for noted in noted where noted.change.record != nil {
            let matching = QueryMatching(change: noted.change, origin: noted.origin, time: time)
            // What waits goes first, or a user would hear of a zone's changes in another order.
            let isToWait = try budget <= 0 || !leftovers.isEmpty || Job.areWaiting(.match, in: db)
            let position = isToWait ? 0 : try match(matching, in: noted.database, after: 0, through: .max, &budget)
            guard let position else { continue }
            leftovers.append(Leftover(matching: matching, position: position, last: try lastWatcher()))
        }
        return leftovers
    }

    private func lastWatcher() throws -> Int64 {
        try SQLStatement(cached: "SELECT max(id) FROM watcher", in: db).first { $0.integer(0) } ?? 0
    }

    private func tellOfZones(_ time: Int64) throws {
        struct Source: Hashable {
            var zone: ZoneKey
            var origin: ChangeOrigin
        }
        var seen: Set<Source> = []
        for first in noted where !first.change.zone.isDefault {
            let (zone, origin) = (first.change.zone, first.origin)
            guard seen.insert(Source(zone: zone, origin: origin)).inserted else { continue }
            let changes = noted.filter { $0.change.zone == zone && $0.origin == origin }.map(\.change)
            let types = Set(changes.map(\.type))
            let matching = QueryMatching(change: changes.last ?? first.change, origin: origin, time: time)
            for watcher in try watchers(of: first.database, zone.database).zones
            where watcher.isToHear(of: zone, types: types) {
                try send(matching, to: watcher, record: nil)
            }
        }
    }

    // MARK: What matches

    /// Tells those whose queries a record matches.
    /// - Returns: the row after which somebody has to go on; nil where all were told.
    func match(
        _ matching: QueryMatching, in database: OpenDatabase, after: Int64, through last: Int64, _ budget: inout Int
    ) throws -> Int64? {
        let change = matching.change
        guard let record = change.record, let type = change.type else { return nil }
        guard let watchers = try watchers(of: database, change.zone.database).queries[type] else { return nil }
        let schema = try database.schema.map { try tables.installedSchema($0, in: db) } ?? .none
        let grants = schema.byName[type]?.definition.grants ?? []
        var keyed = KeyedRecord(record, work: QueryWork(bound: .max))
        var position = after
        var fired: [Watcher] = []
        for entry in watchers.candidates(for: record) where entry.id > after && entry.id <= last {
            guard budget > 0 else {
                try endOnce(fired)
                return position
            }
            budget -= 1
            position = entry.id
            let isCreator = record.created.user == entry.watcher.subscriber.owner
            guard entry.watcher.isToHear(of: change), let conditions = entry.conditions,
                change.zone.database.scope == .private || Self.mayBeReadable(grants, isCreator: isCreator),
                conditions.allSatisfy({ $0.holds(&keyed) })
            else { continue }
            try tell(entry.watcher, of: record, type, isCreator: isCreator, matching)
            if entry.watcher.subscription.firesOnce { fired.append(entry.watcher) }
        }
        try endOnce(fired)
        return nil
    }

    private func tell(
        _ watcher: Watcher, of record: IndexedRecord, _ type: String, isCreator: Bool, _ matching: QueryMatching
    ) throws {
        let shown = matching.change.event == .deleted ? [] : watcher.subscription.shownFields
        let told = Match.Record(
            name: record.name, type: type, event: matching.change.event, isCreator: isCreator,
            fields: Fields(record.fields.all.filter { shown.contains($0.name) }))
        try send(matching, to: watcher, record: told)
    }

    private func send(_ matching: QueryMatching, to watcher: Watcher, record: Match.Record?) throws {
        // The names of devices are a user's own: another user's may have the same.
        let isOwn = matching.origin.user == watcher.subscriber.owner || level < .exactNotifications
        let match = Match(
            subscriber: watcher.subscriber, scope: watcher.subscription.scope,
            subscriptionID: watcher.subscription.id, time: matching.time, client: isOwn ? matching.origin.client : nil,
            id: matching.change.notificationID, zone: matching.change.zone, record: record)
        try outbox.send(.notify(match), to: watcher.home)
    }

    private func endOnce(_ fired: [Watcher]) throws {
        for watcher in fired {
            try remove(watcherOf: watcher.subscriber, scope: watcher.subscription.scope, id: watcher.subscription.id)
        }
    }

    /// Whether somebody may read records of a type at all. Custom roles are known where the notification is read.
    private static func mayBeReadable(_ grants: [Grant], isCreator: Bool) -> Bool {
        grants.contains { grant in
            grant.permissions.contains(.read) && (isCreator || grant.role != BuiltInRole.creator.rawValue)
        }
    }
}

/// A change of a record, for those whose queries may match it, and who made it when.
struct QueryMatching {
    var change: WatchedChange
    var origin: ChangeOrigin
    /// Milliseconds since 1970.
    var time: Int64
}

extension QueryMatching: WireMessage {
    static var blank: Self {
        let change = WatchedChange(
            zone: .blank, tag: .blank, type: nil,
            record: IndexedRecord(name: "", sequence: 0, created: .blank, modified: .blank, fields: Fields()))
        return QueryMatching(change: change, origin: ChangeOrigin(), time: 0)
    }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &change.zone)
        try wire.required(2, &change.tag)
        try wire.field(3, &change.type)
        try wire.required(4, &change.event)
        try wire.field(5, &origin.client)
        try wire.field(6, &time)
        try wire.required(7, &record.name)
        try wire.required(8, &record.sequence)
        try wire.required(9, &record.created)
        try wire.required(10, &record.modified)
        try wire.field(11, nested: &record.fields)
        try wire.field(12, &origin.user)
    }

    /// Only changes of records are left over.
    private var record: IndexedRecord {
        get {
            guard let record = change.record else { preconditionFailure("a change of a zone is told of at once") }
            return record
        }
        set { change.record = newValue }
    }
}

extension WatchedChange {
    /// 16 bytes that are the same wherever the change is told of.
    var notificationID: [UInt8] {
        var writer = WireWriter()
        writer.field(1) { zone.encode(to: &$0) }
        writer.field(2) { tag.encode(to: &$0) }
        writer.field(3, type == nil)
        let first = fnv1a(writer.bytes)
        writer.field(4, first)
        let second = fnv1a(writer.bytes)
        return withUnsafeBytes(of: first.bigEndian) { Array($0) } + withUnsafeBytes(of: second.bigEndian) { Array($0) }
    }
}
