import Dispatch
import Foundation
import RecordModel
import Synchronization

/// A store of preferences at work: the core's value, its file, and the requests that it asks for.
///
/// Reads and edits touch memory only, from any thread. A transaction takes the file's lock, takes over what another
/// process wrote, lets the core handle an event, writes the file and only then does what the core asks for. Edits are
/// on disk a tenth of a second later, or when `save` returns.
final class PreferenceEngine: Sendable {
    /// What the engine uses of the world around it. Tests replace some of it.
    struct Dependencies: Sendable {
        var clock: any PreferenceClock = SystemPreferenceClock()
        /// Writes a line to the log; standard error by default.
        var log: @Sendable (String) -> Void = { line in
            try? FileHandle.standardError.write(contentsOf: Data("NSUbiquitousKeyValueStore: \(line)\n".utf8))
        }
        var limits = PreferenceLimits()
        /// Makes the id of a batch: unique everywhere, and with the time in it.
        var makeBatchID: @Sendable () -> String
        var fault: @Sendable (PreferenceFile.Step) -> PreferenceFile.Fault? = { _ in nil }
    }

    struct State {
        var core: PreferenceSync
        var place: PreferencePlace
        var service: (any PreferenceService)?
        /// Counts services, so that late results of an earlier one are recognized.
        var epoch = 0
        /// Whether the server confirmed, in this epoch, that the session belongs to the core's account.
        var isConfirmed = false
        /// Edits that are in memory and not on disk, in their order, the last of each key.
        var unsaved: [UnsavedEdit] = []
        /// How many edits there were, which numbers them.
        var edits = 0
        var isSaveScheduled = false
        var wakeAt: Int64?
        var suspectedAt: Int64 = .min
        var storageProblem: String?
        var uploadProblem: String?
        /// Of any request other than an upload.
        var fetchProblem: String?
        var isWatching = false
        var isClosed = false
        var post: @Sendable (PreferenceNotification) -> Void = { _ in }
        var watch: Task<Void, Never>?
        /// Kept, because it reports changes of accounts only while it lives.
        var observation: (any Sendable)?

        /// Why the server did not do what it was asked.
        var serviceProblem: String? { uploadProblem ?? fetchProblem }

        /// Nil if there is no session to send anything with.
        var link: PreferenceLink? {
            guard let service, let account = core.account, !isClosed else { return nil }
            return PreferenceLink(
                service: service, account: account, device: core.copy.device, place: place, epoch: epoch)
        }

        /// Keeps an edit until it is on disk.
        mutating func keep(_ edit: PreferenceEdit) {
            unsaved.removeAll { $0.edit.key == edit.key }
            edits += 1
            unsaved.append(UnsavedEdit(number: edits, edit: edit))
        }

        /// Drops edits that were answered, or that made room for a newer value, while they could not be saved. They
        /// must not be replayed.
        mutating func dropAnswered() {
            let rows = core.copy.rows
            unsaved.removeAll { rows[$0.edit.key]?.edit == nil && rows[$0.edit.key]?.sent == nil }
        }
    }

    struct UnsavedEdit: Sendable {
        /// Grows with each edit: a later edit of the same key has another one.
        var number: Int
        var edit: PreferenceEdit
    }

    /// The file of the account that the core is at.
    struct Disk {
        var file: PreferenceFile
        /// Whether the core has more than the file, since a write failed.
        var isDirty = false
        /// Writes that failed in a row.
        var failures = 0
    }

    let state: Mutex<State>
    /// Held for a whole transaction; `state` is locked inside it, never the other way round.
    let disk: Mutex<Disk>
    let dependencies: Dependencies
    /// Signalled when the watch may have something to follow, or nothing any more.
    let watchEvent = AutoResetEvent()
    let watchStep = WatchStep()
    /// Transactions and requests that are not done.
    let work = WorkCounter()
    /// The queue of transactions that no caller waits for.
    let queue = DispatchQueue(label: "zonekeeper.preferences")
    /// Its lock, and that of `waiters`, may be taken inside `state`'s, and nothing inside them but that of `work`.
    let inquiry: AccountInquiry
    let waiters = PreferenceWaiters()

    private static let saveMilliseconds: Int64 = 100

