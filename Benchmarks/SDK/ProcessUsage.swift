import Foundation

/// What this process has used so far.
enum ProcessUsage {
    /// Microseconds of CPU, user and system, over all threads.
    static var cpuMicroseconds: Double {
        Double(clock()) / Double(CLOCKS_PER_SEC) * 1e6
    }

    /// Bytes of memory in use now.
    static var residentBytes: Int {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
            let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { return 0 }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}
