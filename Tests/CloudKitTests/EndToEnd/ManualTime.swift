import Synchronization

@testable import CloudKit

/// A time that goes on when the test says so.
final class ManualTime: Sendable {
    private struct Waiter: Sendable {
        var id: Int
        var end: Duration
        var continuation: CheckedContinuation<Void, any Error>
    }
    private struct State: Sendable {
        var now: Duration = .zero
        var lastID = 0
        var waiters: [Waiter] = []
        var cancelled: Set<Int> = []
        /// The test, until somebody waits for a time up to this one.
        var test: (end: Duration, continuation: CheckedContinuation<Void, Never>)?
    }
    private let state = Mutex(State())

    var clock: SyncClock {
        SyncClock(now: { [self] in state.withLock { $0.now } }, wait: { [self] in try await wait(until: $0) })
    }

    /// Lets it be `end`, as soon as somebody waits for a time up to then.
    func advance(to end: Duration) async {
        await withCheckedContinuation { continuation in
            let isAwaited = state.withLock { state in
                if state.waiters.contains(where: { $0.end <= end }) { return true }
                state.test = (end, continuation)
                return false
            }
            if isAwaited { continuation.resume() }
        }
        let due = state.withLock { state in
            state.now = end
            let due = state.waiters.filter { $0.end <= end }
            state.waiters.removeAll { $0.end <= end }
            return due
        }
        for waiter in due { waiter.continuation.resume() }
    }

    private func wait(until end: Duration) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (result, test) = state.withLock { state in
                    add(Waiter(id: id, end: end, continuation: continuation), to: &state)
                }
                if let result { continuation.resume(with: result) }
                test?.resume()
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let place = state.waiters.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.waiters.remove(at: place)
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }

    /// What the waiter is told at once, if it need not wait, and the test if it goes on now.
    private func add(
        _ waiter: Waiter, to state: inout State
    ) -> (Result<Void, any Error>?, CheckedContinuation<Void, Never>?) {
        if state.cancelled.remove(waiter.id) != nil { return (.failure(CancellationError()), nil) }
        if waiter.end <= state.now { return (.success(()), nil) }
        state.waiters.append(waiter)
        guard let test = state.test, waiter.end <= test.end else { return (nil, nil) }
        state.test = nil
        return (nil, test.continuation)
    }
}
