import Cluster
import KeyValueStore
import RaftCore
import RecordModel
import Synchronization

/// Those who wait on this node for key-value stores to change: `WatchRegistry` with tasks in it.
///
/// A wait costs a row of the room and a suspended task, no thread, no disk and no place among the requests that are
/// worked on.
package final class WatchHub: Sendable {
    private struct State {
        var room: WatchRegistry
        var waiting: [WatchID: CheckedContinuation<WatchWake, Never>] = [:]
        var journals: StoreJournals
        var counts = Counts()
    }

    /// What the hub did since the start.
    struct Counts: Sendable {
        var begun = 0
        var refusedOfUser = 0
        var refusedOnNode = 0
        var refusedOfContainer = 0
        var looks = 0
        var pages = 0
    }

    /// The clock is looked at so often, which is how exact time-outs and heartbeats are.
    private static let tickMilliseconds: UInt64 = 250
    /// How long another node's question waits for a change at most.
    private static let journalWaitMilliseconds: UInt64 = 10_000
    /// What callers may do is looked at again so long after it may have changed.
    private static let recheckTicks = 4

    private let state: Mutex<State>
    private let platform: any NodePlatform
    private let ticking: PeriodicTask
    private let isRecheckDue = Atomic<Bool>(false)
    private let ticks = Atomic<Int>(0)

    init(platform: any NodePlatform, watchesMax: Int, watchesPerUserMax: Int) {
        self.platform = platform
        ticking = PeriodicTask(platform: platform)
        state = Mutex(
            State(
                room: WatchRegistry(watchesMax: watchesMax, watchesPerUserMax: watchesPerUserMax),
                journals: StoreJournals(number: max(1, platform.random()))))
    }

    /// Nanoseconds of the node's monotonic clock.
    package var now: UInt64 { platform.clock.now.nanoseconds }

    var counts: (watches: Int, counts: Counts) { state.withLock { ($0.room.count, $0.counts) } }

    /// Whether the node stops.
    package var isClosed: Bool { state.withLock { $0.room.isClosed } }

    /// Leaves room for other requests: watches keep their connections.
    package func fit(toConnections connectionsMax: Int) {
        state.withLock { $0.room.watchesMax = max(1, min($0.room.watchesMax, connectionsMax / 4 * 3)) }
    }

    func start() {
        ticking.start(everyMilliseconds: Self.tickMilliseconds) { [weak self] in self?.tick() }
    }

    private func tick() {
        let now = now
        wake(.due) { $0.ticked(now) }
        answer { $0.ticked(now) }
        let isTurn = ticks.add(1, ordering: .relaxed).newValue % Self.recheckTicks == 0
        if isTurn, isRecheckDue.exchange(false, ordering: .relaxed) { wake(.recheck) { $0.recheck() } }
    }

    /// Ends all waits, for good. Calling it again does nothing.
    package func close() {
        wake(.closing) { $0.close() }
        answer { $0.ticked(.max) }
    }

    func stop() {
        close()
        ticking.stop()
    }

    // MARK: What changes

    /// Takes news of this node's apply threads.
    func hear(_ news: ChangeNews) {
        switch news {
        case .stores(let stores, let group):
            answer { $0.note(in: group) { $0.note(stores) } }
            wake(.changed) { $0.applied(stores, in: group) }
        case .everyStore(let group):
            answer { $0.note(in: group) { $0.noteEverything() } }
            wake(.changed) { $0.everyStoreChanged(in: group) }
        case .directory: isRecheckDue.store(true, ordering: .relaxed)
        }
    }

    /// Tells another node what this node's replica of a group changed since a mark, once there is anything, and that
    /// there is nothing when the time is over.
    func tell(
        of group: GroupID, since mark: StoreJournal.Mark?, withinMilliseconds wait: UInt64,
        _ reply: @escaping StoreJournals.Answer
    ) {
        let now = now
        let end = isClosed ? now : now + min(wait, Self.journalWaitMilliseconds) * 1_000_000
        answer { $0.ask(group, since: mark, until: end, now: now, reply) }
    }

    private func answer(_ event: (inout StoreJournals) -> [@Sendable () -> Void]) {
        for reply in state.withLock({ event(&$0.journals) }) { reply() }
    }

    /// Takes what the leader of a group changed that is another node.
    func hear(_ news: StoreJournal.News, of group: GroupID) {
        wake(.changed) { $0.heard(news.changed, in: group) }
    }

    /// The leader of a group is not heard any more.
    func unfollow(_ group: GroupID) { wake(.changed) { $0.unfollow(group) } }

    var groups: [GroupID] { state.withLock { $0.room.groups } }

    func isWatched(_ group: GroupID) -> Bool { state.withLock { $0.room.isWatched(group) } }

    private func wake(_ reason: WatchWake, _ event: (inout WatchRegistry) -> [WatchID]) {
        let continuations = state.withLock { state in
            event(&state.room).compactMap { state.waiting.removeValue(forKey: $0) }
        }
        for continuation in continuations { continuation.resume(returning: reason) }
    }

    // MARK: Watches

    /// Begins a watch, which ends with the ticket.
    /// - Parameter isOfNode: whether it is for what the node itself does, which no limit keeps out.
    /// - Throws: `TRY_AGAIN_LATER` where a limit is reached, with its name.
    func enter(
        _ store: StoreKey, group: GroupID, isOfNode: Bool = false
    ) throws(RequestFailure) -> WatchTicket {
        let id = try state.withLock { state throws(RequestFailure) in
            do throws(WatchRefusal) {
                let id = try state.room.enter(store, group: group, isOfNode: isOfNode)
                state.counts.begun += 1
                return id
            } catch {
                switch error {
                case .tooManyOfUser: state.counts.refusedOfUser += 1
                case .tooManyOnNode: state.counts.refusedOnNode += 1
                case .tooManyOfContainer: state.counts.refusedOfContainer += 1
                case .closing: break
                }
                throw RequestFailure(error)
            }
        }
        return WatchTicket(id: id, hub: self)
    }

    /// Marks the beginning of a look. It finds all changes up to now, so only later ones are kept for the next wait.
    /// Does nothing where the watch waits or has ended.
    package func begin(_ ticket: WatchTicket) {
        state.withLock { $0.room.begin(ticket.id) }
    }

    func looked() { state.withLock { $0.counts.looks += 1 } }

    func foundPage() { state.withLock { $0.counts.pages += 1 } }

    /// Waits until the store changes, or until something else is to be done.
    /// - Parameter end: as `now`.
    package func wait(_ ticket: WatchTicket, until end: UInt64) async -> WatchWake {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (wake, earlier) = state.withLock { state -> (WatchWake?, CheckedContinuation<WatchWake, Never>?) in
                    if Task.isCancelled { return (.closing, nil) }
                    if let wake = state.room.wait(ticket.id, until: end) {
                        // Where the watch was given up, a task that waits on it is woken too.
                        return (wake, state.waiting.removeValue(forKey: ticket.id))
                    }
                    state.waiting[ticket.id] = continuation
                    return (nil, nil)
                }
                earlier?.resume(returning: .closing)
                if let wake { continuation.resume(returning: wake) }
            }
        } onCancel: {
            leave(ticket.id)
        }
    }

    fileprivate func leave(_ id: WatchID) {
        let continuation = state.withLock { state in
            state.room.leave(id)
            return state.waiting.removeValue(forKey: id)
        }
        continuation?.resume(returning: .closing)
    }
}