    /// A store at a place. It shows what the file has at once, and begins to work with `start`.
    init(place: PreferencePlace, service: (any PreferenceService)?, dependencies: Dependencies) {
        self.dependencies = dependencies
        inquiry = AccountInquiry(work: work, clock: dependencies.clock, queue: queue)
        let account = service.flatMap { place.rememberedAccount(of: $0.name) }
        let file = PreferenceFile(path: place.path(of: account), fault: dependencies.fault)
        let loaded = file.load()
        var state = State(
            core: PreferenceSync(account: account, copy: loaded.copy, limits: dependencies.limits), place: place,
            service: service)
        state.storageProblem = loaded.problem
        self.state = Mutex(state)
        disk = Mutex(Disk(file: file))
        if let problem = loaded.problem { dependencies.log(problem) }
    }

    deinit {
        state.withLock { $0.watch?.cancel() }
        watchEvent.signal()
    }

    func start() {
        enqueue(.woken)
        let task = Task { [weak self, watchEvent] in
            var backoff = WatchBackoff()
            while !Task.isCancelled {
                switch await self?.watchOnce(&backoff) {
                case .again: continue
                // The engine is not retained during the wait.
                case .nothing: await watchEvent.wait()
                case .closed, nil: return
                }
            }
        }
        state.withLock { $0.watch = task }
        resolveAccount()
    }

    /// Saves, and ends all background work.
    func close() {
        save()
        let task = state.withLock { state in
            state.isClosed = true
            return state.watch
        }
        task?.cancel()
        inquiry.endPause()
        watchEvent.signal()
        waiters.fail(SyncError.closed) { _ in true }
    }

    /// Sets the observer of changes that the app did not make. It is called on the engine's threads.
    func onChange(_ post: @escaping @Sendable (PreferenceNotification) -> Void) {
        state.withLock { $0.post = post }
    }

    // MARK: Values

    func value(_ key: PreferenceKey) -> PropertyValue? { state.withLock { $0.core.copy.value(key) } }

    var values: [(key: PreferenceKey, value: PropertyValue)] { state.withLock { $0.core.copy.visible } }

    /// Sets or removes a key. A write that breaks a limit changes nothing, and is logged and remembered.
    func edit(_ edit: PreferenceEdit) {
        // An edit begins no batch.
        let moment = PreferenceMoment(milliseconds: dependencies.clock.now, batchID: "")
        let (effects, mustSchedule) = state.withLock { state in
            let effects = state.core.edit(edit, at: moment)
            guard effects.persist else { return (effects, false) }
            state.keep(edit)
            defer { state.isSaveScheduled = true }
            return (effects, !state.isSaveScheduled && !state.isClosed)
        }
        tell(effects)
        if mustSchedule { wake(after: Self.saveMilliseconds) }
    }

    /// Records the refusal of a write that the core never saw: its value is no property list.
    func refuse(_ refusal: PreferenceRefusal) {
        var effects = PreferenceEffects()
        state.withLock { $0.core.refuse(refusal, &effects) }
        tell(effects)
    }

    /// Writes what is only in memory, and takes over what another process wrote.
    /// - Returns: whether memory and disk agree.
    @discardableResult
    func save() -> Bool {
        transact(.woken)
        return state.withLock { $0.storageProblem == nil }
    }

    /// Saves what is only in memory, if anything; for the end of a process.
    func saveLast() { if state.withLock({ !$0.unsaved.isEmpty && !$0.isClosed }) { save() } }

    /// As `save`; also asks the server for changes, unless a watch is open or it was asked less than two seconds ago.
    func reconcile() -> Bool {
        let now = dependencies.clock.now
        let asks = state.withLock { state in
            if state.isWatching || state.suspectedAt > now - 2000 { return false }
            state.suspectedAt = now
            return true
        }
        transact(asks ? .changesSuspected : .woken)
        return state.withLock { $0.storageProblem == nil }
    }

    // MARK: Transactions

    /// Handles an event soon, in its turn.
    func enqueue(_ event: PreferenceEvent) {
        work.begin()
        queue.async { [self] in
            if !state.withLock({ $0.isClosed }) { transact(event) }
            work.end()
        }
    }

    /// Handles an event in its turn, and returns when that is done.
    func process(_ event: PreferenceEvent) async {
        await onQueue { [self] in if !state.withLock({ $0.isClosed }) { transact(event) } }
    }

    func onQueue(_ body: @escaping @Sendable () -> Void) async {
        work.begin()
        await withCheckedContinuation { continuation in
            queue.async {
                body()
                continuation.resume()
            }
        }
        work.end()
    }

