import Foundation

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
