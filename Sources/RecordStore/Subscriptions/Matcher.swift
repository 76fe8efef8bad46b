import Authorization
import GRDB
import RecordModel
import Wire

/// Tells those who watch of what the commands of one transaction change.
///
/// Changes are noted while a command is applied, and told of once it is done; what a savepoint takes back is forgotten.
final class Matcher {
    /// What one command may cost: a subscription that was looked at is 1. The rest is left to maintenance.
    private let costMax: Int
    /// The same of one that is told: to look at one is much less work.
    private let costOfTelling: Int
    /// Steps of `QueryWork` that are within that 1; each so many more are another 1. So what conditions charge decides
    /// where a part of matching ends, and changes with a feature level only.
    private static let stepsOfLooking = 50
    /// What of `costMax` maintenance has to itself, where it does not count in rows.
    static let maintenanceCostMax = 40_000
    /// Characters of a text that a notification shows, as Apple's may cut them, and bytes of all values together.
    private static let shownCharactersMax = 100
    private static let shownBytesMax = 4_096

    /// Where matching a change has to be gone on with.
    struct Stop {
        /// The row of the watcher that was looked at last.
        var position: Int64
        /// A destination for which too much waits; nil where the command has looked at enough.
        var waitsFor: UInt64?
    }

    /// A change that somebody has to go on with.
    struct Leftover {
        var change: QueuedChange
        var stop: Stop
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
    private let outbox: Outbox
    private let table: WatcherTable
    private var noted: [Noted] = []
    /// Of the changes that are noted from now on.
    var origin = ChangeOrigin() {
        // Changes that wait had no user below the level.
        didSet { if level < .exactNotifications { origin.user = nil } }
    }
    /// Grows whenever watchers have changed by this transaction.
    private var revision = 0

    init(tables: RecordTables, db: Database, level: FeatureLevel) {
        self.tables = tables
        self.db = db
        self.level = level
        isOn = level >= .notifications
        (costMax, costOfTelling) = level >= .filedSubscriptions ? (20_000, 20) : (1_000, 1)
        outbox = Outbox(db: db, level: level)
        table = WatcherTable(db: db, level: level)
    }

    // MARK: Who watches

    private func watchers(of database: OpenDatabase, _ key: DatabaseKey) throws -> WatchersOfDatabase {
        if let known = database.watchers, known.revision == revision,
            known.found.own.version.schema == database.schema
        {
            return known.found
        }
        var found = WatchersOfDatabase(own: try watchers(of: key, under: database))
        if key.scope == .private, level >= .webhooks {
            found.ofEveryOwner = try watchers(of: key.ofEveryOwner, under: database)
        }
        database.watchers = (revision, found)
        return found
    }

    private func watchers(of key: DatabaseKey, under database: OpenDatabase) throws -> DatabaseWatchers {
        var version = DatabaseWatchers.Version(revision: try table.revision(of: key), schema: database.schema)
        version.level = level
        return try tables.watchers.watchers(of: key, at: version) {
            let isUnwatched = version.revision == 0 && level >= .exactNotifications
            let rows = try isUnwatched ? [] : table.all(of: key)
            let schema = try rows.isEmpty ? nil : version.schema.map { try tables.installedSchema($0, in: db) }
            return DatabaseWatchers(version: version, schema: schema ?? .none, rows: rows)
        }
    }

    /// Has a watcher match what comes after.
    func install(_ watcher: Watcher) throws { follow(try table.install(watcher), watcher) }

    func remove(watcherOf subscriber: DatabaseKey, scope: Scope, id: String) throws {
        let watcher = Watcher(
            subscriber: subscriber, home: 0, subscription: Subscription(id: id, scope: scope, kind: .database))
        follow(try table.remove(watcher), watcher)
    }

    private func follow(_ change: WatcherTable.Change?, _ watcher: Watcher) {
        guard let change else { return }
        revision += 1
        tables.watchers.follow(change, watcher)
    }

    /// Removes a part of those who watch a container; uses up the budget where more is left.
    func remove(container: String, budget: inout Int) throws {
        revision += 1
        try table.remove(container: container, budget: &budget)
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
        if let type, watchers.own.queries[type] != nil { change.record = record() }
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
        var budget = costMax
        var leftovers: [Leftover] = []
        for (change, database) in changedZones(at: time) + changedRecords(at: time) {
            // What waits goes first, or a user would hear of a zone's changes in another order.
            let isToWait = try budget <= 0 || isBehind(leftovers, change) || isBehindOthers(change)
            if try isToWait && level >= .filedSubscriptions && !mayConcernAnybody(change, in: database) { continue }
            let stop = try isToWait ? Stop(position: 0) : match(change, in: database, after: 0, through: .max, &budget)
            guard let stop else { continue }
            leftovers.append(Leftover(change: change, stop: stop, last: try lastWatcher()))
        }
        return leftovers
    }

