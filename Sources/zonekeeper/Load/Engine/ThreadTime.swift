import Foundation

/// CPU time, user and system together, in seconds.
enum ThreadTime {
    /// Of the thread that asks.
    static func seconds() -> Double { read(CLOCK_THREAD_CPUTIME_ID) }

    /// Of this process.
    static func processSeconds() -> Double { read(CLOCK_PROCESS_CPUTIME_ID) }

    private static func read(_ clock: clockid_t) -> Double {
        // Seconds and nanoseconds, by their places: which module the members of timespec belong to changes with the order in
        // which modules are loaded.
        withUnsafeTemporaryAllocation(of: timespec.self, capacity: 1) { time in
            guard let place = time.baseAddress, clock_gettime(clock, place) == 0 else { return 0 }
            return place.withMemoryRebound(to: Int.self, capacity: 2) { Double($0[0]) + Double($0[1]) / 1_000_000_000 }
        }
    }
}
