import Synchronization

extension PreferenceEngine {
    /// Returns when the server's values were read to their end, now or in an earlier run.
    /// - Throws: `PreferenceEngineProblem.notSignedIn`, `.closed`; `CancellationError`.
    func waitForInitialSync() async throws { try await wait(for: .initialSync) }

    /// Sends and fetches everything, now.
    /// - Throws: `PreferenceEngineProblem`: why an attempt failed (it is repeated in the background), or which writes
    ///   were refused; `CancellationError`.
    func synchronizeNow() async throws { try await wait(for: .settled) }

    /// Returns when no transaction and no request is under way. Timers and the watch may still begin some.
    func idle() async { await work.idle() }

    private func wait(for goal: PreferenceWaiters.Goal) async throws {
        let (id, hasService) = state.withLock { ($0.waiters.nextID(), $0.service != nil) }
        guard hasService else {
            throw PreferenceEngineProblem.notSignedIn(
                "nobody is signed in, or no server is configured; preferences stay on this device")
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let isClosed = state.withLock { state in
                    if !state.isClosed { state.waiters.add(id, goal, continuation) }
                    return state.isClosed
                }
                if isClosed { return continuation.resume(throwing: PreferenceEngineProblem.closed) }
                if Task.isCancelled { return cancelWaiter(id) }
                if goal == .settled { retryAccountNow() }
                enqueue(goal == .settled ? .syncRequested : .woken)
            }
        } onCancel: {
            cancelWaiter(id)
        }
    }

    private func cancelWaiter(_ id: Int) {
        failWaiters(CancellationError()) { $0.id == id }
    }

    /// Ends waits with an error.
    func failWaiters(_ problem: any Error, where matches: (PreferenceWaiters.Waiter) -> Bool) {
        for waiter in state.withLock({ $0.waiters.take(where: matches) }) {
            waiter.continuation.resume(throwing: problem)
        }
    }

    /// Ends the waits for a synchronization that cannot go on for a while: callers learn the reason at once.
    func failStalledWaiters() {
        let now = dependencies.clock.now
        let reason = state.withLock { state -> String? in
            guard state.waiters.awaitSettling else { return nil }
            if state.core.account == nil { return state.inquiry.isUnderWay ? nil : state.serviceProblem }
            guard let until = state.core.stalledUntil(now) else { return nil }
            return (state.serviceProblem ?? "the server did not take the last request")
                + "; the next attempt is in \((until - now + 999) / 1000) s"
        }
        if let reason { failWaiters(PreferenceEngineProblem.unavailable(reason), where: \.awaitsSettling) }
    }
}
