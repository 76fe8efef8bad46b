/// A log's writer without a thread: its owner says when it works, on one thread.
final class ManualLogWriter: @unchecked Sendable {
    // The contract of `LogScheduling.manual`: `work` and `finish` are called on one thread, which makes the class safe to share.
    private let writer: LogWriter

    init(_ writer: sending LogWriter) { self.writer = writer }

    /// Does what waits, if anything does.
    func work(_ queue: SubmissionQueue) {
        let items = queue.takeWaiting()
        if !items.isEmpty { writer.work(items, of: queue) }
    }

    /// Does what is left after the queue was refused.
    func finish(_ queue: SubmissionQueue) {
        work(queue)
        writer.finish()
    }
}
