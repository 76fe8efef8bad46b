import Foundation
import ServiceClient
import Synchronization

/// Keeps an app's own data and a private database in step.
///
/// The app adds what it changed to `state`, gives the records when the delegate is asked for a batch, and takes in what
/// others changed as events. The engine fetches and sends in the right order, splits what is too long for a request,
/// keeps the place in the change feeds, and repeats what failed for a while.
///
/// Events come one at a time: the next one waits until the delegate has returned. What an event told, and then the
/// state of the next `stateUpdate`, are to be stored together. An engine that begins with an older state fetches some
/// changes once more, and misses none.
///
/// An engine that syncs by itself makes a subscription to the database, unless the user has one, and fetches when a
/// notification tells of changes. All engines of a user share one connection for that. Without notifications it asks
/// for changes every 30 seconds.
///
/// Differences from Apple's: a shared database is refused by the server, as sharing is not built.
public final class CKSyncEngine: Sendable {
    /// What an engine is made from.
    public struct Configuration: Sendable {
        /// The database, which is private or shared; the default zone takes no part.
        public var database: CKDatabase
        /// The state that the last `stateUpdate` brought; nil at the first start.
        public var stateSerialization: CKSyncEngine.State.Serialization?
        /// Whether the engine fetches and sends by itself; else only when it is told to.
        public var automaticallySync: Bool
        /// The name of the subscription that an engine which syncs by itself makes where the user has none to the whole
        /// database; nil for one of the engine's own.
        public var subscriptionID: CKSubscription.ID?
        private var reference: WeakDelegate

        /// The delegate; the engine does not keep it alive, and does nothing when it is gone.
        public var delegate: (any CKSyncEngineDelegate)? {
            get { reference.delegate }
            set { reference = WeakDelegate(newValue) }
        }

        /// A configuration of an engine that syncs by itself.
        public init(
            database: CKDatabase, stateSerialization: CKSyncEngine.State.Serialization?,
            delegate: any CKSyncEngineDelegate
        ) {
            self.database = database
            self.stateSerialization = stateSerialization
            reference = WeakDelegate(delegate)
            automaticallySync = true
        }
    }

    /// The database that is kept in step.
    public var database: CKDatabase { configuration.database }
    /// What is to be sent, and what is known of the server.
    public let state: State

    private let configuration: Configuration
    private let turns = TurnQueue()
    private let running = Mutex(Running())
    private let clock: SyncClock
    private let observation = Mutex<AccountObservation?>(nil)
    /// Where the delegate is called.
    let delegateExecutor = DelegateExecutor()

    /// What is underway, and when something begins by itself.
    private struct Running: Sendable {
        var schedule = SyncSchedule()
        var timer: Task<Void, Never>?
        /// Fetches and sends by a number of their own.
        var operations: [Int: SharedWork] = [:]
        var lastOperation = 0
        /// The last fetch of everything, until it ends: others that want the same join it.
        var fetch: (number: Int, work: SharedWork, hasBegun: Bool)?
        /// Hears of changes; nil while changes are asked for.
        var listener: SyncListener?
        /// How often listening ended. A listener that was prepared, or tells something, after that counts no more.
        var endings = 0
        /// When it was last seen that there is a subscription; nil before.
        var subscribedAt: SyncClock.Instant?
    }

    /// Makes an engine. One that syncs by itself begins at once.
    public convenience init(_ configuration: Configuration) { self.init(configuration, clock: .system) }

    init(_ configuration: Configuration, clock: SyncClock) {
        self.configuration = configuration
        self.clock = clock
        state = State(configuration.stateSerialization)
        state.observe { [weak self] in
            guard let self else { return }
            schedule { $0.stateChanged(at: $1, hasPending: self.state.hasPending) }
        }
        guard configuration.automaticallySync else { return }
        let observation = ZonekeeperConfiguration.observeAccount { [weak self] change in
            guard let self, database.configured.account.isConcerned(by: change) else { return }
            endListening { $0.listeningEnded(at: $1) }
        }
        self.observation.withLock { $0 = observation }
        schedule { $0.started(at: $1, hasPending: self.state.hasPending) }
    }

    deinit {
        running.withLock { running in
            running.timer?.cancel()
            running.listener?.end()
            for work in running.operations.values { work.cancel() }
        }
    }

    /// Fetches what others changed, and returns when the delegate has handled it. Fetches of everything at the same
    /// time are one; it is cancelled when all tasks that wait for it are.
    /// - Throws: `CKError`; `invalidArguments` where the delegate, or a child task of its own, calls it while it
    ///   handles an event.
    public func fetchChanges(_ options: FetchChangesOptions = FetchChangesOptions()) async throws {
        try refuseInDelegate("fetchChanges")
        try await fetch(FetchChangesContext(reason: .manual, options: options))
    }

