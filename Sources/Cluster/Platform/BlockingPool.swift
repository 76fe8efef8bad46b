import Synchronization

/// Threads for work that blocks, with a bounded line before them: more is refused at once, so that the caller can be
/// told to come again.
///
/// Each piece of work has an owner, such as a container. The owners' lines are served in turn, and no owner has more
/// than half of the threads: who comes with little finds a thread at once, whatever another one has waiting. While
/// there are others, or were a moment ago (`RecentWork`), it has no more than half of the processors either: else a
/// thread would be found, and no processor for it.
package final class BlockingPool: Sendable {
    /// What is to be done; with false it is not done, because the pool is stopped.
    package typealias Work = @Sendable (_ isActive: Bool) -> Void

    /// How much may run and wait.
    package struct Bounds: Hashable, Sendable {
        /// Work at once.
        package var threads: Int
        /// Threads that one owner's work may have at once.
        package var threadsOfOne: Int
        /// Work that may wait, of all owners.
        package var waitingMax: Int
        /// Work that may wait, of one.
        package var waitingOfOneMax: Int

        /// - Parameters:
        ///   - isShared: whether there are several owners, of which each has half of the threads at most.
        ///   - waitingOfOneMax: how much of one owner may wait; nil is as much as of all together.
        package init(threads: Int, waitingMax: Int, waitingOfOneMax: Int? = nil, isShared: Bool = false) {
            self.threads = threads
            threadsOfOne = isShared ? max(threads / 2, 1) : threads
            self.waitingMax = waitingMax
            self.waitingOfOneMax = waitingOfOneMax ?? waitingMax
        }

        /// Those of a node's reads of shards.
        package static let reads = Bounds(threads: 4, waitingMax: 1_024, waitingOfOneMax: 256, isShared: true)
    }

    private struct State {
        var queue: FairQueue
        var waiting: [UInt64: Work] = [:]
        /// Work on the threads, of each owner that has any there.
        var running: [String: Int] = [:]
        var runningCount = 0
        var lastID: UInt64 = 0

        /// Takes the next work that there is a thread for.
        mutating func next(_ bounds: Bounds, parallelism: Int, _ recent: RecentWork?) -> (owner: String, work: Work)? {
            guard runningCount < bounds.threads else { return nil }
            let othersWait = queue.containerCount > 1
            let waiter = queue.next { waiter in
                let own = running[waiter.container, default: 0]
                guard own > 0, own < waiter.containerMax else { return own < waiter.containerMax }
                let isAlone =
                    !othersWait && running.count == 1 && recent?.hasOthers(than: waiter.container) != true
                return isAlone || own < max(parallelism / 2, 1)
            }
            guard let waiter, let work = waiting.removeValue(forKey: waiter.id) else { return nil }
            running[waiter.container, default: 0] += 1
            runningCount += 1
            return (waiter.container, work)
        }

        mutating func end(_ owner: String) {
            let left = running[owner, default: 0] - 1
            running[owner] = left > 0 ? left : nil
            runningCount -= 1
        }
    }

    private let threads: any WorkPool
    private let bounds: Bounds
    private let recent: RecentWork?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - threads: as many as the bounds say.
    ///   - recent: whose work was done on this machine; nil where only owners with work here are others.
    package init(_ threads: any WorkPool, _ bounds: Bounds, beside recent: RecentWork? = nil) {
        self.threads = threads
        self.bounds = bounds
        self.recent = recent
        state = Mutex(
            State(queue: FairQueue(lineMax: bounds.waitingOfOneMax, totalMax: bounds.waitingMax)))
    }

    /// How many of the threads can work at the same time, as far as the machine's processors go.
    var parallelism: Int { threads.parallelism }

    /// Work on the threads, and waiting.
    package var load: (running: Int, waiting: Int) { state.withLock { ($0.runningCount, $0.queue.count) } }

    /// Has work done in its turn: with true on one of the threads; with false, anywhere, when the pool is stopped.
    /// - Throws: where as much waits as may, of the owner or in all. Then it is not done.
    package func submit(for owner: String = "", _ work: @escaping Work) throws(QueueFull) {
        let refusal = state.withLock { state -> QueueFull? in
            state.lastID += 1
            let waiter = FairQueue.Waiter(id: state.lastID, container: owner, containerMax: bounds.threadsOfOne)
            if let refusal = state.queue.join(waiter) { return refusal }
            state.waiting[waiter.id] = work
            return nil
        }
        if let refusal { throw refusal }
        startWaiting()
    }

    /// Does work that may fail and waits for its result.
    /// - Throws: what the work throws; `QueueFull`; `CancellationError` when the pool is stopped.
    package func run<Value: Sendable>(
        for owner: String = "", _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            do throws(QueueFull) {
                try submit(for: owner) { isActive in
                    continuation.resume(with: isActive ? Result { try work() } : .failure(CancellationError()))
                }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    /// Drops what waits, and waits for the end of what runs.
    package func stop() async {
        let dropped = state.withLock { state in
            let works = state.waiting.keys.sorted().compactMap { state.waiting[$0] }
            state.waiting = [:]
            state.queue = FairQueue(lineMax: bounds.waitingOfOneMax, totalMax: bounds.waitingMax)
            return works
        }
        for work in dropped { work(false) }
        await threads.stop()
    }

    private func startWaiting() {
        while let (owner, work) = state.withLock({ $0.next(bounds, parallelism: threads.parallelism, recent) }) {
            threads.submit { [self] isActive in
                work(isActive)
                recent?.note(owner)
                state.withLock { $0.end(owner) }
                startWaiting()
            }
        }
    }
}

/// The threads that a node does blocking work on. What must not wait for clients' queries has threads of its own: the
/// directory's reads, which every node's lease needs within a second, and what the log and the replicas need.
struct WorkPools: Sendable {
    /// Whose requests the node worked on, here or as leader or follower.
    let recent: RecentWork
    /// Reads of shards, by container.
    let reads: BlockingPool
    let directory: BlockingPool
    /// Reads of accounts and sessions from this node's copy of the directory.
    let accounts: BlockingPool
    /// Hashes of passwords, each of which takes 32 MiB of memory and about a tenth of a second on purpose.
    let passwords: BlockingPool
    /// Log entries for followers that lag, scrubbing, and looking for space and due work.
    let upkeep: BlockingPool
    /// Copies of whole databases, one at a time.
    let snapshots: BlockingPool
    /// Files of assets.
    let assets: BlockingPool

    init(_ platform: any NodePlatform) {
        func pool(_ bounds: BlockingPool.Bounds, beside recent: RecentWork? = nil) -> BlockingPool {
            BlockingPool(platform.makeWorkPool(threads: bounds.threads), bounds, beside: recent)
        }
        recent = RecentWork { platform.clock.now }
        reads = pool(.reads, beside: recent)
        directory = pool(BlockingPool.Bounds(threads: 2, waitingMax: 256))
        accounts = pool(BlockingPool.Bounds(threads: 2, waitingMax: 1_024))
        passwords = pool(BlockingPool.Bounds(threads: 2, waitingMax: 64))
        upkeep = pool(BlockingPool.Bounds(threads: 2, waitingMax: 4_096))
        snapshots = pool(BlockingPool.Bounds(threads: 1, waitingMax: 1_024))
        assets = pool(BlockingPool.Bounds(threads: 2, waitingMax: 1_024))
    }

    func stop() async {
        await reads.stop()
        await directory.stop()
        await accounts.stop()
        await passwords.stop()
        await upkeep.stop()
        await snapshots.stop()
        await assets.stop()
    }
}
