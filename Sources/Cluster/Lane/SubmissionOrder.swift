import DequeModule
import RaftCore
import Storage

/// What goes to the log in one piece, and what waits for it.
struct Submission: Sendable {
    let writes: [LogWrite]
    let waiting: [Persist]
    /// What it counts for in the log's queue.
    let sizeBytes: Int

    init(writes: [LogWrite], waiting: [Persist]) {
        self.writes = writes
        self.waiting = waiting
        sizeBytes = writes.reduce(0) { $0 + $1.sizeBytes }
    }

    /// A write on its way to the disk.
    struct Persist: Sendable {
        var group: GroupID
        /// What is durable once this write is.
        var state: Replica.Submitted
        var messages: [Message]
        var installed: SnapshotMark?
    }
}

/// The lane's submissions to the log that are not durable yet, in order. The order matters: an older hard state must
/// not be written behind a newer one, nor entries behind those that follow them.
///
/// The log completes submissions in order. Once it refused one, it refuses all later ones until it is resumed.
struct SubmissionOrder {
    /// What the log may have at once; a submission alone may be larger.
    private let bytesMax: Int
    /// Refused by the log; they come before all that wait.
    private var refused: [Submission] = []
    /// Not given to the log yet.
    private var waiting: Deque<Submission> = []
    /// What the log has.
    private var count = 0
    private var bytes = 0

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Whether there are submissions that the log has not taken: what comes now must wait.
    var isStalled: Bool { !refused.isEmpty || !waiting.isEmpty }

    mutating func add(_ submission: Submission) { waiting.append(submission) }

    /// The next submission for the log; nil if none waits or the log must be resumed first.
    mutating func next() -> Submission? {
        guard refused.isEmpty, let next = waiting.first, bytes == 0 || bytes + next.sizeBytes <= bytesMax else {
            return nil
        }
        waiting.removeFirst()
        count += 1
        bytes += next.sizeBytes
        return next
    }

    mutating func becameDurable(_ submission: Submission) {
        count -= 1
        bytes -= submission.sizeBytes
    }

    /// - Parameter rest: what is left to be written of a submission that the log refused.
    mutating func wasRefused(_ submission: Submission, rest: Submission) {
        becameDurable(submission)
        refused.append(rest)
    }

    /// Retries refused submissions, once the log has completed all that it had.
    /// - Returns: whether the log must be resumed.
    mutating func retry() -> Bool {
        guard !refused.isEmpty, count == 0 else { return false }
        waiting = Deque(refused) + waiting
        refused = []
        return true
    }
}
