import NIOPosix
import RecordModel
import Synchronization

/// Runs work that keeps a thread busy for long, such as hashing a password, away from event loops: few pieces at a time, a bounded
/// number waiting, the rest refused.
///
/// A password costs 32 MiB of memory and about a tenth of a second on purpose; without a bound, attempts would starve the node.
final class BlockingPool: Sendable {
    private struct State {
        var running = 0
        var waiting: [CheckedContinuation<Bool, Never>] = []
    }

    private let state = Mutex(State())
    private let runningMax: Int
    private let waitingMax: Int

    /// - Parameters:
    ///   - runningMax: pieces of work at the same time.
    ///   - waitingMax: pieces that may wait for their turn; more are refused.
    init(runningMax: Int = 2, waitingMax: Int = 64) {
        self.runningMax = runningMax
        self.waitingMax = waitingMax
    }

    /// The work's result.
    /// - Throws: `TRY_AGAIN_LATER` where too much is waiting already, and what the work throws.
    func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws(ServiceError) -> Value
    ) async throws(ServiceError) -> Value {
        guard await enter() else {
            throw ServiceError(
                .tryAgainLater, "too many sign-ins are being checked at this moment", retryAfterSeconds: 2)
        }
        defer { leave() }
        let result: Result<Value, ServiceError>
        do {
            result = try await NIOThreadPool.singleton.runIfActive {
                Result { () throws(ServiceError) -> Value in try work() }
            }
        } catch {
            throw ServiceError(.tryAgainLater, "this node is stopping", retryAfterSeconds: 1)
        }
        return try result.get()
    }

    /// Waits for a place. Whoever leaves hands the place on, so a waiter that is woken has it.
    /// - Returns: false, at once, where too many wait.
    private func enter() async -> Bool {
        await withCheckedContinuation { continuation in
            let answer = state.withLock { state -> Bool? in
                if state.running < runningMax {
                    state.running += 1
                    return true
                }
                guard state.waiting.count < waitingMax else { return false }
                state.waiting.append(continuation)
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.running -= 1
            return nil
        }
        next?.resume(returning: true)
    }
}
