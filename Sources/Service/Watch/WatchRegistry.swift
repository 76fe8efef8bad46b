import KeyValueStore
import RaftCore

/// Names one watch of this node.
struct WatchID: Hashable, Comparable, Sendable {
    var number: UInt64

    static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

/// Why a watch goes on.
package enum WatchWake: Hashable, Sendable {
    /// Its store may have changed since the last look began.
    case changed
    /// The time has come that it asked for.
    case due
    /// What its caller may do may have changed.
    case recheck
    /// The node is stopping, or the watch was given up.
    case closing
}

/// Why a watch may not begin.
enum WatchRefusal: Error, Hashable, Sendable {
    case tooManyOnNode(Int)
    case tooManyOfContainer(Int)
    case tooManyOfUser(Int)
    case closing
}

/// Who waits for which key-value store to change. Pure: events and times go in, and whom to wake comes out.
///
/// A watch looks at its store, and waits; `begin` says that a look begins. What rings between that and the wait is
/// remembered, so a change is either in what the look found or ends the wait: none falls between. Whoever is woken
/// looks again by its token, so a ring too many costs a look, and order and completeness are the feed's.
struct WatchRegistry: Sendable {
    /// Watches at once. One container gets three quarters of them: the last quarter is for others.
    var watchesMax: Int
    /// Watches of one store at once, which is one user's.
    private let watchesPerUserMax: Int
    private(set) var isClosed = false

    private enum Phase: Hashable {
        /// What happened since the look began.
        case looking(changed: Bool, recheck: Bool)
        case waiting(until: UInt64)
    }

    private struct Watch {
        var store: StoreKey
        var group: GroupID
        var phase = Phase.looking(changed: false, recheck: false)
    }

    private var watches: [WatchID: Watch] = [:]
    /// Ascending.
    private var byStore: [StoreKey: [WatchID]] = [:]
    private var countByGroup: [GroupID: Int] = [:]
    private var countByContainer: [String: Int] = [:]
    private var nextNumber: UInt64 = 1

    init(watchesMax: Int, watchesPerUserMax: Int) {
        precondition(watchesMax > 0 && watchesPerUserMax > 0, "room for \(watchesMax), \(watchesPerUserMax) a user")
        self.watchesMax = watchesMax
        self.watchesPerUserMax = watchesPerUserMax
    }

    var count: Int { watches.count }

    /// The groups of which a store is watched, ascending.
    var groups: [GroupID] { countByGroup.keys.sorted() }

    /// The watches of stores.
    private var all: [WatchID] { watches.keys.sorted() }

    /// A watch begins; its first look does, too.
    mutating func enter(_ store: StoreKey, group: GroupID) throws(WatchRefusal) -> WatchID {
        if isClosed { throw .closing }
        guard watches.count < watchesMax else { throw .tooManyOnNode(watchesMax) }
        let containerMax = max(1, watchesMax - watchesMax / 4)
        guard countByContainer[store.container, default: 0] < containerMax else {
            throw .tooManyOfContainer(containerMax)
        }
        guard (byStore[store]?.count ?? 0) < watchesPerUserMax else { throw .tooManyOfUser(watchesPerUserMax) }
        let id = WatchID(number: nextNumber)
        nextNumber += 1
        watches[id] = Watch(store: store, group: group)
        byStore[store, default: []].append(id)
        countByGroup[group, default: 0] += 1
        countByContainer[store.container, default: 0] += 1
        return id
    }

    /// A look begins: it finds whatever rang before.
    mutating func begin(_ id: WatchID) {
        guard case .looking(_, let recheck)? = watches[id]?.phase else { return }
        watches[id]?.phase = .looking(changed: false, recheck: recheck)
    }

    /// The look found nothing.
    /// - Parameter end: when the watch is woken at the latest, on the clock of `ticked`.
    /// - Returns: nil if the watch waits from now on; else why it goes on at once, or that it has ended.
    mutating func wait(_ id: WatchID, until end: UInt64) -> WatchWake? {
        guard !isClosed, let watch = watches[id] else { return .closing }
        guard case .looking(let changed, let recheck) = watch.phase else {
            // A watch that waits already does not look: a mistake of ours, which costs this watch and not the node.
            leave(id)
            return .closing
        }
        if changed || recheck {
            // One thing after the other: a change is still remembered when what the caller may do was looked at.
            watches[id]?.phase = .looking(changed: recheck && changed, recheck: false)
            return recheck ? .recheck : .changed
        }
        watches[id]?.phase = .waiting(until: end)
        return nil
    }

    /// A watch ends. Ending it twice does nothing.
    mutating func leave(_ id: WatchID) {
        guard let watch = watches.removeValue(forKey: id) else { return }
        byStore[watch.store]?.removeAll { $0 == id }
        if byStore[watch.store]?.isEmpty == true { byStore[watch.store] = nil }
        countByGroup[watch.group, default: 1] -= 1
        if countByGroup[watch.group] == 0 { countByGroup[watch.group] = nil }
        countByContainer[watch.store.container, default: 1] -= 1
        if countByContainer[watch.store.container] == 0 { countByContainer[watch.store.container] = nil }
    }

    /// Stores changed.
    /// - Returns: the watches to wake with `.changed`.
    mutating func changed(_ stores: [StoreKey]) -> [WatchID] {
        guard !watches.isEmpty else { return [] }
        return stores.flatMap { store in (byStore[store] ?? []).filter { ring($0, isChange: true) } }
    }

    /// Any store of the group may have changed.
    mutating func everyStoreChanged(in group: GroupID) -> [WatchID] {
        guard countByGroup[group] != nil else { return [] }
        return all.filter { watches[$0]?.group == group && ring($0, isChange: true) }
    }

    /// Stores of the group changed that are known by their hashes.
    mutating func changed(hashes: Set<UInt64>, in group: GroupID) -> [WatchID] {
        guard countByGroup[group] != nil, !hashes.isEmpty else { return [] }
        return all.filter { id in
            guard let watch = watches[id], watch.group == group else { return false }
            return hashes.contains(StoreJournal.hash(of: watch.store)) && ring(id, isChange: true)
        }
    }

    /// What callers may do has changed.
    /// - Returns: the watches to wake with `.recheck`.
    mutating func recheck() -> [WatchID] { all.filter { ring($0, isChange: false) } }

    /// The clock was looked at.
    /// - Returns: the watches to wake with `.due`.
    mutating func ticked(_ now: UInt64) -> [WatchID] {
        all.filter { id in
            guard case .waiting(let end)? = watches[id]?.phase, end <= now else { return false }
            watches[id]?.phase = .looking(changed: false, recheck: false)
            return true
        }
    }

    /// The node stops: nobody waits any more.
    /// - Returns: the watches to wake with `.closing`.
    mutating func close() -> [WatchID] {
        isClosed = true
        return all.filter { id in
            guard case .waiting? = watches[id]?.phase else { return false }
            watches[id]?.phase = .looking(changed: false, recheck: false)
            return true
        }
    }

    /// Ends a wait, or remembers what it would have been ended for.
    /// - Returns: whether the watch was waiting.
    private mutating func ring(_ id: WatchID, isChange: Bool) -> Bool {
        switch watches[id]?.phase {
        case nil: return false
        case .waiting?:
            watches[id]?.phase = .looking(changed: false, recheck: false)
            return true
        case .looking(let changed, let recheck)?:
            watches[id]?.phase = .looking(changed: changed || isChange, recheck: recheck || !isChange)
            return false
        }
    }
}
