import Synchronization

/// Threads for work that blocks, with a bounded line before them: more is refused at once, so that the caller can be
/// told to come again.
///
/// Each piece of work has an owner, such as a container. The owners' lines are served in turn, and no owner has more
/// than half of the threads: who comes with little finds a thread at once, whatever another one has waiting. While
/// there are others, or were a moment ago, it has no more than half of the processors either: else a thread would be
/// found, and no processor for it. Others are also those whose work is done elsewhere on the machine (`note`).
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
        var isStopped = false
        /// Whose work ended last. An owner that asks for one thing after another is found here in between.
        var recent: [String] = []
        private static let recentMax = 8

        /// Takes the next work that there is a thread for.
        mutating func next(_ bounds: Bounds, parallelism: Int) -> (owner: String, work: Work)? {
            guard runningCount < bounds.threads else { return nil }
            let othersWait = queue.containerCount > 1
            let waiter = queue.next { waiter in
                let own = running[waiter.container, default: 0]
                guard own > 0, own < waiter.containerMax else { return own < waiter.containerMax }
                let isAlone =
                    !othersWait && running.count == 1 && recent.allSatisfy { $0 == waiter.container }
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
            note(owner)
        }

        mutating func note(_ owner: String) {
            if recent.count == Self.recentMax { recent.removeFirst() }
            recent.append(owner)
        }
    }

    private let threads: any WorkPool
    private let bounds: Bounds
    private let state: Mutex<State>

    /// - Parameter threads: as many as the bounds say.
    package init(_ threads: any WorkPool, _ bounds: Bounds) {
        self.threads = threads
        self.bounds = bounds
        state = Mutex(
            State(queue: FairQueue(lineMax: bounds.waitingOfOneMax, totalMax: bounds.waitingMax)))
    }

    /// How many of the threads can work at the same time, as far as the machine's processors go.
    var parallelism: Int { threads.parallelism }

    /// Work on the threads, and waiting.
    package var load: (running: Int, waiting: Int) { state.withLock { ($0.runningCount, $0.queue.count) } }

    /// False from the beginning of `stop` on: work that takes long asks, and gives up.
    package var isActive: Bool { state.withLock { !$0.isStopped } }

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

    /// Takes note of an owner whose work was done on other threads of this machine: it needs processors as well.
    package func note(_ owner: String) { state.withLock { $0.note(owner) } }

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
            state.isStopped = true
            let works = state.waiting.keys.sorted().compactMap { state.waiting[$0] }
            state.waiting = [:]
            state.queue = FairQueue(lineMax: bounds.waitingOfOneMax, totalMax: bounds.waitingMax)
            return works
        }
        for work in dropped { work(false) }
        await threads.stop()
    }

    private func startWaiting() {
        while let (owner, work) = state.withLock({ $0.next(bounds, parallelism: threads.parallelism) }) {
            threads.submit { [self] isActive in
                work(isActive)
                state.withLock { $0.end(owner) }
                startWaiting()
            }
        }
    }
}

/// The threads that a node does blocking work on. What must not wait for clients' queries has threads of its own: the
/// directory's reads, which every node's lease needs within a second, and what the log and the replicas need.
struct WorkPools: Sendable {
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
        func pool(_ bounds: BlockingPool.Bounds) -> BlockingPool {
            BlockingPool(platform.makeWorkPool(threads: bounds.threads), bounds)
        }
        reads = pool(.reads)
        directory = pool(BlockingPool.Bounds(threads: 2, waitingMax: 256))
        accounts = pool(BlockingPool.Bounds(threads: 2, waitingMax: 1_024))
        passwords = pool(BlockingPool.Bounds(threads: 2, waitingMax: 64))
        upkeep = pool(BlockingPool.Bounds(threads: 2, waitingMax: 4_096))
        snapshots = pool(BlockingPool.Bounds(threads: 1, waitingMax: 1_024))
        assets = pool(BlockingPool.Bounds(threads: 2, waitingMax: 1_024))
    }

    /// Stops all but the thread for snapshots, which ends before: what is done at a stop would wait for a copy.
    func stop() async {
        await reads.stop()
        await directory.stop()
        await accounts.stop()
        await passwords.stop()
        await upkeep.stop()
        await assets.stop()
    }
}

