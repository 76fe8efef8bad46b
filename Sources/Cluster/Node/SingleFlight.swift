import Synchronization

/// Runs one refresh at a time. A caller gets the result of one that began after its call.
final class SingleFlight: Sendable {
    private typealias Waiter = CheckedContinuation<Result<Void, ClusterError>, Never>

    private struct State {
        var isRunning = false
        /// Those who came while one was running; the next is theirs.
        var waiting: [Waiter] = []
    }

    private let platform: any NodePlatform
    private let state = Mutex(State())

    init(platform: any NodePlatform) { self.platform = platform }

    /// Waits for the refresh that begins next, and begins it once the running one is done.
    func next(_ refresh: @escaping @Sendable () async -> Result<Void, ClusterError>) async -> Result<Void, ClusterError>
    {
        await withCheckedContinuation { waiter in
            let isFirst = state.withLock { state in
                state.waiting.append(waiter)
                defer { state.isRunning = true }
                return !state.isRunning
            }
            if isFirst { platform.startTask { [self] in await run(refresh) } }
        }
    }

    /// Refreshes until nobody waits any more.
    private func run(_ refresh: @Sendable () async -> Result<Void, ClusterError>) async {
        while let waiting = takeWaiting() {
            let result = await refresh()
            for waiter in waiting { waiter.resume(returning: result) }
        }
    }

    private func takeWaiting() -> [Waiter]? {
        state.withLock { state in
            if state.waiting.isEmpty {
                state.isRunning = false
                return nil
            }
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}
