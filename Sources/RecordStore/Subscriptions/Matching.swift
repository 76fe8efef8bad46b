import Authorization
import GRDB
import RecordModel
import Wire

/// A change of a zone or a record by the command at hand, in a database that somebody watches.
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

/// Those who watch one database, as the tables have them at a revision, under one version of the schema.
final class DatabaseWatchers: Sendable {
    struct Version: Hashable {
        /// Grows whenever a watcher of the shard comes, changes or goes.
        var revision: Int64
        var schema: SchemaRow?
    }

    let version: Version
    /// Of zones and of the whole database, by user and name.
    let zones: [Watcher]
    /// Of queries, by record type.
    let queries: [String: QueryWatchers]

    var isEmpty: Bool { zones.isEmpty && queries.isEmpty }

    init(version: Version, zones: [Watcher] = [], queries: [String: QueryWatchers] = [:]) {
        self.version = version
        self.zones = zones
        self.queries = queries
    }
}

/// The subscriptions to queries of one record type.
///
/// Those with a condition that wants one of some keys are found by the record's keys: what does not match costs
/// nothing.
struct QueryWatchers: Sendable {
    struct Entry: Sendable {
        /// The row.
        var id: Int64
        var watcher: Watcher
        /// Nil where the schema lost an index that the query needs: it matches nothing.
        var conditions: [Condition]?
    }

    private struct Keyed: Sendable {
        var index: InstalledIndex
        var places: [IndexKey: [Int]] = [:]
    }

    /// By row.
    private(set) var entries: [Entry] = []
    private var unkeyed: [Int] = []
    private var keyed: [Keyed] = []

    /// Takes one whose row comes after those of all that were taken.
    mutating func add(_ entry: Entry) {
        let place = entries.count
        entries.append(entry)
        guard let conditions = entry.conditions else { return }
        for condition in conditions {
            guard case .any(let keys) = condition.test, condition.indexes.count == 1 else { continue }
            if !keyed.contains(where: { $0.index.id == condition.index.id }) {
                keyed.append(Keyed(index: condition.index))
            }
            guard let row = keyed.firstIndex(where: { $0.index.id == condition.index.id }) else { continue }
            for key in keys { keyed[row].places[key, default: []].append(place) }
            return
        }
        unkeyed.append(place)
    }

    /// Those that may match, by row.
    func candidates(for record: IndexedRecord) -> [Entry] {
        if keyed.isEmpty { return unkeyed.map { entries[$0] } }
        var places = Set(unkeyed)
        for group in keyed {
            for key in record.keys(in: group.index) { places.formUnion(group.places[key] ?? []) }
        }
        return places.sorted().map { entries[$0] }
    }
}

extension RecordTransaction {
    /// Subscriptions to queries that one command looks at, of those that may match; the rest is left to maintenance.
    static let candidatesMax = 1_000

    func watchers(of database: OpenDatabase, _ key: DatabaseKey) throws -> DatabaseWatchers {
        let version = DatabaseWatchers.Version(revision: try currentWatcherRevision(), schema: database.schema)
        if let known = database.watchers, known.version == version { return known }
        let found = try tables.watchers(of: key, at: version) { try loadWatchers(of: key, version) }
        database.watchers = found
        return found
    }

    private func currentWatcherRevision() throws -> Int64 {
        if let watcherRevision { return watcherRevision }
        let revision = try SQLStatement(cached: "SELECT watchers FROM outbox_self", in: db).first { $0.integer(0) } ?? 0
        watcherRevision = revision
        return revision
    }

    private func loadWatchers(of key: DatabaseKey, _ version: DatabaseWatchers.Version) throws -> DatabaseWatchers {
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
        try reviseWatchers()
    }

    func removeWatcher(of subscriber: DatabaseKey, scope: Scope, id: String) throws {
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
        try reviseWatchers()
    }

    /// Watchers have come, changed or gone.
    func reviseWatchers() throws {
        watcherRevision = nil
        try SQLStatement(cached: "UPDATE outbox_self SET watchers = watchers + 1", in: db).run()
    }

