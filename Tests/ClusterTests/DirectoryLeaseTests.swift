import RaftCore
import Testing

@testable import Cluster

/// A change of the directory is done once no node relies on anything older, and removed nodes are not asked.
@Suite("For how long nodes rely on the directory")
struct DirectoryLeaseTests {
    private func time(_ milliseconds: UInt64) -> MonotonicTime {
        MonotonicTime.zero.adding(milliseconds: milliseconds)
    }

    @Test("a renewal counts from its beginning, and an older one takes nothing back")
    func renewals() {
        let lease = DirectoryLease(lengthMilliseconds: 1_000)
        #expect(!lease.isValid(at: time(0)))
        lease.renew(begunAt: time(500))
        lease.renew(begunAt: time(100))
        #expect(lease.isValid(at: time(1_499)))
        #expect(!lease.isValid(at: time(1_500)))
    }

    @Test("where the clock jumped, only a renewal that began later counts")
    func ended() {
        let lease = DirectoryLease(lengthMilliseconds: 1_000)
        lease.renew(begunAt: time(500))
        lease.end(at: time(600))
        #expect(!lease.isValid(at: time(600)))
        lease.renew(begunAt: time(599))
        #expect(!lease.isValid(at: time(600)))
        lease.renew(begunAt: time(600))
        #expect(lease.isValid(at: time(1_599)))
    }

    @Test("after each removal of a node, and where a process begins after one, changes wait for what it may rely on")
    func removals() {
        let lease = DirectoryLease(lengthMilliseconds: 1_000)
        #expect(!lease.mayBeHeldByRemoved(0, at: time(10)))
        #expect(lease.mayBeHeldByRemoved(1, at: time(5_000)))
        #expect(lease.mayBeHeldByRemoved(1, at: time(6_000)))
        #expect(!lease.mayBeHeldByRemoved(1, at: time(5_000 + lease.settlingMilliseconds)))
        #expect(lease.mayBeHeldByRemoved(2, at: time(9_000)))
        #expect(!lease.mayBeHeldByRemoved(2, at: time(20_000)))
    }
}
