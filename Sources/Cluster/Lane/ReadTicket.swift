import RaftCore
import Synchronization

/// Whether anybody still wants the answer to a read. It goes with the read, which asks before it begins and again while
/// it works.
final class ReadTicket: Sendable {
    /// Whose read it is: containers take turns.
    let container: String
    private let deadline: MonotonicTime
    private let now: @Sendable () -> MonotonicTime
    private let isCancelled = Atomic(false)

    init(container: String, until deadline: MonotonicTime, now: @escaping @Sendable () -> MonotonicTime) {
        self.container = container
        self.deadline = deadline
        self.now = now
    }

    var isWanted: Bool { !isCancelled.load(ordering: .relaxed) && now() < deadline }

    /// The caller has gone away.
    func cancel() { isCancelled.store(true, ordering: .relaxed) }
}

/// A read that may run: everything that was acknowledged before it is applied.
struct ReaderRead: Sendable {
    var request: [UInt8]
    var group: GroupID
    var applier: Applier
    var ticket: ReadTicket
    var completion: Completion
}
