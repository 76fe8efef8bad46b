package import KeyValueStore
package import RaftCore
import Synchronization

/// Runs one refresh at a time. A caller gets the result of one that began after its call.
final class SingleFlight: Sendable {
    private typealias Waiter = CheckedContinuation<Result<Void, ClusterError>, Never>

    private struct State {
        var isRunning = false
        /// Callers that came while one was running; the next is theirs.
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

    /// Refreshes until no caller waits.
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

/// Notifies waiters of changes on this node.
package enum ChangeNews: Hashable, Sendable {
    /// These key-value stores, each once, in a group of which this node holds a replica.
    case stores([StoreKey], in: GroupID)
    /// Perhaps every store of the group: a snapshot was installed, or a restore began new incarnations.
    case everyStore(in: GroupID)
    /// What this node knows of the directory: tokens, sessions, roles.
    case directory
}

/// Tells the layers above what apply changed, once it is in the database.
///
/// Every replica rings for what it applies, leader or not, so that a watch on a node with a replica hears of changes
/// also while no leader answers.
/// Each change is reported at least once; commands that changed nothing may be reported, too. The listener is called on
/// the apply threads.
package typealias ChangeBell = Bell<ChangeNews>

/// Tells one listener of news. The listener may come after the one who rings; until then news are dropped.
package final class Bell<News>: Sendable {
    private let listener = Mutex<(@Sendable (News) -> Void)?>(nil)

    init() {}

    /// Sets the listener. It is called on the threads that ring: short, and never blocking.
    package func listen(_ body: @escaping @Sendable (News) -> Void) { listener.withLock { $0 = body } }

    func ring(_ news: News) {
        // Called without the lock.
        let body = listener.withLock(\.self)
        body?(news)
    }
}
