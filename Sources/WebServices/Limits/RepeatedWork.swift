import Synchronization

/// Work that goes on beside the requests: done again and again, with a pause before each time, until it is stopped.
final class RepeatedWork: Sendable {
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Begins it.
    func start(everyMilliseconds pause: Int64, _ work: @escaping @Sendable () async -> Void) {
        task.withLock { task in
            task = Task {
                while !Task.isCancelled {
                    try? await Task.sleep(for: .milliseconds(pause))
                    await work()
                }
            }
        }
    }

    /// Ends it; what is underway is not waited for.
    func stop() { task.withLock { $0.take() }?.cancel() }
}
