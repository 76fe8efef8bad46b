import HeapModule
import RaftCore

/// Callers that wait on this node, by when each of them is answered, whatever becomes of its request.
///
/// Deadlines come in any order: most requests have a few seconds, and the hold of an upload a minute. Those that were
/// answered are let go of before the table doubles, so that it stays as large as what waits.
struct CallDeadlines {
    private static let sweepMin = 64

    private struct Entry: Comparable {
        let deadline: MonotonicTime
        let call: PendingCall

        static func < (left: Self, right: Self) -> Bool { left.deadline < right.deadline }
        static func == (left: Self, right: Self) -> Bool { left.deadline == right.deadline }
    }

    private var entries = Heap<Entry>()
    /// How many there are when those that were answered are looked for.
    private var sweepAt = sweepMin

    var count: Int { entries.count }

    mutating func add(_ call: PendingCall, at deadline: MonotonicTime) {
        if entries.count >= sweepAt { sweep() }
        entries.insert(Entry(deadline: deadline, call: call))
    }

    /// The next call whose deadline has passed; nil where there is no more.
    mutating func takeOverdue(now: MonotonicTime) -> PendingCall? {
        guard let first = entries.min, first.deadline <= now else { return nil }
        return entries.removeMin().call
    }

    mutating func takeAll() -> [PendingCall] {
        defer { self = Self() }
        return entries.unordered.map(\.call)
    }

    private mutating func sweep() {
        entries = Heap(entries.unordered.filter { !$0.call.isAnswered })
        sweepAt = max(Self.sweepMin, 2 * entries.count)
    }
}