    private func isBehind(_ leftovers: [Leftover], _ change: QueuedChange) -> Bool {
        level < .filedSubscriptions
            ? !leftovers.isEmpty : leftovers.contains { $0.change.zone.database == change.zone.database }
    }

    private func isBehindOthers(_ change: QueuedChange) throws -> Bool {
        if level >= .exactNotifications {
            return try MatchingQueue(db: db, level: level).isWaiting(before: change.zone.database)
        }
        if case .zone = change { return false }
        return try Job.areWaiting(.match, in: db)
    }

    private func lastWatcher() throws -> Int64 {
        if level >= .exactNotifications { return try table.lastNumber() }
        return try db.first("SELECT max(id) FROM watcher") { $0.integer(0) } ?? 0
    }

    private func changedRecords(at time: Int64) -> [(QueuedChange, OpenDatabase)] {
        noted.filter { $0.change.record != nil }.map { noted in
            (.record(QueryMatching(change: noted.change, origin: noted.origin, time: time)), noted.database)
        }
    }

    /// The custom zones that were changed, once for each device.
    private func changedZones(at time: Int64) -> [(QueuedChange, OpenDatabase)] {
        struct Source: Hashable {
            var zone: ZoneKey
            var origin: ChangeOrigin
        }
        var seen: [Source: Int] = [:]
        var found: [(matching: ZoneMatching, database: OpenDatabase)] = []
        for noted in noted where !noted.change.zone.isDefault {
            var change = noted.change
            change.record = nil
            let source = Source(zone: change.zone, origin: noted.origin)
            let place = seen[source] ?? found.count
            if place == found.count {
                seen[source] = place
                found.append(
                    (ZoneMatching(change: change, types: [], origin: noted.origin, time: time), noted.database))
            }
            found[place].matching.change = change
            found[place].matching.types.insert(change.type)
        }
        return found.map { (.zone($0.matching), $0.database) }
    }

    // MARK: What matches

    /// Whether there is anybody to look at for a change: if not, it need not wait for its turn.
    private func mayConcernAnybody(_ change: QueuedChange, in database: OpenDatabase) throws -> Bool {
        let watchers = try watchers(of: database, change.zone.database)
        switch change {
        case .zone(let matching):
            return watchers.all(for: matching).contains { !effects(of: matching, on: $0.watcher).isEmpty }
        case .record(let matching):
            guard let record = matching.change.record, let type = matching.change.type else { return false }
            var keyed = KeyedRecord(record, work: QueryWork(bound: .max))
            let first = watchers.own.queries[type]?.candidates(for: &keyed, matching.change.event, limit: 1)
            return first?.isEmpty == false
        }
    }

    /// Tells those who are to hear of a change.
    /// - Returns: where somebody has to go on; nil where all were told.
    func match(
        _ change: QueuedChange, in database: OpenDatabase, after: Int64, through last: Int64, _ budget: inout Int
    ) throws -> Stop? {
        let watchers = try watchers(of: database, change.zone.database)
        switch change {
        case .zone(let matching): return try match(matching, watchers, after: after, through: last, &budget)
        case .record(let matching):
            guard let record = matching.change.record, let type = matching.change.type,
                let queries = watchers.own.queries[type]
            else { return nil }
            let schema = try database.schema.map { try tables.installedSchema($0, in: db) } ?? .none
            let test = RecordTest(matching: matching, grants: schema.byName[type]?.definition.grants ?? [])
            var found = KeyedRecord(record, work: QueryWork(bound: .max))
            let rows = queries.candidates(
                for: &found, matching.change.event, after: after, through: last, limit: max(budget, 0) + 1)
            // One of its own: what is charged must not depend on how candidates were found.
            let work = QueryWork(bound: .max)
            var keyed = KeyedRecord(record, work: work)
            return try match(rows.lazy.compactMap { queries[$0] }, after: after, &budget, counting: work) { entry in
                guard test.mayBeTold(to: entry.watcher), let conditions = entry.conditions,
                    conditions.allSatisfy({ $0.holds(&keyed) })
                else { return [] }
                return [.notify(self.told(matching, to: entry, record, type))]
            }
        }
    }

    private func match(
        _ matching: ZoneMatching, _ watchers: WatchersOfDatabase, after: Int64, through last: Int64,
        _ budget: inout Int
    ) throws -> Stop? {
        let entries = watchers.all(for: matching).filter { $0.id > after && $0.id <= last }
        // Below the level all are told at once.
        var unbound = Int.max
        func effects(_ entry: WatcherEntry) -> [Effect] { self.effects(of: matching, on: entry.watcher) }
        guard level >= .exactNotifications else { return try match(entries, after: after, &unbound, effects) }
        return try match(entries, after: after, &budget, effects)
    }

