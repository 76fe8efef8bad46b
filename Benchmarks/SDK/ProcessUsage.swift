import Foundation

/// What this process has used so far.
enum ProcessUsage {
    /// Microseconds of CPU, user and system, over all threads.
    static var cpuMicroseconds: Double {
        var usage = rusage()
        getrusage(RUSAGE_SELF, &usage)
        return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) * 1e6 + Double($1.tv_usec) }
    }

    /// Bytes of memory in use now.
    static var residentBytes: Int {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
            let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { return 0 }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}
