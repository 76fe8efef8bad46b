import Dispatch
import Synchronization

extension PreferenceEngine {
    /// Returns when no transaction and no request is under way. Timers and the watch may still begin some.
    func idle() async { await work.idle() }

    /// Returns when the store has reached a state; for `settled` everything is sent and fetched now.
    /// - Throws: `SyncError`: why an attempt failed (it is repeated in the background), or which writes were refused;
    ///   `CancellationError`.
    func wait(for goal: PreferenceWaiters.Goal) async throws {
        let id = waiters.nextID()
        guard state.withLock({ $0.service != nil }) else {
            throw SyncError(
                code: .notSignedIn,
                description: "nobody is signed in, or no server is configured; preferences stay on this device")
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let isClosed = state.withLock { state in
                    if !state.isClosed { waiters.add(id, goal, continuation) }
                    return state.isClosed
                }
                if isClosed { return continuation.resume(throwing: SyncError.closed) }
                if Task.isCancelled { return waiters.fail(CancellationError()) { $0.id == id } }
                if goal == .settled { inquiry.hurry() }
                enqueue(goal == .settled ? .syncRequested : .woken)
            }
        } onCancel: {
            waiters.fail(CancellationError()) { $0.id == id }
        }
    }

    /// Ends the waits for a synchronization that cannot go on for a while: callers learn the reason at once.
    func failStalledWaiters() {
        let now = dependencies.clock.now
        let reason = state.withLock { state -> String? in
            guard waiters.awaitSettling else { return nil }
            if state.core.account == nil { return inquiry.isUnderWay ? nil : state.serviceProblem }
            guard let until = state.core.stalledUntil(now) else { return nil }
            return (state.serviceProblem ?? "the server did not take the last request")
                + "; the next attempt is in \((until - now + 999) / 1000) s"
        }
        if let reason { waiters.fail(SyncError(code: .unavailable, description: reason), where: \.awaitsSettling) }
    }
}

typealias SyncError = NSUbiquitousKeyValueStore.SyncError

extension SyncError {
    static var closed: SyncError { SyncError(code: .closed, description: "the store was closed") }
}

/// The callers that wait for the store to reach a state. Any thread.
final class PreferenceWaiters: Sendable {
    enum Goal {
        /// The server's values were read to their end, now or in an earlier run.
        case initialSync
        /// Everything is sent and fetched.
        case settled
    }

    struct Waiter: Sendable {
        var id: Int
        var goal: Goal
        /// Whether the request to synchronize was handled. Before that, the store may look settled without being so.
        var isArmed: Bool
        var refusals: [PreferenceRefusal] = []
        var continuation: CheckedContinuation<Void, any Error>

        /// Whether the caller asked for a synchronization that has begun.
        var awaitsSettling: Bool { goal == .settled && isArmed }

        func succeed() {
            if goal == .settled, !refusals.isEmpty {
                continuation.resume(
                    throwing: SyncError(
                        code: .refused, description: refusals.map(\.reason).joined(separator: "; "),
                        refusals: refusals.map { .init($0) }))
            } else {
                continuation.resume()
            }
        }
    }

    private let state = Mutex((waiters: [Waiter](), count: 0))

    var hasArmed: Bool { state.withLock { $0.waiters.contains(where: \.isArmed) } }
    var awaitSettling: Bool { state.withLock { $0.waiters.contains(where: \.awaitsSettling) } }

    func nextID() -> Int {
        state.withLock { state in
            state.count += 1
            return state.count
        }
    }

    func add(_ id: Int, _ goal: Goal, _ continuation: CheckedContinuation<Void, any Error>) {
        let waiter = Waiter(id: id, goal: goal, isArmed: goal == .initialSync, continuation: continuation)
        state.withLock { $0.waiters.append(waiter) }
    }

    /// The request to synchronize is handled: from now on, a settled store is one that carried it out.
    func arm() {
        state.withLock { state in
            for index in state.waiters.indices { state.waiters[index].isArmed = true }
        }
    }

    /// Adds refusals to every waiter, and removes those whose goal is reached.
    func takeReached(isSettled: Bool, isSynced: Bool, refusals: [PreferenceRefusal]) -> [Waiter] {
        state.withLock { state in
            for index in state.waiters.indices { state.waiters[index].refusals += refusals }
            return Self.take(from: &state.waiters) { $0.isArmed && ($0.goal == .settled ? isSettled : isSynced) }
        }
    }

