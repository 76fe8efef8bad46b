package import KeyValueStore
package import RaftCore
import Synchronization

/// What changed on this node, for those who wait for it.
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
/// Every replica rings for what it applies, leader or not, so that a watch on a node with a replica needs no
/// leader to be woken. News may come twice, and for commands that changed nothing; none is left out. The listener is
/// called on the apply threads.
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