    /// Remembers a change of a record, or of its zone where there is no type, until the command is done.
    func noteChange(
        of zone: OpenZone, type: String?, _ event: Match.Event = .updated,
        _ record: @autoclosure () -> IndexedRecord? = nil
    ) throws {
        guard level >= .notifications else { return }
        let watchers = try watchers(of: zone.database, zone.key.database)
        if watchers.isEmpty { return }
        var change = WatchedChange(zone: zone.key, tag: zone.row.changeTag(zone.row.sequence), type: type)
        change.event = event
        if let type, watchers.queries[type] != nil { change.record = record() }
        watchedChanges.append(change)
    }

    /// Tells those who watch what the command at hand has changed.
    /// - Parameter client: the device that asked for it.
    func tellWatchers(client: String?) throws {
        defer { watchedChanges.removeAll() }
        var seen: Set<ZoneKey> = []
        for change in watchedChanges where !change.zone.isDefault && seen.insert(change.zone).inserted {
            let types = Set(watchedChanges.filter { $0.zone == change.zone }.map(\.type))
            let last = watchedChanges.last { $0.zone == change.zone } ?? change
            for watcher in try watchers(of: openDatabase(change.zone.database), change.zone.database).zones
            where watcher.isToHear(of: change.zone, types: types) {
                try outbox.send(.notify(match(last, watcher, client, record: nil)), to: watcher.home)
            }
        }
        var budget = Self.candidatesMax
        for change in watchedChanges where change.record != nil {
            let job = QueryMatching(change: change, client: client, time: stamp)
            // What waits goes first, or a user would hear of a zone's changes in another order.
            let isWaiting = try Job.areWaiting(.match, in: db)
            let position = isWaiting || budget <= 0 ? 0 : try matchQueries(job, after: 0, through: .max, &budget)
            if let position { try leave(job, after: position) }
        }
    }

    private func match(
        _ change: WatchedChange, _ watcher: Watcher, _ client: String?, record: Match.Record?
    ) -> Match {
        Match(
            subscriber: watcher.subscriber, scope: watcher.subscription.scope,
            subscriptionID: watcher.subscription.id, time: stamp, client: client, id: change.notificationID,
            zone: change.zone, record: record)
    }

    /// Tells those whose queries a record matches.
    /// - Returns: the row after which somebody has to go on; nil where all were told.
    private func matchQueries(
        _ job: QueryMatching, after: Int64, through last: Int64, _ budget: inout Int
    ) throws -> Int64? {
        let change = job.change
        guard let record = change.record, let type = change.type else { return nil }
        let database = try openDatabase(change.zone.database)
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
            try tell(entry.watcher, of: record, type, isCreator: isCreator, job)
            if entry.watcher.subscription.firesOnce { fired.append(entry.watcher) }
        }
        try endOnce(fired)
        return nil
    }

    private func tell(
        _ watcher: Watcher, of record: IndexedRecord, _ type: String, isCreator: Bool, _ job: QueryMatching
    ) throws {
        let shown = job.change.event == .deleted ? [] : watcher.subscription.shownFields
        let told = Match.Record(
            name: record.name, type: type, event: job.change.event, isCreator: isCreator,
            fields: Fields(record.fields.all.filter { shown.contains($0.name) }))
        var match = match(job.change, watcher, job.client, record: told)
        match.time = job.time
        try outbox.send(.notify(match), to: watcher.home)
    }

    private func endOnce(_ fired: [Watcher]) throws {
        for watcher in fired {
            try removeWatcher(
                of: watcher.subscriber, scope: watcher.subscription.scope, id: watcher.subscription.id)
        }
    }

    /// Whether somebody may read records of a type at all. Custom roles are known where the notification is read.
    private static func mayBeReadable(_ grants: [Grant], isCreator: Bool) -> Bool {
        grants.contains { grant in
            grant.permissions.contains(.read) && (isCreator || grant.role != BuiltInRole.creator.rawValue)
        }
    }

    // MARK: What is left to maintenance

    private func leave(_ job: QueryMatching, after position: Int64) throws {
        let last = try SQLStatement(cached: "SELECT max(id) FROM watcher", in: db).first { $0.integer(0) } ?? 0
        let id = try addJob(.match, subject: 0, body: job.encoded(), last: last)
        if position > 0 {
            try SQLStatement(cached: "UPDATE job SET position = ? WHERE id = ?", in: db)
                .run(.integer(position), .integer(id))
        }
    }

    /// Goes on with telling those whose queries match a record.
    func matchMore(_ job: Job, budget: Int) throws -> Int {
        var left = budget
        let body = try QueryMatching(decoding: job.body)
        if let position = try matchQueries(body, after: job.position, through: job.last, &left) {
            try advance(job, to: position)
        } else {
            try end(job)
        }
        return max(budget - left, 1)
    }

    /// After a restore: the copies come again from the homes of those who watch.
    static func restartSubscriptions(incarnation: Int64, in db: Database) throws {
        let outbox = Outbox(db: db)
        guard try outbox.begin(incarnation: incarnation) else { return }
        try SQLStatement(cached: "DELETE FROM watcher", in: db).run()
        try SQLStatement(cached: "UPDATE outbox_self SET watchers = watchers + 1", in: db).run()
        try SQLStatement(cached: "UPDATE subscription SET is_sent = 0", in: db).run()
    }
}

