import RecordModel

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
