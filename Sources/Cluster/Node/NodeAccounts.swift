package import Directory
import NIOCore
import RaftCore
import Storage

/// Accounts and sessions, as a node's own copy of the directory has them: rows of a database, of which only the
/// sessions in use are in memory.
///
/// A caller makes sure first that the copy may be relied on (`requireDirectory`); what was acknowledged before that is
/// in what is read.
package struct NodeAccounts: Sendable {
    private let node: ClusterNode

    /// Those of a node that is open.
    package init(of node: ClusterNode) { self.node = node }

    /// For what makes and checks hashes of passwords.
    package var passwords: BlockingPool { node.pools.passwords }

    /// Answers questions from one snapshot of the copy.
    /// - Throws: `ClusterError.unavailable` where too many wait, this node has no copy now, or its disk fails.
    package func read<Value: Sendable>(
        _ read: @escaping @Sendable (AccountReader) throws -> Value
    ) async throws(ClusterError) -> Value {
        guard let applier = node.holdings[.directory] else {
            throw .unavailable("this node has no copy of the directory")
        }
        do {
            return try await node.pools.accounts.run { try applier.database.read { try read(AccountReader($0)) } }
        } catch is QueueFull {
            throw .unavailable("too many questions about users wait on this node")
        } catch is CancellationError {
            throw .unavailable("this node is stopping")
        } catch {
            if DataDamage.isDamage(error) {
                node.lane.eventLoop.execute { [lane = node.lane] in lane.damaged(.directory, error, .reading) }
            }
            throw .unavailable("reading the directory failed: \(error)")
        }
    }

    /// The session that a web auth token speaks for: from memory where it was in use lately.
    /// - Throws: what `read` throws.
    package func session(_ key: SessionKey) async throws(ClusterError) -> Session? {
        if let session = node.directory.session(key) { return session }
        return try await read { [directory = node.directory] in try directory.readSession(key, $0) }
    }
}
