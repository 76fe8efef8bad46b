import Glibc

/// CPU time, user and system together.
package enum ThreadTime {
    /// Of the thread that asks, in seconds.
    package static func seconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
    }
}
