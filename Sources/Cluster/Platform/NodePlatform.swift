package import Logging
package import NIOCore
package import PeerTransport
package import RaftCore
package import Storage

/// What a node takes from the machine it runs on: time, chance, threads, and the way to its peers.
///
/// The system's is `SystemPlatform`. A simulator gives one on which many nodes run in one thread and in virtual time;
/// everything else of a node is then the code that runs in production.
package protocol NodePlatform: Sendable {
    /// Carries the node's lane.
    var eventLoop: any EventLoop { get }
    var clock: any NodeClock { get }
    /// Who does the work of the raft log.
    var logScheduling: LogScheduling { get }
    /// For what must differ between nodes and starts, such as incarnations and election timeouts, and for secrets: what
    /// the system gives nobody can guess.
    func random() -> UInt64
    /// Threads for work that blocks.
    func makeWorkPool(threads: Int) -> any WorkPool
    /// A thread that works in order.
    func makeSerialQueue(name: String) -> any SerialQueue
    /// A thread that does something every so often, from now on.
    func makeRounds(
        name: String, everyMilliseconds: UInt64, _ round: @escaping @Sendable () -> Void
    ) -> any Rounds
    func makeNetwork(
        _ configuration: PeerTransportConfiguration, delegate: any PeerTransportDelegate, logger: Logger
    ) throws -> any PeerNetwork
    /// Starts a task that belongs to no other.
    @discardableResult
    func startTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never>
}

extension NodePlatform {
    /// The time by which what begins now is done.
    func deadline(milliseconds: UInt64) -> Deadline { Deadline(milliseconds: milliseconds, from: clock.now) }
}

/// What time it is, and how to wait.
package protocol NodeClock: Sendable {
    /// For elections, leases and deadlines; counts suspension.
    var now: MonotonicTime { get }
    /// Milliseconds since 1970; may jump.
    var wallMilliseconds: Int64 { get }
    /// - Throws: `CancellationError` when the task is cancelled.
    func sleep(milliseconds: UInt64) async throws
}

/// Threads for work that blocks: reads of databases and of the log, copies of files. What waits for them, and in which
/// order, is the matter of the `BlockingPool` before them.
package protocol WorkPool: Sendable {
    /// How many of the threads can work at the same time, as far as the machine's processors go.
    var parallelism: Int { get }
    /// Calls back on one of the threads, with true; with false, anywhere, when the pool is stopped.
    func submit(_ work: @escaping @Sendable (_ isActive: Bool) -> Void)
    func stop() async
}

/// A thread that does its work in order.
package protocol SerialQueue: Sendable {
    /// Has something done after everything that was scheduled before; never, where the queue has ended.
    func schedule(_ work: @escaping @Sendable () -> Void)
    /// Finishes what is queued and waits for the end.
    func stop()
}

/// Something done every so often, one at a time.
package protocol Rounds: Sendable {
    /// Ends them, and waits for the one that is underway.
    func stop()
}

extension NodePlatform {
    /// Starts a task that does something after a time, unless it is cancelled before.
    func startTask(
        after milliseconds: UInt64, _ body: @escaping @Sendable () async -> Void
    ) -> Task<Void, Never> {
        startTask {
            do { try await clock.sleep(milliseconds: milliseconds) } catch { return }
            await body()
        }
    }
}

extension WorkPool {
    /// As many as there are.
    package var parallelism: Int { .max }
}