    /// What a watcher's home hears of a change of a zone. What ends with the zone is told of that before.
    private func effects(of matching: ZoneMatching, on watcher: Watcher) -> [Effect] {
        let zone = matching.change.zone
        var effects: [Effect] = []
        if watcher.isToHear(of: zone, types: matching.types) {
            effects.append(.notify(match(matching.change, matching.origin, matching.time, for: watcher)))
        }
        if matching.endsZone, watcher.subscription.isBound(to: zone) {
            let life = matching.change.tag.incarnation
            effects.append(.end(subscriber: watcher.subscriber, zone, life: life, id: watcher.subscription.id))
        }
        return effects
    }

    /// Tells some, by row.
    /// - Parameters:
    ///   - work: what finding out the effects charges.
    ///   - effects: those of the change on the home of one; none where it does not concern that one.
    private func match(
        _ entries: some Sequence<WatcherEntry>, after: Int64, _ budget: inout Int, counting work: QueryWork? = nil,
        _ effects: (WatcherEntry) -> [Effect]
    ) throws -> Stop? {
        var stop = Stop(position: after)
        var fired: [Watcher] = []
        for entry in entries {
            guard budget > 0 else {
                try endOnce(fired)
                return stop
            }
            let before = work?.spent ?? 0
            let effects = effects(entry)
            if let work, level >= .weighedSubscriptions { budget -= (work.spent - before) / Self.stepsOfLooking }
            if !effects.isEmpty {
                guard try level < .exactNotifications || outbox.hasRoom(for: entry.watcher.home) else {
                    stop.waitsFor = entry.watcher.home
                    try endOnce(fired)
                    return stop
                }
                for effect in effects { try outbox.send(effect, to: entry.watcher.home) }
                if entry.watcher.subscription.firesOnce, case .notify = effects[0] { fired.append(entry.watcher) }
                budget -= costOfTelling
            } else {
                budget -= 1
            }
            stop.position = entry.id
        }
        try endOnce(fired)
        return nil
    }

    private func told(
        _ matching: QueryMatching, to entry: WatcherEntry, _ record: IndexedRecord, _ type: String
    ) -> Match {
        var match = match(matching.change, matching.origin, matching.time, for: entry.watcher)
        match.record = Match.Record(
            name: record.name, type: type, event: matching.change.event,
            isCreator: record.created.user == entry.watcher.subscriber.owner,
            fields: matching.change.event == .deleted ? Fields() : shown(entry.shown, of: record.fields))
        return match
    }

    private func match(
        _ change: WatchedChange, _ origin: ChangeOrigin, _ time: Int64, for watcher: Watcher
    ) -> Match {
        // The names of devices are a user's own: another user's may have the same.
        let isOwn = origin.user == watcher.subscriber.owner || level < .exactNotifications
        var match = Match(
            subscriber: watcher.subscriber, scope: watcher.subscription.scope,
            subscriptionID: watcher.subscription.id, time: time, client: isOwn ? origin.client : nil,
            id: change.notificationID(at: level), zone: change.zone, record: nil)
        match.generation = watcher.generation
        return match
    }

    /// The fields that a notification shows, as far as they fit in one.
    private func shown(_ names: Set<String>, of fields: Fields) -> Fields {
        if names.isEmpty { return Fields() }
        let wanted = fields.all.filter { names.contains($0.name) }
        guard level >= .exactNotifications else { return Fields(wanted) }
        var bytes = 0
        var cut: [Fields.Field] = []
        for field in wanted {
            guard let value = field.value.shown(charactersMax: Self.shownCharactersMax) else { continue }
            guard bytes + value.sizeBytes <= Self.shownBytesMax else { continue }
            bytes += value.sizeBytes
            cut.append(Fields.Field(name: field.name, value: value))
        }
        return Fields(cut)
    }

    private func endOnce(_ fired: [Watcher]) throws {
        for watcher in fired {
            try remove(watcherOf: watcher.subscriber, scope: watcher.subscription.scope, id: watcher.subscription.id)
        }
    }
}

/// Whether a change of a record is for a watcher, wherever it matches.
private struct RecordTest {
    let matching: QueryMatching
    /// Of the record's type.
    let grants: [Grant]

    func mayBeTold(to watcher: Watcher) -> Bool {
        let isCreator = matching.change.record?.created.user == watcher.subscriber.owner
        return watcher.isToHear(of: matching.change)
            && (matching.change.zone.database.scope == .private || grants.areForOthers
                || isCreator && grants.contains { $0.permissions.contains(.read) })
    }
}

extension FieldValue {
    /// What a notification shows of a value; nil where it shows nothing of its kind.
    fileprivate func shown(charactersMax: Int) -> FieldValue? {
        switch self {
        // Code points: where characters end depends on the version of Unicode, which replicas need not share.
        case .string(let text): .string(String(text.unicodeScalars.prefix(charactersMax)))
        case .int64, .timestamp, .double, .location, .reference: self
        case .bytes, .asset, .list, .encrypted, .sealed: nil
        }
    }
}
