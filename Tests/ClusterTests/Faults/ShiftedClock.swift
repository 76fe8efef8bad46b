import Foundation
import TestSupport

/// A library that a process is started with to have a wall clock of its own; its other clocks stay as they are.
enum ShiftedClock {
    /// In C, because the process's own `clock_gettime` has to give way to it.
    private static let source = """
        #define _GNU_SOURCE
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>

        static time_t shift(void) {
            static time_t seconds;
            static int known;
            if (!known) {
                const char *text = getenv("SHIFTED_CLOCK_SECONDS");
                seconds = text ? atol(text) : 0;
                known = 1;
            }
            return seconds;
        }

        int clock_gettime(clockid_t clock, struct timespec *now) {
            int result = (int)syscall(SYS_clock_gettime, clock, now);
            if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
            return result;
        }

        int timespec_get(struct timespec *now, int base) {
            return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
        }

        int gettimeofday(struct timeval *restrict now, void *restrict zone) {
            struct timespec time;
            if (clock_gettime(CLOCK_REALTIME, &time) != 0) return -1;
            now->tv_sec = time.tv_sec;
            now->tv_usec = time.tv_nsec / 1000;
            return 0;
        }

        time_t time(time_t *result) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (result) *result = now.tv_sec;
            return now.tv_sec;
        }
        """

    /// Builds the library in a folder, with the compiler that comes with Swift.
    /// - Returns: what a process needs in its environment to have a clock that is so far ahead.
    static func environment(in folder: String, secondsAhead: Int) throws -> [String: String] {
        let library = "\(folder)/shifted-clock.so"
        if !FileManager.default.fileExists(atPath: library) {
            let built = try FinishedProgram(
                ["clang", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input: source)
            try require(built.status == 0, "the library for a wrong clock cannot be built: \(built.text)")
        }
        return ["LD_PRELOAD": library, "SHIFTED_CLOCK_SECONDS": "\(secondsAhead)"]
    }
}
