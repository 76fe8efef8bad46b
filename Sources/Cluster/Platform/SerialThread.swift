import DequeModule
import Foundation
import Storage

/// A thread that works in order. SQLite blocks, so what it does never runs on an event loop.
final class SerialThread: SerialQueue {
    private struct State {
        var queue: Deque<@Sendable () -> Void> = []
        var isStopping = false
        var isDone = false
    }

    private let state = Monitor(State())

    init(name: String) {
        let thread = Thread { [state] in
            while let work = Self.next(state) { work() }
            // Wakes who waits for the end.
            state.update { _ in }
        }
        thread.name = name
        thread.stackSize = 4 << 20
        thread.start()
    }

    func schedule(_ work: @escaping @Sendable () -> Void) {
        // After the end nothing is done, and nothing is kept: it might keep this queue alive in its turn.
        state.update { if !$0.isDone { $0.queue.append(work) } }
    }

    func stop() {
        state.update { $0.isStopping = true }
        state.wait { $0.isDone ? () : nil }
    }

    /// Waits for work; nil once all is done and the thread is to stop.
    private static func next(_ state: Monitor<State>) -> (@Sendable () -> Void)? {
        state.wait { state in
            if let work = state.queue.popFirst() { return .some(work) }
            state.isDone = state.isStopping
            return state.isDone ? .some(nil) : nil
        }
    }
}

/// A thread that does something every so often.
final class TimedThread: Rounds, @unchecked Sendable {
    // `isStopping` and `isDone` are touched only with `condition` locked, which is what makes the class safe to share.
    private let condition = NSCondition()
    private var isStopping = false
    private var isDone = false
    private let interval: Double
    private let round: @Sendable () -> Void

    init(name: String, everyMilliseconds: UInt64, _ round: @escaping @Sendable () -> Void) {
        interval = Double(everyMilliseconds) / 1_000
        self.round = round
        let thread = Thread { [self] in run() }
        thread.name = name
        thread.start()
    }

    func stop() {
        condition.lock()
        isStopping = true
        condition.broadcast()
        while !isDone { condition.wait() }
        condition.unlock()
    }

    private func run() {
        while waitForNextRound() { round() }
        condition.lock()
        isDone = true
        condition.broadcast()
        condition.unlock()
    }

    private func waitForNextRound() -> Bool {
        condition.lock()
        defer { condition.unlock() }
        if isStopping { return false }
        _ = condition.wait(until: Date(timeIntervalSinceNow: interval))
        return !isStopping
    }
}
