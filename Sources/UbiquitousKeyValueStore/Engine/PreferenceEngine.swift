package import Dispatch
import Foundation
package import RecordModel
import Synchronization

/// A store of preferences at work: the core's value, its file, and the requests that it asks for.
///
/// Reads and edits touch memory only, from any thread. A transaction takes the file's lock, takes over what another
/// process wrote, lets the core handle an event, writes the file and only then does what the core asks for. Edits are
/// on disk a tenth of a second later, or when `save` returns.
package final class PreferenceEngine: Sendable {
    /// What may go wrong in tests, and what tells them; real ones by default.
    package struct Surroundings: Sendable {
        package var clock: any PreferenceClock = SystemPreferenceClock()
        package var log: @Sendable (String) -> Void = { line in
            try? FileHandle.standardError.write(contentsOf: Data("NSUbiquitousKeyValueStore: \(line)\n".utf8))
        }
        package var limits = PreferenceLimits()
        /// Names batches; each once in all the world, and the time in it.
        package var makeBatchID: @Sendable () -> String
        var fault: @Sendable (PreferenceFile.Step) -> PreferenceFile.Fault? = { _ in nil }

        package init(makeBatchID: @escaping @Sendable () -> String) { self.makeBatchID = makeBatchID }
    }

    struct State {
        var core: PreferenceSync
        var place: PreferencePlace
        var service: (any PreferenceService)?
        /// Counts services, so that what an earlier one brings is told apart.
        var epoch = 0
        /// Whether the server said, in this epoch, that the session is the core's account's.
        var isConfirmed = false
        /// Edits that are in memory and not on disk, in their order, the last of each key.
        var unsaved: [PreferenceEdit] = []
        var isSaveScheduled = false
        var wakeAt: Int64?
        var suspectedAt: Int64 = .min
        var storageProblem: String?
        var uploadProblem: String?
        /// Of anything else than an upload.
        var fetchProblem: String?
        var asking = Asking()
        var isWatching = false
        var isClosed = false
        var waiters: [Waiter] = []
        var waiterCount = 0
        /// Transactions and requests that are not done.
        var work = 0
        var idlers: [CheckedContinuation<Void, Never>] = []
        var post: @Sendable (PreferenceNotification) -> Void = { _ in }
        var watch: Task<Void, Never>?
        /// Kept, as it hears of accounts as long as it lives.
        var observation: (any Sendable)?
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
    let surroundings: Surroundings
    /// Rung when there may be something to watch, or nothing any more.
    let bell = WatchBell()
    /// Where transactions run that nobody waits for.
    package let queue = DispatchQueue(label: "zonekeeper.preferences")

    static let saveMilliseconds: Int64 = 100

    /// A store at a place; it shows what the file has at once, and begins to work with `start`.
    package init(place: PreferencePlace, service: (any PreferenceService)?, surroundings: Surroundings) {
        self.surroundings = surroundings
        let account = service.flatMap { place.rememberedAccount(of: $0.name) }
        let file = PreferenceFile(path: place.path(of: account), fault: surroundings.fault)
        let (copy, problem, _) = Self.load(file)
        var state = State(
            core: PreferenceSync(account: account, copy: copy, limits: surroundings.limits), place: place,
            service: service)
        state.storageProblem = problem
        self.state = Mutex(state)
        disk = Mutex(Disk(file: file))
        if let problem { surroundings.log(problem) }
    }

    deinit {
        state.withLock { $0.watch?.cancel() }
        bell.ring()
    }

    /// Begins to talk to the server.
    package func start() {
        enqueue(.woken)
        let task = Task { [weak self, bell] in
            var pause = WatchPause()
            while !Task.isCancelled {
                switch await self?.watchOnce(&pause) {
                case .again: continue
                // The engine is not held meanwhile.
                case .nothing: await bell.wait()
                case .closed, nil: return
                }
            }
        }
        state.withLock { $0.watch = task }
        resolveAccount()
    }

    /// Saves, and begins nothing any more.
    package func close() {
        save()
        let (waiters, task) = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [] }
            return (state.waiters, state.watch)
        }
        task?.cancel()
        endRest { _ in true }
        bell.ring()
        for waiter in waiters { waiter.continuation.resume(throwing: PreferenceEngineProblem.closed) }
    }

    /// Who is told of changes that the app did not make. Called on the engine's threads.
    package func onChange(_ post: @escaping @Sendable (PreferenceNotification) -> Void) {
        state.withLock { $0.post = post }
    }

    // What apps see.

    package func value(_ key: PreferenceKey) -> PropertyValue? { state.withLock { $0.core.copy.value(key) } }

    package var values: [(key: PreferenceKey, value: PropertyValue)] { state.withLock { $0.core.copy.visible } }

    /// Sets or removes a key. A write that breaks a limit changes nothing, and is logged and remembered.
    package func edit(_ edit: PreferenceEdit) {
        // An edit begins no batch.
        let moment = PreferenceMoment(milliseconds: surroundings.clock.now, batchID: "")
        let (effects, mustSchedule) = state.withLock { state in
            let effects = state.core.edit(edit, at: moment)
            guard effects.persist else { return (effects, false) }
            state.unsaved.removeAll { $0.key == edit.key }
            state.unsaved.append(edit)
            defer { state.isSaveScheduled = true }
            return (effects, !state.isSaveScheduled && !state.isClosed)
        }
        tell(effects)
        if mustSchedule {
            surroundings.clock.after(Self.saveMilliseconds, on: queue) { [weak self] in self?.enqueue(.woken) }
        }
    }

    /// Refuses a write that no core has seen: its value is no property list.
    func refuse(_ refusal: PreferenceRefusal) {
        var effects = PreferenceEffects()
        state.withLock { $0.core.refuse(refusal, &effects) }
        tell(effects)
    }

    /// Writes what is only in memory, and takes over what another process wrote.
    /// - Returns: whether memory and disk agree.
    @discardableResult
    package func save() -> Bool {
        transact(.woken)
        return state.withLock { $0.storageProblem == nil }
    }

    /// Saves what is only in memory, if there is something; for the end of a process.
    func saveLast() { if state.withLock({ !$0.unsaved.isEmpty && !$0.isClosed }) { save() } }

    /// As `save`, and asks the server for news unless it was asked just now, or tells them by itself.
    package func reconcile() -> Bool {
        let now = surroundings.clock.now
        let asks = state.withLock { state in
            if state.isWatching || state.suspectedAt > now - 2000 { return false }
            state.suspectedAt = now
            return true
        }
        transact(asks ? .changesSuspected : .woken)
        return state.withLock { $0.storageProblem == nil }
    }

    /// The copy in a file, or a new one, what was wrong, and whether the file may be replaced.
    static func load(_ file: PreferenceFile) -> (copy: PreferenceCopy, problem: String?, isReadable: Bool) {
        let new = PreferenceCopy(device: UUID().uuidString)
        do throws(PreferenceFileError) {
            switch try file.read() {
            case .copy(let copy): return (copy, nil, true)
            case .missing, .unchanged: return (new, nil, true)
            case .damaged(let reason): return (new, reason, true)
            }
        } catch {
            return (new, error.description, false)
        }
    }

    var moment: PreferenceMoment {
        PreferenceMoment(milliseconds: surroundings.clock.now, batchID: surroundings.makeBatchID())
    }
}

/// Why a store cannot do what it is asked to.
package enum PreferenceEngineProblem: Error, Hashable, Sendable {
    case closed
    case notSignedIn(String)
    case unavailable(String)
    case refused([PreferenceRefusal])
}