/// A watch's place in the hub, which it leaves when nobody holds the ticket any more.
package final class WatchTicket: Sendable {
    let id: WatchID
    private let hub: WatchHub

    fileprivate init(id: WatchID, hub: WatchHub) {
        self.id = id
        self.hub = hub
    }

    /// Ends the watch, where its client has gone away; what waits for it goes on at once.
    package func leave() { hub.leave(id) }

    deinit { hub.leave(id) }
}

extension RequestFailure {
    fileprivate init(_ refusal: WatchRefusal) {
        let error: ServiceError
        var limit: (name: String, max: Int)?
        switch refusal {
        case .tooManyOnNode(let max):
            error = ServiceError.nothingDone(
                "this node has \(max) watches of preferences already; watch on another node", retryAfterSeconds: 5)
            limit = ("watches", max)
        case .tooManyOfContainer(let max):
            error = ServiceError.nothingDone(
                "this container has \(max) watches of preferences on this node already; watch on another node",
                retryAfterSeconds: 5)
            limit = ("watchesPerContainer", max)
        case .tooManyOfUser(let max):
            error = ServiceError.nothingDone(
                "this user has \(max) watches of preferences on this node already; end one first", retryAfterSeconds: 15
            )
            limit = ("watchesPerUser", max)
        case .closing:
            error = ServiceError.nothingDone("this node is stopping; watch on another one", retryAfterSeconds: 0)
        }
        self.init(error)
        if let limit { details = .limit(limit.name, actual: Int64(limit.max) + 1, max: Int64(limit.max)) }
    }
}

extension WatchHub {
    /// Watches that look at their stores at once, and that wait to.
    static let looksMax = 64
    static let queuedLooksMax = 16_384

    /// Lines of the Prometheus text form.
    var lines: [String] {
        let (watches, counts) = counts
        return [
            "# TYPE zonekeeper_watches gauge", "zonekeeper_watches \(watches)",
            "# TYPE zonekeeper_watches_begun_total counter", "zonekeeper_watches_begun_total \(counts.begun)",
            "# TYPE zonekeeper_watches_refused_total counter",
            "zonekeeper_watches_refused_total{limit=\"watches\"} \(counts.refusedOnNode)",
            "zonekeeper_watches_refused_total{limit=\"watchesPerUser\"} \(counts.refusedOfUser)",
            "zonekeeper_watches_refused_total{limit=\"watchesPerContainer\"} \(counts.refusedOfContainer)",
            "# TYPE zonekeeper_watch_looks_total counter", "zonekeeper_watch_looks_total \(counts.looks)",
            "# TYPE zonekeeper_watch_pages_total counter", "zonekeeper_watch_pages_total \(counts.pages)",
        ]
    }
}
