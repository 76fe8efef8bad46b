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
    /// By the hashes of their stores, ascending.
    private var byStore: [UInt64: [WatchID]] = [:]
    private var countByGroup: [GroupID: Int] = [:]
    private var countByContainer: [String: Int] = [:]
    private var nextNumber: UInt64 = 1
    /// Groups of which another node, their leader, tells what changes: what this node's own replica applies, a moment
    /// later, is no news.
    private var followed: Set<GroupID> = []

    init(watchesMax: Int, watchesPerUserMax: Int) {
        precondition(watchesMax > 0 && watchesPerUserMax > 0, "room for \(watchesMax), \(watchesPerUserMax) a user")
        self.watchesMax = watchesMax
        self.watchesPerUserMax = watchesPerUserMax
    }

    var count: Int { watches.count }

    /// The groups of which a store is watched, ascending.
    var groups: [GroupID] { countByGroup.keys.sorted() }

    func isWatched(_ group: GroupID) -> Bool { countByGroup[group] != nil }

    /// The watches of a store, ascending.
    private func ids(of store: StoreKey) -> [WatchID] {
        (byStore[StoreJournal.hash(of: store)] ?? []).filter { watches[$0]?.store == store }
    }

    /// Those of all watches that an event concerns, ascending.
    private func all(where isMeant: (Watch) -> Bool) -> [WatchID] {
        watches.filter { isMeant($0.value) }.keys.sorted()
    }

    /// A watch begins; its first look does, too.
    /// - Parameter isOfNode: whether it is for what the node itself does, which finds a place always.
    mutating func enter(
        _ store: StoreKey, group: GroupID, isOfNode: Bool = false
    ) throws(WatchRefusal) -> WatchID {
        if isClosed { throw .closing }
        let hash = StoreJournal.hash(of: store)
        if !isOfNode { try requireRoom(for: store, hash) }
        let id = WatchID(number: nextNumber)
        nextNumber += 1
        watches[id] = Watch(store: store, group: group)
        byStore[hash, default: []].append(id)
        countByGroup[group, default: 0] += 1
        countByContainer[store.container, default: 0] += 1
        return id
    }

    private func requireRoom(for store: StoreKey, _ hash: UInt64) throws(WatchRefusal) {
        guard watches.count < watchesMax else { throw .tooManyOnNode(watchesMax) }
        let containerMax = max(1, watchesMax - watchesMax / 4)
        guard countByContainer[store.container, default: 0] < containerMax else {
            throw .tooManyOfContainer(containerMax)
        }
        // Another store may have the same hash, so only then they are told apart.
        if let ofHash = byStore[hash], ofHash.count >= watchesPerUserMax {
            guard ids(of: store).count < watchesPerUserMax else { throw .tooManyOfUser(watchesPerUserMax) }
        }
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
        let hash = StoreJournal.hash(of: watch.store)
        byStore[hash]?.removeAll { $0 == id }
        if byStore[hash]?.isEmpty == true { byStore[hash] = nil }
        countByGroup[watch.group, default: 1] -= 1
        if countByGroup[watch.group] == 0 { countByGroup[watch.group] = nil }
        countByContainer[watch.store.container, default: 1] -= 1
        if countByContainer[watch.store.container] == 0 { countByContainer[watch.store.container] = nil }
    }

    /// Stores changed.
    /// - Returns: the watches to wake with `.changed`.
    mutating func changed(_ stores: [StoreKey]) -> [WatchID] {
        guard !watches.isEmpty else { return [] }
        return stores.flatMap { store in ids(of: store).filter { ring($0, isChange: true) } }
    }

    /// This node's replica of a group changed stores.
    mutating func applied(_ stores: [StoreKey], in group: GroupID) -> [WatchID] {
        followed.contains(group) ? [] : changed(stores)
    }

    /// Any store of the group may have changed.
    mutating func everyStoreChanged(in group: GroupID) -> [WatchID] {
        guard isWatched(group) else { return [] }
        return all { $0.group == group }.filter { ring($0, isChange: true) }
    }

    /// The leader of a group, another node, told which stores changed since it last did.
    /// - Parameter hashes: of the stores; nil where any may have.
    mutating func heard(_ hashes: [UInt64]?, in group: GroupID) -> [WatchID] {
        let isNew = followed.insert(group).inserted
        guard let hashes, !isNew else { return everyStoreChanged(in: group) }
        return hashes.flatMap { hash in
            (byStore[hash] ?? []).filter { watches[$0]?.group == group && ring($0, isChange: true) }
        }
    }

    /// The leader of a group is not heard any more: the last that it had to tell may not have come.
    mutating func unfollow(_ group: GroupID) -> [WatchID] {
        followed.remove(group) == nil ? [] : everyStoreChanged(in: group)
    }

    /// What callers may do has changed.
    /// - Returns: the watches to wake with `.recheck`.
    mutating func recheck() -> [WatchID] { all { _ in true }.filter { ring($0, isChange: false) } }

    /// The clock was looked at.
    /// - Returns: the watches to wake with `.due`.
    mutating func ticked(_ now: UInt64) -> [WatchID] {
        endWaits { end in end <= now }
    }

    /// The node stops: nobody waits any more.
    /// - Returns: the watches to wake with `.closing`.
    mutating func close() -> [WatchID] {
        isClosed = true
        return endWaits { _ in true }
    }

    private mutating func endWaits(until isOver: (UInt64) -> Bool) -> [WatchID] {
        let ended = all { watch in
            guard case .waiting(let end) = watch.phase else { return false }
            return isOver(end)
        }
        for id in ended { watches[id]?.phase = .looking(changed: false, recheck: false) }
        return ended
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
