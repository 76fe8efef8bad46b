import Cluster
import Glibc
import Synchronization

/// Gives memory back to the system that a burst of work took and freed: by itself the allocator keeps it, so that a
/// node would stay as large as it ever was.
package final class HeapTrimmer: Sendable {
    /// How often the process is looked at.
    private static let intervalMilliseconds: UInt64 = 30_000
    private let state = Mutex(HeapTrim())
    private let work: PeriodicTask

    package init(_ service: RecordService) { work = PeriodicTask(platform: service.node.platform) }

    /// Begins to look.
    package func start() {
        work.start(everyMilliseconds: Self.intervalMilliseconds) { [weak self] in self?.look() }
    }

    /// Ends it.
    package func stop() { work.stop() }

    private func look() {
        let bytes = NodeHealth.residentBytes()
        guard state.withLock({ $0.looked(residentBytes: bytes) }) else { return }
        _ = Self.trim?(0)
    }

    /// `malloc_trim`, of `malloc.h`, which the module of the C library leaves out.
    private static let trim = dlsym(nil, "malloc_trim").map {
        unsafeBitCast($0, to: (@convention(c) @Sendable (Int) -> Int32).self)
    }
}

/// When the process is to give back what it freed. A value.
struct HeapTrim: Sendable {
    /// What must be there beyond the least that there was: less is not worth the work.
    static let excessBytes: UInt64 = 128 << 20

    /// The least that was seen, and what was seen last; nil before the first look.
    private var seen: (least: UInt64, last: UInt64)?

    /// - Returns: whether to trim: there is much, and it grows no more, so that what made it grow may be over.
    mutating func looked(residentBytes bytes: UInt64) -> Bool {
        let (least, last) = seen ?? (bytes, bytes)
        seen = (min(least, bytes), bytes)
        return bytes >= least + Self.excessBytes && bytes <= last
    }
}
