import Foundation
package import RaftCore

/// CLOCK_BOOTTIME, and the wall clock.
package struct SystemClock: NodeClock {
    package init() {}

    package var now: MonotonicTime { .current }

    package var wallMilliseconds: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    package func sleep(milliseconds: UInt64) async throws {
        try await Task.sleep(for: .milliseconds(Int64(clamping: milliseconds)))
    }
}
