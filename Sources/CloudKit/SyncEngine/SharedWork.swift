import Synchronization

/// Work that several tasks may wait for: cancelling one of them cancels its wait, and cancelling the last the work.
final class SharedWork: Sendable {
    private struct State: Sendable {
        var task: Task<Void, Never>?
        var result: Result<Void, any Error>?
        /// Whether nobody may join it any more.
        var isCancelled = false
        /// Those who wait, or are about to.
        var seats: Set<Int> = []
        var lastSeat = 0
        var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]

        mutating func takeSeat() -> Int {
            lastSeat += 1
            seats.insert(lastSeat)
            return lastSeat
        }
    }

    private let state = Mutex(State())

    /// Begins it, once.
    /// - Returns: the seat of the one who begins it.
    func begin(_ body: @escaping @Sendable () async throws -> Void) -> Int {
        state.withLock { state in
            state.task = Task {
                do {
                    try await body()
                    self.ended(.success(()))
                } catch {
                    self.ended(.failure(error))
                }
            }
            return state.takeSeat()
        }
    }

    /// A seat for another one who waits; nil where it was cancelled.
    func join() -> Int? { state.withLock { $0.isCancelled ? nil : $0.takeSeat() } }

    /// Waits for the end.
    /// - Throws: what the work throws; `operationCancelled` where this task was cancelled and others still wait.
    func wait(_ seat: Int) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = state.withLock { state in
                    guard state.seats.contains(seat) else { return .failure(ErrorMapping.cancelled) }
                    if let result = state.result { return result }
                    state.waiting[seat] = continuation
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            leave(seat)
        }
    }

    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    func end() async { await state.withLock { $0.task }?.value }

    /// The last one stays, and cancels the work: it comes back when that has ended.
    private func leave(_ seat: Int) {
        typealias Told = (Task<Void, Never>?, CheckedContinuation<Void, any Error>?)
        let (task, continuation) = state.withLock { state -> Told in
            if state.result != nil { return (nil, nil) }
            if state.seats == [seat] {
                state.isCancelled = true
                return (state.task, nil)
            }
            state.seats.remove(seat)
            return (nil, state.waiting.removeValue(forKey: seat))
        }
        task?.cancel()
        continuation?.resume(throwing: ErrorMapping.cancelled)
    }

    private func ended(_ result: Result<Void, any Error>) {
        let waiting = state.withLock { state in
            state.result = result
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for continuation in waiting { continuation.resume(with: result) }
    }
}
