import Synchronization
import TestSupport
import Testing

@testable import Cluster

@Suite("The threads for work that blocks, and the lines before them")
struct BlockingPoolTests {
    /// Threads whose work ends when the test says so.
    private final class HeldThreads: WorkPool {
        let works = Mutex<[@Sendable (Bool) -> Void]>([])
        let parallelism: Int

        init(parallelism: Int = .max) { self.parallelism = parallelism }

        func submit(_ work: @escaping @Sendable (Bool) -> Void) { works.withLock { $0.append(work) } }
        func stop() async {}

        /// Ends what began first; false where nothing runs.
        @discardableResult
        func endOne() -> Bool {
            guard let work = works.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return false }
            work(true)
            return true
        }
    }

    private let threads = HeldThreads()
    private let done = Done()
    private let clock = HandClock()

    /// The names of work that was done, in order.
    private final class Done: Sendable {
        let names = Mutex<[String]>([])
        func add(_ name: String) { names.withLock { $0.append(name) } }
        var all: [String] { names.withLock(\.self) }
    }

    private func pool(
        threads count: Int, waitingMax: Int = 100, waitingOfOneMax: Int? = nil, isShared: Bool = true
    ) -> BlockingPool {
        BlockingPool(
            threads,
            BlockingPool.Bounds(
                threads: count, waitingMax: waitingMax, waitingOfOneMax: waitingOfOneMax, isShared: isShared))
    }

    /// Four threads on two processors, and whose work was done a moment ago.
    private func poolOfTwoProcessors() -> (HeldThreads, BlockingPool, RecentWork) {
        let threads = HeldThreads(parallelism: 2)
        let recent = RecentWork { [clock] in clock.now }
        let bounds = BlockingPool.Bounds(threads: 4, waitingMax: 100, isShared: true)
        return (threads, BlockingPool(threads, bounds, beside: recent), recent)
    }

    private func submit(_ owner: String, to pool: BlockingPool) throws {
        try pool.submit(for: owner) { [done] isActive in done.add(isActive ? owner : "no " + owner) }
    }

    @Test("one owner has half of the threads at most, so that another finds one at once")
    func half() throws {
        let pool = pool(threads: 4)
        for _ in 0..<10 { try submit("heavy", to: pool) }
        #expect(pool.load == (2, 8))
        try submit("light", to: pool)
        #expect(pool.load == (3, 8))
        while threads.endOne() {}
        #expect(done.all.count == 11 && done.all.firstIndex(of: "light") == 2 && pool.load == (0, 0))
    }

    @Test("beside another one an owner has half of the processors, until the other one asks for nothing any more")
    func processors() throws {
        let (threads, pool, _) = poolOfTwoProcessors()
        for _ in 0..<20 { try submit("heavy", to: pool) }
        #expect(pool.load == (2, 18), "alone it has half of the threads")
        try submit("light", to: pool)
        #expect(pool.load == (3, 18))
        // Its next work begins only once it has no other.
        threads.endOne()
        #expect(pool.load == (2, 18))
        threads.endOne()
        #expect(pool.load == (2, 17))
        threads.endOne()
        #expect(pool.load == (1, 17), "the light one asks again in a moment")
        try submit("light", to: pool)
        #expect(pool.load == (2, 17))
        clock.advance(milliseconds: RecentWork.memoryMilliseconds - 1)
        for _ in 0..<2 { threads.endOne() }
        clock.advance(milliseconds: RecentWork.memoryMilliseconds - 1)
        for _ in 0..<2 { threads.endOne() }
        #expect(pool.load.running == 1)
        clock.advance(milliseconds: 1)
        threads.endOne()
        #expect(pool.load.running == 2, "the light one has gone")
        while threads.endOne() {}
        #expect(pool.load == (0, 0))
    }

    @Test("beside one whose work is done on other threads an owner has half of the processors, too")
    func otherThreads() throws {
        let (threads, pool, recent) = poolOfTwoProcessors()
        recent.note("heavy")
        // The cluster's own work.
        recent.note("")
        for _ in 0..<20 { try submit("heavy", to: pool) }
        #expect(pool.load == (2, 18), "it is alone")
        recent.note("light")
        for waiting in [18, 17, 16, 15] {
            threads.endOne()
            #expect(pool.load == (1, waiting))
        }
        clock.advance(milliseconds: RecentWork.memoryMilliseconds)
        threads.endOne()
        #expect(pool.load.running == 2, "the light one has gone")
    }

    @Test("owners take turns, whoever has more waiting")
    func turns() throws {
        let pool = pool(threads: 2)
        for _ in 0..<3 { try submit("a", to: pool) }
        for _ in 0..<3 { try submit("b", to: pool) }
        try submit("c", to: pool)
        while threads.endOne() {}
        #expect(done.all == ["a", "b", "a", "b", "c", "a", "b"])
    }

    @Test("what finds no place is refused at once and never done, of one owner and in all")
    func bounds() throws {
        let pool = pool(threads: 2, waitingMax: 3, waitingOfOneMax: 2)
        for _ in 0..<3 { try submit("a", to: pool) }
        #expect(throws: QueueFull.line) { try submit("a", to: pool) }
        for _ in 0..<2 { try submit("b", to: pool) }
        #expect(throws: QueueFull.total) { try submit("c", to: pool) }
        while threads.endOne() {}
        #expect(done.all.sorted() == ["a", "a", "a", "b", "b"])
        try submit("c", to: pool)
        threads.endOne()
        #expect(done.all.last == "c")
    }

    @Test("a pool of one owner uses all its threads")
    func unshared() throws {
        let pool = pool(threads: 2, isShared: false)
        for _ in 0..<3 { try submit("", to: pool) }
        #expect(pool.load == (2, 1))
    }

    @Test("what waits when the pool stops is told so, and what runs ends")
    func stop() async throws {
        let pool = pool(threads: 1, isShared: false)
        for _ in 0..<3 { try submit("a", to: pool) }
        await pool.stop()
        #expect(done.all == ["no a", "no a"])
        threads.endOne()
        #expect(done.all == ["no a", "no a", "a"] && pool.load == (0, 0))
    }

    @Test("work on real threads gives its result or its error, however much there is")
    func results() async throws {
        let pool = BlockingPool(SystemThreads(3), BlockingPool.Bounds(threads: 3, waitingMax: 1_000, isShared: true))
        let sum = try await withThrowingTaskGroup(of: Int.self) { tasks in
            for number in 0..<500 {
                tasks.addTask { try await pool.run(for: "\(number % 7)") { number } }
            }
            return try await tasks.reduce(0, +)
        }
        #expect(sum == 499 * 250)
        await #expect(throws: QueueFull.line) { try await pool.run { throw QueueFull.line } }
        await pool.stop()
        #expect(pool.load == (0, 0))
        await #expect(throws: CancellationError.self) { try await pool.run { 1 } }
    }
}