    private func transact(_ event: PreferenceEvent) {
        let (effects, link) = disk.withLock { disk in
            var problem: String?
            do throws(PreferenceFileError) { try disk.file.lock() } catch { problem = error.description }
            defer { disk.file.unlock() }
            var effects = takeOver(&disk, &problem)
            let moment = moment
            let (result, link, copy, unsaved) = state.withLock { state in
                let result = state.core.handle(event, at: moment)
                if case .syncRequested = event { waiters.arm() }
                state.isSaveScheduled = false
                if disk.isDirty { state.dropAnswered() }
                return (result, state.link, state.core.copy, state.unsaved.last?.number)
            }
            if result.persist || unsaved != nil || disk.isDirty { save(copy, upTo: unsaved, &disk, &problem) }
            note(storage: problem)
            effects.append(result)
            return (effects, link)
        }
        perform(effects, link)
    }

    /// Writes the copy, unless the file or its lock has a problem: another process's edits may then be in the file.
    /// - Parameter last: the number of the last unsaved edit that the copy has; nil where it has none. Those made while
    ///   it is written stay unsaved.
    private func save(_ copy: PreferenceCopy, upTo last: Int?, _ disk: inout Disk, _ problem: inout String?) {
        disk.isDirty = problem != nil || !disk.file.save(copy, &problem)
        if !disk.isDirty {
            disk.failures = 0
            if let last { state.withLock { $0.unsaved.removeAll { $0.number <= last } } }
            return
        }
        // Work goes on in memory: nothing that the server is told is lost, and the write is tried again.
        disk.failures += 1
        let mustSchedule = state.withLock { state in
            defer { state.isSaveScheduled = true }
            return !state.isSaveScheduled && !state.isClosed
        }
        if mustSchedule { wake(after: min(60_000, 500 << Int64(min(disk.failures, 8)))) }
    }

    /// Goes on from what another process wrote.
    /// - Returns: what the app is told of it.
    func takeOver(_ disk: inout Disk, _ problem: inout String?) -> PreferenceEffects {
        do throws(PreferenceFileError) {
            switch try disk.file.read() {
            case .missing, .unchanged: break
            case .damaged(let reason):
                dependencies.log(reason)
                disk.isDirty = true
            case .copy(let copy):
                let moment = moment
                disk.isDirty = false
                return state.withLock { $0.core.adopt(copy, replaying: $0.unsaved.map(\.edit), at: moment) }
            }
        } catch {
            problem = problem ?? error.description
        }
        return PreferenceEffects()
    }

    func note(storage problem: String?) {
        let isNew = state.withLock { state in
            defer { state.storageProblem = problem }
            return problem != nil && state.storageProblem != problem
        }
        if let problem, isNew {
            dependencies.log("\(problem); preferences are kept in memory until it can be written")
        }
    }

    // MARK: Effects

    /// Logs refusals and tells the app; this needs no disk.
    private func tell(_ effects: PreferenceEffects) {
        for refusal in effects.refusals { dependencies.log("refused: \(refusal.reason)") }
        if effects.notifications.isEmpty { return }
        let post = state.withLock { $0.post }
        for notification in effects.notifications { post(notification) }
    }

    func perform(_ effects: PreferenceEffects, _ link: PreferenceLink?) {
        tell(effects)
        let reached = state.withLock { state in
            waiters.takeReached(
                isSettled: state.core.isSettled && state.unsaved.isEmpty,
                isSynced: state.core.account != nil && state.core.copy.isInitialSyncDone, refusals: effects.refusals)
        }
        for waiter in reached { waiter.succeed() }
        if let link {
            if let batch = effects.upload { upload(batch, link) }
            if let ticket = effects.fetch { fetch(ticket, link) }
            if let time = effects.wakeAt { wake(at: time) }
        }
        failStalledWaiters()
        watchEvent.signal()
    }

    private func wake(at time: Int64) {
        let now = dependencies.clock.now
        let mustSchedule = state.withLock { state in
            if let scheduled = state.wakeAt, scheduled > now, scheduled <= time { return false }
            state.wakeAt = time
            return true
        }
        if mustSchedule { wake(after: max(1, time - now)) }
    }

    private func wake(after milliseconds: Int64) {
        dependencies.clock.after(milliseconds, on: queue) { [weak self] in self?.enqueue(.woken) }
    }

    var moment: PreferenceMoment {
        PreferenceMoment(milliseconds: dependencies.clock.now, batchID: dependencies.makeBatchID())
    }
}

/// A session and the account that it acts for. It is taken together with what the core asks for, so that one user's
/// values never go to another.
struct PreferenceLink: Sendable {
    var service: any PreferenceService
    var account: String
    var device: String
    var place: PreferencePlace
    var epoch: Int
}
