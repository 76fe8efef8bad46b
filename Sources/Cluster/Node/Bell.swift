import Synchronization

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
