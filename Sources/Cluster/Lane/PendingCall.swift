import Synchronization

/// A caller that waits on this node; the first of several results is its answer.
final class PendingCall: Sendable {
    /// What it is answered when its time is over.
    let overdue: ReplicaError
    private let continuation: Mutex<CheckedContinuation<Result<[UInt8], ReplicaError>, Never>?>

    init(_ continuation: CheckedContinuation<Result<[UInt8], ReplicaError>, Never>, overdue: ReplicaError) {
        self.overdue = overdue
        self.continuation = Mutex(continuation)
    }

    func resume(_ result: Result<[UInt8], ReplicaError>) {
        continuation.withLock { $0.take() }?.resume(returning: result)
    }
}