    /// Sends what is pending, and returns when the delegate has handled the outcome.
    /// - Throws: `CKError`; `partialFailure` where something could not be sent: the events have said what.
    ///   `invalidArguments` where the delegate, or a child task of its own, calls it while it handles an event.
    public func sendChanges(_ options: SendChangesOptions = SendChangesOptions()) async throws {
        try refuseInDelegate("sendChanges")
        try await send(SendChangesContext(reason: .manual, options: options))
    }

    /// Cancels what is underway, and returns when it has ended. An engine that syncs by itself goes on later. A method
    /// of the delegate that was called is not cancelled: the engine waits for it.
    public func cancelOperations() async {
        let operations = running.withLock { Array($0.operations.values) }
        for work in operations { work.cancel() }
        // The delegate may call this: it would wait for itself.
        if delegateExecutor.isCurrent { return }
        for work in operations { await work.end() }
    }

    private func refuseInDelegate(_ name: String) throws {
        guard delegateExecutor.isCurrent else { return }
        throw CKError(
            .invalidArguments,
            reason: "\(name) was called by the delegate while it handled an event, and would wait for itself: "
                + "return from the event first, or call it in a task of its own, by Task { }")
    }
}

// MARK: - Operations

extension CKSyncEngine {
    /// - Parameter joinsBegun: whether a fetch is good enough that has begun already. Changes that a notification told
    ///   of may have come too late for it.
    private func fetch(_ context: FetchChangesContext, joinsBegun: Bool = true) async throws {
        let isWhole = context.options.isWhole
        let joined = running.withLock { running -> (work: SharedWork, seat: Int)? in
            guard isWhole, let fetch = running.fetch, joinsBegun || !fetch.hasBegun else { return nil }
            return fetch.work.join().map { (fetch.work, $0) }
        }
        if let joined { return try await joined.work.wait(joined.seat) }
        try await run(isWhole: isWhole) { session in
            try await session.fetch(context)
        } ended: {
            $0.fetchEnded($1, at: $2)
        }
    }

    private func send(_ context: SendChangesContext) async throws {
        // Also where it fails: a part may have been sent, and the server tells this process of none of its changes.
        defer { running.withLock { $0.listener }?.tellOthers() }
        try await run(isWhole: false) { session in
            try await session.send(context)
        } ended: {
            [state] in
            $0.sendEnded($1, at: $2, hasPending: state.hasPending)
        }
    }

    /// Runs one operation after those before it. It is cancelled with the tasks that wait for it.
    private func run(
        isWhole: Bool, _ body: @escaping @Sendable (SyncSession) async throws -> Void,
        ended: @escaping @Sendable (inout SyncSchedule, CKError?, SyncClock.Instant) -> Void
    ) async throws {
        let work = SharedWork()
        let seat = running.withLock { running in
            running.lastOperation += 1
            let number = running.lastOperation
            running.operations[number] = work
            if isWhole { running.fetch = (number, work, hasBegun: false) }
            return work.begin { try await self.perform(number, body, ended) }
        }
        try await work.wait(seat)
    }

    private func perform(
        _ number: Int, _ body: @Sendable (SyncSession) async throws -> Void,
        _ ended: @Sendable (inout SyncSchedule, CKError?, SyncClock.Instant) -> Void
    ) async throws {
        var failure: CKError?
        do {
            try await turns.run {
                running.withLock { if $0.fetch?.number == number { $0.fetch?.hasBegun = true } }
                try await body(SyncSession(engine: self, delegate: configuration.delegate))
            }
        } catch {
            failure = error as? CKError ?? ErrorMapping(container: nil).error(error)
        }
        running.withLock { running in
            running.operations[number] = nil
            if running.fetch?.number == number { running.fetch = nil }
        }
        schedule { ended(&$0, failure, $1) }
        if let failure { throw failure }
    }
}

// MARK: - Working by itself

extension CKSyncEngine {
    /// Changes the schedule, and sets the timer for what is next.
    private func schedule(_ change: (inout SyncSchedule, SyncClock.Instant) -> Void) {
        running.withLock { running in
            let now = clock.now()
            change(&running.schedule, now)
            if !configuration.automaticallySync { running.schedule.keepOnlyTelling() }
            running.timer?.cancel()
            guard let next = running.schedule.next else { return running.timer = nil }
            running.timer = Task { [weak self, clock] in
                guard (try? await clock.wait(next)) != nil, let self else { return }
                // In a task of its own: the next change of the schedule cancels this one.
                Task { await self.performDue() }
            }
        }
    }

    private func performDue() async {
        guard configuration.delegate != nil else { return }
        let now = clock.now()
        let due = running.withLock { $0.schedule.takeDue(at: now) }
        // What fails is told by events, and tried again as the schedule says.
        if due.contains(.fetch) {
            try? await fetch(
                FetchChangesContext(reason: .scheduled, options: FetchChangesOptions()), joinsBegun: false)
            await listen()
        }
        if due.contains(.send) {
            try? await send(SendChangesContext(reason: .scheduled, options: SendChangesOptions()))
        }
        if due.contains(.tell) {
            try? await run(isWhole: false) {
                await $0.tellState()
            } ended: { _, _, _ in
            }
        }
        schedule { _, _ in }
    }