/// A change of a record, for those whose queries may match it.
struct QueryMatching {
    var change: WatchedChange
    var client: String?
    /// Milliseconds since 1970.
    var time: Int64
}

extension QueryMatching: WireCodable {
    func encode(to writer: inout WireWriter) {
        writer.field(1) { change.zone.encode(to: &$0) }
        writer.field(2) { change.tag.encode(to: &$0) }
        if let type = change.type { writer.field(3, type) }
        writer.field(4, change.event.rawValue)
        if let client { writer.field(5, client) }
        writer.field(6, signed: time)
        guard let record = change.record else { return }
        writer.field(7, record.name)
        writer.field(8, signed: record.sequence)
        writer.field(9) { record.created.encode(to: &$0) }
        writer.field(10) { record.modified.encode(to: &$0) }
        writer.field(11) { record.fields.encode(to: &$0) }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var (zone, tag, type, client): (ZoneKey?, ChangeTag?, String?, String?) = (nil, nil, nil, nil)
        var (event, time) = (Match.Event.updated, Int64(0))
        let none = Stamp(timestamp: 0, user: "")
        var record = IndexedRecord(name: "", sequence: 0, created: none, modified: none, fields: Fields())
        while let field = try reader.nextField() {
            switch field {
            case 1: zone = try reader.message()
            case 2: tag = try reader.message()
            case 3: type = try reader.string()
            case 4: event = try reader.choice()
            case 5: client = try reader.string()
            case 6: time = try reader.signed()
            case 7: record.name = try reader.string()
            case 8: record.sequence = try reader.signed()
            case 9: record.created = try reader.message()
            case 10: record.modified = try reader.message()
            case 11: record.fields = try reader.message()
            default: try reader.skip()
            }
        }
        guard let zone, let tag else { throw .missingField(1) }
        self.init(
            change: WatchedChange(zone: zone, tag: tag, type: type, record: record, event: event), client: client,
            time: time)
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

extension Watcher {
    /// Whether changes of a custom zone are for the watcher.
    /// - Parameter types: those of the records; nil among them is the zone itself.
    func isToHear(of zone: ZoneKey, types: Set<String?>) -> Bool {
        if let type = subscription.recordType, !types.contains(type) { return false }
        return subscription.kind == .database || subscription.kind == .zone && isOf(zone)
    }

    /// Whether a change of a record is one of those that a query subscription tells of, wherever it matches.
    fileprivate func isToHear(of change: WatchedChange) -> Bool {
        let firing: Subscription.Firing =
            switch change.event {
            case .created: .create
            case .updated: .update
            case .deleted: .delete
            }
        return subscription.firing.contains(firing) && (subscription.zone == nil || isOf(change.zone))
    }

    private func isOf(_ zone: ZoneKey) -> Bool {
        subscription.zone.map { $0.utf8.elementsEqual(zone.name.utf8) } ?? false
    }
}
