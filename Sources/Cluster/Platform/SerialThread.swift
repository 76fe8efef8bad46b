import DequeModule
import Foundation

/// A thread that works in order. SQLite blocks, so what it does never runs on an event loop.
final class SerialThread: SerialQueue, @unchecked Sendable {
    // `queue`, `isStopping` and `isDone` are touched only with `condition` locked, which is what makes the class safe
    // to share.
    private let condition = NSCondition()
    private var queue: Deque<@Sendable () -> Void> = []
    private var isStopping = false
    private var isDone = false

    init(name: String) {
        let thread = Thread { [self] in run() }
        thread.name = name
        thread.stackSize = 4 << 20
        thread.start()
    }

    func schedule(_ work: @escaping @Sendable () -> Void) {
        condition.lock()
        queue.append(work)
        condition.signal()
        condition.unlock()
    }

    func stop() {
        condition.lock()
        isStopping = true
        condition.signal()
        while !isDone { condition.wait() }
        condition.unlock()
    }

    private func run() {
        while let work = next() { work() }
        condition.lock()
        isDone = true
        condition.broadcast()
        condition.unlock()
    }

    private func next() -> (@Sendable () -> Void)? {
        condition.lock()
        defer { condition.unlock() }
        while queue.isEmpty {
            if isStopping { return nil }
            condition.wait()
        }
        return queue.removeFirst()
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
