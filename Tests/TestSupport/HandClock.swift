package import RaftCore
import Synchronization

/// A clock that stands still until a test moves it.
package final class HandClock: Sendable {
    private let time = Atomic<UInt64>(1)

    package init() {}

    package var now: MonotonicTime { MonotonicTime(nanoseconds: time.load(ordering: .relaxed)) }

    package func advance(milliseconds: UInt64) { time.add(milliseconds * 1_000_000, ordering: .relaxed) }
}
