import DequeModule
import Foundation
import RaftCore

/// A thread that drains appliers in the order in which they got work. SQLite blocks, so it never runs on an event loop.
final class ApplyWorker: @unchecked Sendable {
    // `queue` and `isStopping` are touched only with `condition` locked, which is what makes the class safe to share.
    private let condition = NSCondition()
    private var queue: Deque<Applier> = []
    private var isStopping = false
    private var isDone = false
    private let report: @Sendable (Applier, Applier.Progress) -> Void

    /// - Parameter report: called on the worker's thread with what each transaction came to.
    init(name: String, report: @escaping @Sendable (Applier, Applier.Progress) -> Void) {
        self.report = report
        let thread = Thread { [self] in run() }
        thread.name = name
        thread.stackSize = 4 << 20
        thread.start()
    }

    /// Hands over an applier that has work.
    func schedule(_ applier: Applier) {
        condition.lock()
        queue.append(applier)
        condition.signal()
        condition.unlock()
    }

    /// Finishes what is queued and waits for the thread's end.
    func stop() {
        condition.lock()
        isStopping = true
        condition.signal()
        while !isDone { condition.wait() }
        condition.unlock()
    }

    private func run() {
        while let applier = next() {
            applier.drain { report(applier, $0) }
        }
        condition.lock()
        isDone = true
        condition.broadcast()
        condition.unlock()
    }

    private func next() -> Applier? {
        condition.lock()
        defer { condition.unlock() }
        while queue.isEmpty {
            if isStopping { return nil }
            condition.wait()
        }
        return queue.removeFirst()
    }
}
