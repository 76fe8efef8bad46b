import RecordModel
import Synchronization

/// Those who watch one database, as the tables have them at a revision, under one version of the schema.
///
/// It follows changes of the tables rather than being read again. Only the thread that applies a shard's commands uses
/// it, so it may change without a lock.
final class DatabaseWatchers: @unchecked Sendable {
    struct Version: Hashable {
        /// Of the database's watchers, or below `FeatureLevel.exactNotifications` of all the shard's.
        var revision: Int64
        var schema: SchemaRow?
    }

    private(set) var version: Version
    private let schema: InstalledSchema
    /// Of zones and of the whole database, by row.
    private(set) var zones: [WatcherEntry] = []
    /// Of queries, by record type.
    private(set) var queries: [String: QueryWatchers] = [:]

    var isEmpty: Bool { zones.isEmpty && queries.isEmpty }

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
        let entry = WatcherEntry(id: id, watcher, schema: schema)
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
                if known.count >= Self.countMax { known.remove(at: known.startIndex) }
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
    /// The fields that its notifications show.
    let shown: Set<String>

    init(id: Int64, _ watcher: Watcher, schema: InstalledSchema) {
        self.id = id
        let container = watcher.subscriber.container
        let query = watcher.subscription.query
        let scope = query.flatMap { schema.byName[$0.recordType] }
            .map { QueryScope(container: container, type: $0) }
        conditions = scope.flatMap { scope in
            try? query?.filters.map { filter throws(ServiceError) in try Condition(filter, scope: scope) }
        }
        shown = Set(watcher.subscription.shownFields)
        var kept = watcher
        kept.subscription.query = nil
        kept.subscription.queryJSON = []
        kept.subscription.info = []
        self.watcher = kept
    }
}

/// The subscriptions to queries of one record type.
///
/// Those with a condition that wants one of some keys are found by the record's keys: what does not match costs
/// nothing.
struct QueryWatchers: Sendable {
    private struct Keyed: Sendable {
        var index: InstalledIndex
        /// Rows, ascending.
        var rows: [IndexKey: [Int64]] = [:]
    }

    private var entries: [Int64: WatcherEntry] = [:]
    /// Rows of those that every record may match, ascending.
    private var unkeyed: [Int64] = []
    private var keyed: [Keyed] = []

    var isEmpty: Bool { entries.isEmpty }

    mutating func add(_ entry: WatcherEntry) {
        entries[entry.id] = entry
        guard let conditions = entry.conditions else { return }
        guard let key = conditions.compactMap(\.wantedKeys).first else { return unkeyed.insertSorted(entry.id) }
        let place = place(of: key.index)
        for wanted in key.keys { keyed[place].rows[wanted, default: []].insertSorted(entry.id) }
    }

    private mutating func place(of index: InstalledIndex) -> Int {
        if let place = keyed.firstIndex(where: { $0.index.id == index.id }) { return place }
        keyed.append(Keyed(index: index))
        return keyed.count - 1
    }

    /// - Returns: whether the row was there.
    mutating func remove(_ id: Int64) -> Bool {
        guard let entry = entries.removeValue(forKey: id) else { return false }
        guard let conditions = entry.conditions else { return true }
        guard let key = conditions.compactMap(\.wantedKeys).first else {
            unkeyed.removeSorted(id)
            return true
        }
        let place = place(of: key.index)
        for wanted in key.keys {
            keyed[place].rows[wanted]?.removeSorted(id)
            if keyed[place].rows[wanted]?.isEmpty == true { keyed[place].rows[wanted] = nil }
        }
        if keyed[place].rows.isEmpty { keyed.remove(at: place) }
        return true
    }

    /// The first of those that may match, by row.
    func candidates(for record: IndexedRecord, after: Int64, through last: Int64, limit: Int) -> [WatcherEntry] {
        var rows = unkeyed.part(after: after, through: last, limit: limit)
        for group in keyed {
            for key in record.keys(in: group.index) {
                guard let wanted = group.rows[key] else { continue }
                let more = wanted.part(after: after, through: last, limit: limit)
                rows = Set(rows).union(more).sorted().prefix(limit)
            }
        }
        return rows.compactMap { entries[$0] }
    }
}

extension Condition {
    /// Keys of one index of which a matching record has at least one; nil where it does not ask for some.
    fileprivate var wantedKeys: (index: InstalledIndex, keys: [IndexKey])? {
        guard case .any(let keys) = test, indexes.count == 1 else { return nil }
        return (index, keys)
    }
}

// Ascending rows.
extension [Int64] {
    private func place(of row: Int64) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < row { low = middle + 1 } else { high = middle }
        }
        return low
    }

    fileprivate mutating func insertSorted(_ row: Int64) {
        let place = place(of: row)
        if place == count || self[place] != row { insert(row, at: place) }
    }

    fileprivate mutating func removeSorted(_ row: Int64) {
        let place = place(of: row)
        if place < count && self[place] == row { remove(at: place) }
    }

    fileprivate func part(after: Int64, through last: Int64, limit: Int) -> ArraySlice<Int64> {
        let begin = place(of: after &+ 1)
        let end = last == .max ? count : place(of: last + 1)
        return begin < end ? self[begin..<Swift.min(end, begin + limit)] : []
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
    func isToHear(of change: WatchedChange) -> Bool {
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