/// Why something found no place in a `FairQueue`.
package enum QueueFull: Error, Hashable, Sendable {
    /// Too much of its container waits already.
    case line
    /// Too much waits already.
    case total
}

/// Waiting requests in one line for each container; the lines are served in turn. A value; the caller guards it.
package struct FairQueue: Sendable {
    /// One that waits.
    package struct Waiter: Hashable, Sendable {
        /// Unique.
        package var id: UInt64
        /// Whose line it stands in.
        package var container: String
        /// How many requests of its container may be inside for it to enter.
        package var containerMax: Int

        /// Somebody who has not joined yet.
        package init(id: UInt64, container: String, containerMax: Int) {
            self.id = id
            self.container = container
            self.containerMax = containerMax
        }
    }

    /// The waiters of one container. Who went away stays in `all` until it is passed by, or they are too many.
    private struct Line: Sendable {
        var all: [Waiter] = []
        var first = 0
        /// How many still wait.
        var count = 0
    }

    /// Waiters of one container.
    private let lineMax: Int
    /// Waiters of all containers.
    private let totalMax: Int
    private var lines: [String: Line] = [:]
    /// Who waits.
    private var present: Set<UInt64> = []
    /// The containers that have a line, in the order of their turns; `turn` is who is next.
    private var order: [String] = []
    private var turn = 0

    /// - Parameters:
    ///   - lineMax: Waiters of one container.
    ///   - totalMax: Waiters of all containers.
    package init(lineMax: Int, totalMax: Int) {
        self.lineMax = lineMax
        self.totalMax = totalMax
    }

    /// Who waits, of all containers.
    package var count: Int { present.count }

    /// How many containers somebody waits of.
    package var containerCount: Int { order.count }

    /// Joins a line, or says why there is no place.
    package mutating func join(_ waiter: Waiter) -> QueueFull? {
        let length = lines[waiter.container]?.count ?? 0
        if length >= lineMax { return .line }
        if count >= totalMax { return .total }
        if length == 0 {
            // Behind everyone who waits: just before the one whose turn it is.
            order.insert(waiter.container, at: turn)
            turn = (turn + 1) % order.count
        }
        lines[waiter.container, default: Line()].all.append(waiter)
        lines[waiter.container]?.count += 1
        present.insert(waiter.id)
        return nil
    }

    /// Takes the first waiter of the next container that may enter now; the turn passes on.
    package mutating func next(where mayEnter: (Waiter) -> Bool) -> Waiter? {
        for offset in order.indices {
            let place = (turn + offset) % order.count
            guard let waiter = first(of: order[place]), mayEnter(waiter) else { continue }
            turn = (place + 1) % order.count
            remove(waiter.id, in: waiter.container)
            return waiter
        }
        return nil
    }

    /// Takes a waiter out of its line.
    @discardableResult
    package mutating func remove(_ id: UInt64, in container: String) -> Bool {
        guard present.remove(id) != nil else { return false }
        lines[container]?.count -= 1
        if lines[container]?.count == 0 {
            lines[container] = nil
            endTurns(of: container)
        } else {
            tidy(container)
        }
        return true
    }

    /// The first who still waits.
    private mutating func first(of container: String) -> Waiter? {
        while let line = lines[container], line.first < line.all.count {
            let waiter = line.all[line.first]
            if present.contains(waiter.id) { return waiter }
            lines[container]?.first += 1
        }
        return nil
    }

    private mutating func endTurns(of container: String) {
        guard let place = order.firstIndex(of: container) else { return }
        order.remove(at: place)
        if place < turn { turn -= 1 }
        if turn >= order.count { turn = 0 }
    }

    /// Removes waiters that left when they outnumber those that wait, so that each costs a constant time.
    private mutating func tidy(_ container: String) {
        guard let line = lines[container], line.all.count > 2 * line.count + 32 else { return }
        lines[container]?.all = line.all[line.first...].filter { present.contains($0.id) }
        lines[container]?.first = 0
    }
}
