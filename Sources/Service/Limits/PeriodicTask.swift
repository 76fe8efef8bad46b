import Cluster
import Synchronization

/// Work that goes on beside the requests: done again and again, with a pause before each time, until it is stopped.
final class PeriodicTask: Sendable {
    private let platform: any NodePlatform
    private let task = Mutex<Task<Void, Never>?>(nil)

    init(platform: any NodePlatform) { self.platform = platform }

    func start(everyMilliseconds pause: UInt64, _ work: @escaping @Sendable () async -> Void) {
        task.withLock { task in
            task = platform.startTask { [clock = platform.clock] in
                while !Task.isCancelled {
                    try? await clock.sleep(milliseconds: pause)
                    await work()
                }
            }
        }
    }

    /// Ends it; what is underway is not waited for.
    func stop() { task.withLock { $0.take() }?.cancel() }

    /// Ends it, and waits for what is underway.
    func finish() async {
        let task = task.withLock { $0.take() }
        task?.cancel()
        await task?.value
    }
}
