import Foundation

/// CPU time, user and system together, in seconds.
enum ThreadTime {
    /// Of the thread that asks.
    static func seconds() -> Double { read(CLOCK_THREAD_CPUTIME_ID) }

    /// Of this process.
    static func processSeconds() -> Double { read(CLOCK_PROCESS_CPUTIME_ID) }

    private static func read(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
    }
}