    /// Has the engine hear of changes, and looks now and then whether there still is a subscription: without one
    /// nothing is told. Where that fails it is tried after the next fetch.
    private func listen() async {
        let now = clock.now()
        let (isListening, isSubscribed, endings) = running.withLock { running in
            let isSubscribed = running.subscribedAt.map { now - $0 < SyncSchedule.toldFetchInterval } ?? false
            return (running.listener != nil, running.listener != nil && isSubscribed, running.endings)
        }
        guard !isSubscribed, state.current.user != nil else { return }
        let service = configuration.database.configured
        let subscribed = try? await service.subscriptions.subscribe(as: configuration.subscriptionID)
        guard let isNew = subscribed else { return }
        running.withLock { $0.subscribedAt = now }
        if isListening {
            // Of what changed before there was one nothing was told.
            if isNew { schedule { $0.fetchWanted(at: $1) } }
            return
        }
        guard let listener = try? await SyncListener(service, since: state.current.notificationToken) else { return }
        let isCurrent = running.withLock { running in
            guard running.listener == nil, running.endings == endings else { return false }
            running.listener = listener
            state.note(notificationToken: listener.start)
            listener.begin { [weak self] event in self?.heard(event, endings) }
            return true
        }
        if isCurrent { schedule { $0.listening(at: $1) } }
    }

    /// - Parameter endings: how often listening had ended when the listener that tells this began.
    private func heard(_ event: SyncListener.Event, _ endings: Int) {
        let isCurrent = running.withLock { running in
            guard running.endings == endings else { return false }
            switch event {
            case .moved(let token): state.note(notificationToken: token)
            // A listener that begins again does so at the end, and a fetch of everything follows.
            case .ended: state.note(notificationToken: nil)
            case .changed: break
            }
            return true
        }
        guard isCurrent else { return }
        switch event {
        case .moved: break
        case .changed: schedule { $0.fetchWanted(at: $1) }
        case .ended: endListening { $0.listeningFailed(at: $1) }
        }
    }

    private func endListening(_ change: (inout SyncSchedule, SyncClock.Instant) -> Void) {
        let listener = running.withLock { running in
            defer { (running.listener, running.endings) = (nil, running.endings + 1) }
            return running.listener
        }
        listener?.end()
        schedule(change)
    }
}

/// What an app does for its engine.
///
/// No method may call `fetchChanges` or `sendChanges` and wait for it, nor may a child task of it (`async let`, a task
/// group): the engine waits for the method. Such calls throw. A task that is begun by `Task { }` may call them.
public protocol CKSyncEngineDelegate: AnyObject, Sendable {
    func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) async
    /// The next changes to send, of those that are pending and in the context's scope; nil if there are no more.
    func nextRecordZoneChangeBatch(
        _ context: CKSyncEngine.SendChangesContext, syncEngine: CKSyncEngine
    ) async -> CKSyncEngine.RecordZoneChangeBatch?
    /// How the next changes are fetched; asked before each request.
    func nextFetchChangesOptions(
        _ context: CKSyncEngine.FetchChangesContext, syncEngine: CKSyncEngine
    ) async -> CKSyncEngine.FetchChangesOptions
}

extension CKSyncEngineDelegate {
    /// The options of the context.
    public func nextFetchChangesOptions(
        _ context: CKSyncEngine.FetchChangesContext, syncEngine: CKSyncEngine
    ) async -> CKSyncEngine.FetchChangesOptions { context.options }
}

/// A reference to a delegate that does not keep it alive.
private final class WeakDelegate: Sendable {
    private struct Reference: Sendable { weak var delegate: (any CKSyncEngineDelegate)? }
    private let reference: Mutex<Reference>

    init(_ delegate: (any CKSyncEngineDelegate)?) { reference = Mutex(Reference(delegate: delegate)) }

    var delegate: (any CKSyncEngineDelegate)? { reference.withLock { $0.delegate } }
}

/// Lets one piece of work run at a time, in the order in which they came.
final class TurnQueue: Sendable {
    private struct Line: Sendable {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let line = Mutex(Line())

    func run<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        await withCheckedContinuation { continuation in
            let isFree = line.withLock { line in
                if line.isTaken {
                    line.waiting.append(continuation)
                    return false
                }
                line.isTaken = true
                return true
            }
            if isFree { continuation.resume() }
        }
        defer {
            let next = line.withLock { line -> CheckedContinuation<Void, Never>? in
                if line.waiting.isEmpty {
                    line.isTaken = false
                    return nil
                }
                return line.waiting.removeFirst()
            }
            next?.resume()
        }
        return try await body()
    }
}
