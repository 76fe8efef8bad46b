import Synchronization

extension PreferenceEngine {
    /// Somebody who waits for the store to reach a state.
    struct Waiter {
        enum Goal { case initialSync, settled }
        var id: Int
        var goal: Goal
        /// Whether the request to synchronise was handled; before, the store may look settled.
        var isArmed: Bool
        var refusals: [PreferenceRefusal] = []
        var continuation: CheckedContinuation<Void, any Error>
    }

    /// Returns when the server's values were read to their end, now or in an earlier run.
    /// - Throws: `PreferenceEngineProblem.notSignedIn`, `.closed`; `CancellationError`.
    package func waitForInitialSync() async throws {
        try needService()
        try await wait(for: .initialSync)
    }

    /// Sends and fetches all there is, now.
    /// - Throws: `PreferenceEngineProblem`: why an attempt failed (it goes on by itself), or which writes were refused;
    ///   `CancellationError`.
    package func synchronizeNow() async throws {
        try needService()
        try await wait(for: .settled)
    }

    private func needService() throws(PreferenceEngineProblem) {
        let hasService = state.withLock { $0.service != nil }
        if !hasService {
            throw .notSignedIn("nobody is signed in, or no server is configured; preferences stay on this device")
        }
    }

    private func wait(for goal: Waiter.Goal) async throws {
        let id = state.withLock { state in
            state.waiterCount += 1
            return state.waiterCount
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let isClosed = state.withLock { state in
                    if state.isClosed { return true }
                    state.waiters.append(
                        Waiter(id: id, goal: goal, isArmed: goal == .initialSync, continuation: continuation))
                    return false
                }
                if isClosed { return continuation.resume(throwing: PreferenceEngineProblem.closed) }
                if Task.isCancelled { return cancelWaiter(id) }
                if goal == .settled { hurryAccount() }
                enqueue(goal == .settled ? .syncRequested : .woken)
            }
        } onCancel: {
            cancelWaiter(id)
        }
    }

    private func cancelWaiter(_ id: Int) {
        let waiter = state.withLock { state in
            state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
        }
        waiter?.continuation.resume(throwing: CancellationError())
    }

    /// Wakes those whose goal is reached.
    func resumeWaiters(refusals: [PreferenceRefusal]) {
        let done = state.withLock { state -> [Waiter] in
            if state.waiters.isEmpty { return [] }
            for index in state.waiters.indices { state.waiters[index].refusals += refusals }
            let isSettled = state.core.isSettled && state.unsaved.isEmpty
            let isSynced = state.core.account != nil && state.core.copy.isInitialSyncDone
            let done = state.waiters.filter { $0.isArmed && ($0.goal == .settled ? isSettled : isSynced) }
            state.waiters.removeAll { waiter in done.contains { $0.id == waiter.id } }
            return done
        }
        for waiter in done {
            if waiter.goal == .settled, !waiter.refusals.isEmpty {
                waiter.continuation.resume(throwing: PreferenceEngineProblem.refused(waiter.refusals))
            } else {
                waiter.continuation.resume()
            }
        }
    }

    /// An attempt failed: who waits for all to be done learns why. The first download is waited for longer, while there
    /// is a session.
    func failWaiters(_ problem: PreferenceEngineProblem, where isMeant: (Waiter) -> Bool = { $0.goal == .settled }) {
        let failed = state.withLock { state -> [Waiter] in
            let failed = state.waiters.filter(isMeant)
            state.waiters.removeAll { waiter in failed.contains { $0.id == waiter.id } }
            return failed
        }
        for waiter in failed { waiter.continuation.resume(throwing: problem) }
    }

    /// Nothing moves for a while: nobody is to wait for that who asked for it now.
    func failStalledWaiters() {
        let now = surroundings.clock.now
        let reason = state.withLock { state -> String? in
            guard state.waiters.contains(where: { $0.goal == .settled && $0.isArmed }) else { return nil }
            if state.core.account == nil { return state.asking.isUnderWay ? nil : state.serviceProblem }
            guard let until = state.core.stalledUntil(now) else { return nil }
            return (state.serviceProblem ?? "the server did not take the last request")
                + "; the next attempt is in \((until - now + 999) / 1000) s"
        }
        if let reason { failWaiters(.unavailable(reason)) { $0.goal == .settled && $0.isArmed } }
    }

    // Counting what is under way, for tests and for a program that is about to end.

    func begin() { state.withLock { $0.work += 1 } }

    func end() {
        let idlers = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.work -= 1
            guard state.work == 0 else { return [] }
            defer { state.idlers = [] }
            return state.idlers
        }
        for idler in idlers { idler.resume() }
    }

    /// Returns when no transaction and no request is under way; timers and the watch may still begin some.
    package func idle() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.work > 0 { state.idlers.append(continuation) }
                return state.work == 0
            }
            if isIdle { continuation.resume() }
        }
    }
}

extension PreferenceEngine.State {
    /// Why the server does not do what it is asked.
    var serviceProblem: String? { uploadProblem ?? fetchProblem }

    /// The request to synchronise is handled: from now on a settled store is one that did it.
    mutating func armWaiters() {
        for index in waiters.indices { waiters[index].isArmed = true }
    }
}
