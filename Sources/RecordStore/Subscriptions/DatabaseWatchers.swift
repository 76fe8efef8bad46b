import Authorization
import RecordModel
import Synchronization
import Wire

/// Those who watch one database, as the tables have them at a revision, under one version of the schema.
///
/// It follows changes of the tables rather than being read again. Only the thread that applies a shard's commands uses
/// it, so it may change without a lock.
final class DatabaseWatchers: @unchecked Sendable {
    struct Version: Hashable {
        /// Of the database's watchers, or below `FeatureLevel.exactNotifications` of all the shard's.
        var revision: Int64
        var schema: SchemaRow?
        /// What they are found by depends on it.
        var level = FeatureLevel.first
    }

    private(set) var version: Version
    private let schema: InstalledSchema
    /// Of zones and of the whole database, by row.
    private(set) var zones: [WatcherEntry] = []
    /// Of queries, by record type.
    private(set) var queries: [String: QueryWatchers] = [:]

    var isEmpty: Bool { zones.isEmpty && queries.isEmpty }
    var count: Int { queries.values.reduce(zones.count) { $0 + $1.count } }

    /// Of queries in one zone.
    func queries(in zone: ZoneKey) -> [WatcherEntry] {
        queries.values.flatMap { $0.filter { $0.watcher.subscription.isBound(to: zone) } }
    }

    /// - Parameter rows: by row.
    init(version: Version, schema: InstalledSchema, rows: [(id: Int64, watcher: Watcher)]) {
        self.version = version
        self.schema = schema
        for (id, watcher) in rows { add(id, watcher) }
    }

    /// Follows a change of the tables.
    func follow(_ change: WatcherTable.Change, _ watcher: Watcher) {
        version.revision = change.revision
        if let row = change.removed {
            zones.removeAll { $0.id == row }
            for type in queries.keys.sorted() where queries[type]?.remove(row) == true {
                if queries[type]?.isEmpty == true { queries[type] = nil }
            }
        }
        if let row = change.added { add(row, watcher) }
    }

    private func add(_ id: Int64, _ watcher: Watcher) {
        let entry = WatcherEntry(id: id, watcher, schema: schema, at: max(version.level, .exactNotifications))
        if let query = watcher.subscription.query {
            queries[query.recordType, default: QueryWatchers()].add(entry)
        } else {
            zones.insert(entry, at: zones.firstIndex { $0.id > id } ?? zones.count)
        }
    }
}

/// Those who watch databases, as a shard's tables have them; only of databases that are watched.
final class WatcherCache: Sendable {
    private let known = Mutex<[DatabaseKey: DatabaseWatchers]>([:])
    private static let countMax = 256

    /// Those who watch a database, at a version that was read in the same snapshot.
    func watchers(
        of database: DatabaseKey, at version: DatabaseWatchers.Version, load: () throws -> DatabaseWatchers
    ) throws -> DatabaseWatchers {
        if let known = known.withLock({ $0[database] }), known.version == version { return known }
        let loaded = try load()
        known.withLock { known in
            if loaded.isEmpty {
                known[database] = nil
            } else {
                known[database] = nil
                // Of a few the one that is read again with the least work, so that those in disuse go in time.
                if known.count >= Self.countMax,
                    let least = known.prefix(8).min(by: { $0.value.count < $1.value.count })
                {
                    known[least.key] = nil
                }
                known[database] = loaded
            }
        }
        return loaded
    }

    /// Follows a change of the tables.
    func follow(_ change: WatcherTable.Change, _ watcher: Watcher) {
        guard let known = known.withLock({ $0[change.database] }), known.version.revision == change.former
        else { return }
        known.follow(change, watcher)
    }
}

/// A watcher, prepared for matching.
struct WatcherEntry: Sendable {
    /// The row.
    let id: Int64
    /// Without what is not needed to match: there may be many.
    let watcher: Watcher
    /// Nil where the schema lost an index that the query needs: it matches nothing.
    let conditions: [Condition]?
    /// By what a query finds the watcher, and on what.
    let filing: Filing
    let events: [Match.Event]
    /// The fields that its notifications show.
    let shown: Set<String>

    init(id: Int64, _ watcher: Watcher, schema: InstalledSchema, at level: FeatureLevel) {
        self.id = id
        let container = watcher.subscriber.container
        let query = watcher.subscription.query
        let type = query.flatMap { schema.byName[$0.recordType] }
        let trigonometry = level < .ownTrigonometry ? Trigonometry.library : .own
        let scope = type.map { QueryScope(container: container, type: $0, trigonometry: trigonometry) }
        conditions = scope.flatMap { scope in
            try? query?.filters.map { filter throws(ServiceError) in try Condition(filter, scope: scope) }
        }
        let isForCreators = watcher.subscription.scope == .public && type?.definition.grants.areForOthers == false
        filing = Filing(conditions, owner: isForCreators ? watcher.subscriber.owner : nil, at: level)
        events = Match.Event.allCases.filter { event in
            level < .filedSubscriptions || watcher.subscription.firing.contains(event.firing)
        }
        shown = Set(watcher.subscription.shownFields(at: level))
        var kept = watcher
        kept.subscription.query = nil
        kept.subscription.queryJSON = []
        kept.subscription.info = []
        self.watcher = kept
    }
}

extension Watcher {
    /// Whether changes of a custom zone are for the watcher.
    /// - Parameter types: those of the records; nil among them is the zone itself.
    func isToHear(of zone: ZoneKey, types: Set<String?>) -> Bool {
        if let type = subscription.recordType, !types.contains(type) { return false }
        return subscription.kind == .database || subscription.kind == .zone && subscription.isBound(to: zone)
    }

    /// Whether a change of a record is one of those that a query subscription tells of, wherever it matches.
    func isToHear(of change: WatchedChange) -> Bool {
        subscription.firing.contains(change.event.firing)
            && (subscription.zone == nil || subscription.isBound(to: change.zone))
    }
}

extension Subscription {
    /// Whether it looks at one zone alone, which has this name.
    func isBound(to zone: ZoneKey) -> Bool { self.zone.map { $0.utf8.elementsEqual(zone.name.utf8) } ?? false }
}

extension Match.Event {
    /// The setting of subscriptions that tell of it.
    var firing: Subscription.Firing {
        switch self {
        case .created: .create
        case .updated: .update
        case .deleted: .delete
        }
    }
}

extension [Grant] {
    /// Whether anybody but a record's creator may read it. Custom roles are known where the notification is read.
    var areForOthers: Bool {
        contains { $0.permissions.contains(.read) && $0.role != BuiltInRole.creator.rawValue }
    }
}
