import Glibc
package import RaftCore

extension MonotonicTime {
    /// The time since boot, suspension included (CLOCK_BOOTTIME).
    package static var current: MonotonicTime {
        var time = timespec()
        let result = clock_gettime(CLOCK_BOOTTIME, &time)
        precondition(result == 0, "clock_gettime(CLOCK_BOOTTIME) failed with errno \(errno)")
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }
}
