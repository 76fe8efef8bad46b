import RaftCore
import Synchronization

/// For how long this node may rely on what it knows of the directory.
///
/// A renewal begins with a question to the directory's leader and ends when everything committed by then is applied
/// here; it is good for `lengthMilliseconds` from its beginning. So a change is known to every node that relies on its
/// knowledge once that time has passed since the change was committed. The clock counts suspension.
final class DirectoryLease: Sendable {
    let lengthMilliseconds: UInt64
    /// How often it is renewed.
    var renewalMilliseconds: UInt64 { lengthMilliseconds / 4 }
    /// After how long a change counts as known everywhere: the length, and what clocks may differ in speed.
    var settlingMilliseconds: UInt64 { lengthMilliseconds + lengthMilliseconds / 20 }

    private let end = Atomic<UInt64>(0)
    /// Renewals that began before count for nothing.
    private let ended = Atomic<UInt64>(0)
    /// How many nodes were ever removed, as far as was looked, and when the last of them relies on nothing any more.
    private let removals = Mutex((count: 0, settled: MonotonicTime.zero))

    init(lengthMilliseconds: UInt64) { self.lengthMilliseconds = lengthMilliseconds }

    /// Whether the lease is in force.
    func isValid(at now: MonotonicTime) -> Bool { now.nanoseconds < end.load(ordering: .acquiring) }

    /// Whether a node that was removed from the cluster may still rely on what it knew then. It hears of no change any
    /// more, and cannot be asked.
    /// - Parameter removed: how many nodes were ever removed.
    func mayBeHeldByRemoved(_ removed: Int, at now: MonotonicTime) -> Bool {
        removals.withLock { state in
            if removed > state.count { state = (removed, now.adding(milliseconds: settlingMilliseconds)) }
            return now < state.settled
        }
    }

    /// The clock may not tell how long ago the last renewal began: it takes another.
    func clockJumped(at now: MonotonicTime) {
        ended.store(now.nanoseconds, ordering: .releasing)
        end.store(0, ordering: .releasing)
    }

    /// A renewal that began at `begin` has succeeded.
    func renew(begunAt begin: MonotonicTime) {
        guard begin.nanoseconds >= ended.load(ordering: .acquiring) else { return }
        let new = begin.adding(milliseconds: lengthMilliseconds).nanoseconds
        var old = end.load(ordering: .relaxed)
        while old < new {
            let (exchanged, original) = end.compareExchange(
                expected: old, desired: new, ordering: .acquiringAndReleasing)
            if exchanged { return }
            old = original
        }
    }
}
