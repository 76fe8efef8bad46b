import Synchronization
import Testing

@testable import CloudKit

@Suite("Work that several tasks wait for")
struct SharedWorkTests {
    /// Work that ends when the test says so, or when it is cancelled.
    private final class Job: Sendable {
        let work = SharedWork()
        private let (gate, opener) = AsyncStream.makeStream(of: Void.self)
        private let cancelled = Mutex(false)
        var wasCancelled: Bool { cancelled.withLock { $0 } }

        func begin() -> Int {
            work.begin { [self] in
                for await _ in gate { return }
                cancelled.withLock { $0 = true }
                throw ErrorMapping.cancelled
            }
        }

        func open() { opener.yield() }
    }

    /// Whether the wait was cancelled.
    private func wait(_ work: SharedWork, _ seat: Int) -> Task<Bool, Never> {
        Task.immediate { await failure { try await work.wait(seat) }?.code == .operationCancelled }
    }

    @Test("Cancelling one of those who wait ends its own wait only")
    func one() async throws {
        let job = Job()
        let first = wait(job.work, job.begin())
        let second = wait(job.work, try #require(job.work.join()))
        first.cancel()
        #expect(await first.value)
        #expect(!job.wasCancelled)
        job.open()
        #expect(await second.value == false)
        #expect(!job.wasCancelled)
    }

    @Test("Cancelling the last of them cancels the work, which nobody joins any more")
    func last() async throws {
        let job = Job()
        let first = wait(job.work, job.begin())
        let second = wait(job.work, try #require(job.work.join()))
        second.cancel()
        #expect(await second.value)
        first.cancel()
        #expect(job.work.join() == nil)
        #expect(await first.value)
        #expect(job.wasCancelled)
    }

    @Test("Cancelling the work ends all waits, and one that joins after its end gets its result")
    func all() async throws {
        let job = Job()
        let waits = [wait(job.work, job.begin()), wait(job.work, try #require(job.work.join()))]
        job.work.cancel()
        await job.work.end()
        for other in waits { #expect(await other.value) }

        let done = Job()
        let seat = done.begin()
        done.open()
        await done.work.end()
        #expect(await wait(done.work, seat).value == false)
        #expect(await wait(done.work, try #require(done.work.join())).value == false)
    }
}