    func fail(_ problem: any Error, where matches: (Waiter) -> Bool) {
        for waiter in state.withLock({ Self.take(from: &$0.waiters, where: matches) }) {
            waiter.continuation.resume(throwing: problem)
        }
    }

    private static func take(from waiters: inout [Waiter], where matches: (Waiter) -> Bool) -> [Waiter] {
        let taken = waiters.filter(matches)
        if !taken.isEmpty { waiters.removeAll(where: matches) }
        return taken
    }
}

/// Counts the transactions and requests under way, for tests and for a program that is about to end.
final class WorkCounter: Sendable {
    private let state = Mutex((count: 0, idlers: [CheckedContinuation<Void, Never>]()))

    func begin() { state.withLock { $0.count += 1 } }

    func end() {
        let idlers = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.count -= 1
            guard state.count == 0 else { return [] }
            defer { state.idlers = [] }
            return state.idlers
        }
        for idler in idlers { idler.resume() }
    }

    func idle() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if state.count > 0 { state.idlers.append(continuation) }
                return state.count == 0
            }
            if isIdle { continuation.resume() }
        }
    }
}

/// An asynchronous event that resets itself when its one waiter has seen it.
final class AutoResetEvent: Sendable {
    private struct State {
        var isSet = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// Wakes the waiter; without one, the next `wait` returns at once.
    func signal() {
        let waiter = state.withLock { state in
            defer { state.waiter = nil }
            state.isSet = state.waiter == nil
            return state.waiter
        }
        waiter?.resume()
    }

    /// Returns at the next signal; at once if there was one since the last `wait` returned.
    func wait() async {
        await withCheckedContinuation { continuation in
            let isSet = state.withLock { state in
                if state.isSet {
                    state.isSet = false
                    return true
                }
                state.waiter = continuation
                return false
            }
            if isSet { continuation.resume() }
        }
    }
}

/// A connection of the watch, or the pause after one: either ends when another session comes into use. Any thread.
final class WatchStep: Sendable {
    private struct State {
        /// Of the session in use.
        var epoch = 0
        var end: @Sendable () -> Void = {}
    }

    private let state = Mutex(State())

    func sessionBegan(_ epoch: Int) {
        let end = state.withLock { state in
            state.epoch = epoch
            return state.end
        }
        end()
    }

    /// Runs the body, which is cancelled with the caller's task, and when its session is not in use any more.
    func connect(epoch: Int, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let connection = Task { try await body() }
        onEnd(of: epoch) { connection.cancel() }
        try await withTaskCancellationHandler {
            try await connection.value
        } onCancel: {
            connection.cancel()
        }
    }

    /// Waits so many milliseconds, or until the session is not in use any more.
    func pause(_ milliseconds: Int64, epoch: Int, by clock: any PreferenceClock, on queue: DispatchQueue) async {
        let end = AutoResetEvent()
        clock.after(milliseconds, on: queue) { end.signal() }
        onEnd(of: epoch) { end.signal() }
        await end.wait()
    }

    private func onEnd(of epoch: Int, _ end: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            state.end = end
            return state.epoch > epoch
        }
        if isOver { end() }
    }
}

/// How long to wait between two connections of a watch.
struct WatchBackoff: Sendable {
    /// Connections in a row that brought no pages.
    private var failures = 0

    /// A connection ended.
    /// - Parameters:
    ///   - broughtPages: whether it brought any. One that ends at once must not be opened again at once.
    ///   - requested: the pause that the server asked for, in milliseconds.
    /// - Returns: the bounds of the pause in milliseconds. Draw it at random, so that devices do not reconnect
    ///   together.
    mutating func ended(broughtPages: Bool, requested: Int64?) -> ClosedRange<Int64> {
        if broughtPages { failures = 0 }
        let own: Int64 = broughtPages ? 0 : min(60_000, 250 << Int64(min(failures, 8)))
        if !broughtPages { failures += 1 }
        let least = min(max(requested ?? 0, own), 86_400_000)
        return least...(least + max(own, requested == nil ? 0 : 250) / 4)
    }
}

/// The time, and calls at a later time.
protocol PreferenceClock: Sendable {
    /// Milliseconds of a clock that does not jump.
    var now: Int64 { get }
    /// Calls `body` on the queue when at least so many milliseconds have passed.
    func after(_ milliseconds: Int64, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void)
}

struct SystemPreferenceClock: PreferenceClock {
    var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }

    func after(_ milliseconds: Int64, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(milliseconds)), execute: body)
    }
}
