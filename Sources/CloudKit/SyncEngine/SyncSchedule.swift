/// When an engine fetches, sends and tells its state by itself: a value that knows neither clocks nor tasks.
struct SyncSchedule: Sendable, Hashable {
    enum Work: Sendable { case fetch, send, tell }

    /// How long changes are collected before they are sent.
    static let sendDelay: Duration = .milliseconds(500)
    /// How long changes of the state are collected before they are told.
    static let tellDelay: Duration = .milliseconds(100)
    /// How often changes of others are asked for while no notifications come.
    static let fetchInterval: Duration = .seconds(30)
    /// How often they are asked for while notifications tell of them.
    static let toldFetchInterval: Duration = .seconds(900)
    /// The first wait after a failure; each further one doubles it.
    static let firstRetry: Duration = .seconds(1)
    /// The longest wait after failures, unless the server asks for a longer one.
    static let retryMax: Duration = .seconds(300)

    private var fetchAt: SyncClock.Instant?
    private var sendAt: SyncClock.Instant?
    private var tellAt: SyncClock.Instant?
    private var fetchFailures = 0
    private var sendFailures = 0
    /// How many sends in a row, without a failure between them, left something that the app did not give.
    private var incompleteSends = 0
    /// Whether notifications tell of changes.
    private var isTold = false
    /// Before this, nothing is sent by itself.
    private var sendNotBefore: SyncClock.Instant?
    /// Before this, the server wants no fetch.
    private var fetchNotBefore: SyncClock.Instant?

    var next: SyncClock.Instant? { [fetchAt, sendAt, tellAt].compactMap(\.self).min() }

    mutating func started(at now: SyncClock.Instant, hasPending: Bool) {
        fetchAt = now
        if hasPending { sendAt = now + Self.sendDelay }
    }

    mutating func fetchWanted(at now: SyncClock.Instant) {
        let earliest = max(now, fetchNotBefore ?? now)
        fetchAt = min(fetchAt ?? earliest, earliest)
    }

    /// From now on notifications tell of changes. Those of a moment before may not have been told of.
    mutating func listening(at now: SyncClock.Instant) {
        isTold = true
        fetchWanted(at: now)
    }

    /// Another account may be in force.
    mutating func listeningEnded(at now: SyncClock.Instant) {
        isTold = false
        (fetchNotBefore, sendNotBefore) = (nil, nil)
        fetchWanted(at: now)
        if sendAt != nil { sendAt = now + Self.sendDelay }
    }

    /// Notifications do not tell of changes any more. They may be refused again, which each fetch finds out, so the
    /// next one is not at once.
    mutating func listeningFailed(at now: SyncClock.Instant) {
        isTold = false
        fetchLater(at: now)
    }

    /// Fetches when changes are next asked for, or earlier where a notification asks for it.
    private mutating func fetchLater(at now: SyncClock.Instant) {
        let next = now + (isTold ? Self.toldFetchInterval : Self.fetchInterval)
        fetchAt = min(fetchAt ?? next, next)
    }

    mutating func stateChanged(at now: SyncClock.Instant, hasPending: Bool) {
        tellAt = tellAt ?? now + Self.tellDelay
        guard hasPending else { return }
        let earliest = max(now + Self.sendDelay, sendNotBefore ?? now)
        sendAt = min(sendAt ?? earliest, earliest)
    }

    mutating func fetchEnded(_ error: CKError?, at now: SyncClock.Instant) {
        fetchFailures = error == nil ? 0 : fetchFailures + 1
        fetchNotBefore = error?.wantedPause.map { now + $0 }
        if let error {
            fetchAt = now + Self.wait(after: error, failures: fetchFailures)
            return
        }
        // A notification may have come while changes were fetched.
        fetchLater(at: now)
    }

    /// - Parameter hasPending: whether something is left: it failed, or the app did not give it when it was asked, or
    ///   has added it only now.
    mutating func sendEnded(_ error: CKError?, at now: SyncClock.Instant, hasPending: Bool) {
        sendFailures = error == nil ? 0 : sendFailures + 1
        incompleteSends = error == nil && hasPending ? incompleteSends + 1 : 0
        let pause = error.map { Self.wait(after: $0, failures: sendFailures) }
        // What failed by itself holds up nothing that is added later, unless the server wants to be left alone.
        sendNotBefore = (error?.code == .partialFailure ? error?.wantedPause : pause).map { now + $0 }
        guard hasPending else { return sendAt = nil }
        if let pause {
            sendAt = now + pause
        } else {
            let again = now + Self.wait(failures: incompleteSends)
            sendAt = min(sendAt ?? again, again)
        }
    }

    mutating func takeDue(at now: SyncClock.Instant) -> [Work] {
        var due: [Work] = []
        if let at = fetchAt, at <= now { due.append(.fetch); fetchAt = nil }
        if let at = sendAt, at <= now { due.append(.send); sendAt = nil }
        if let at = tellAt, at <= now { due.append(.tell); tellAt = nil }
        return due
    }

    /// Forgets everything that asks the server.
    mutating func keepOnlyTelling() {
        fetchAt = nil
        sendAt = nil
    }

    private static func wait(after error: CKError, failures: Int) -> Duration {
        max(wait(failures: failures), error.wantedPause ?? .zero)
    }

    private static func wait(failures: Int) -> Duration { min(firstRetry * (1 << min(failures - 1, 20)), retryMax) }
}

extension CKError {
    /// How long the server wants to be left alone, by this error or that of an item.
    fileprivate var wantedPause: Duration? {
        let items = partialErrorsByItemID?.values.compactMap { ($0 as? CKError)?.retryAfterSeconds } ?? []
        return (items + [retryAfterSeconds].compactMap(\.self)).max().map { .seconds($0) }
    }
}

struct SyncClock: Sendable {
    /// Since some beginning.
    typealias Instant = Duration

    var now: @Sendable () -> Instant
    /// Waits until then; not at all for what is past.
    var wait: @Sendable (Instant) async throws -> Void

    static let system: SyncClock = {
        let start = ContinuousClock.now
        return SyncClock(
            now: { start.duration(to: .now) }, wait: { try await Task.sleep(until: start + $0, clock: .continuous) })
    }()
}
