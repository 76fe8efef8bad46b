import DequeModule
import RecordModel

/// How many of something are let through in a second. A value: time is passed in.
struct PerSecond {
    private let max: Int
    private var second: Int64 = 0
    private var count = 0

    init(max: Int) { self.max = max }

    /// Whether one more passes.
    /// - Parameter time: milliseconds since 1970.
    mutating func passes(at time: Int64) -> Bool {
        if second != time / 1_000 { (second, count) = (time / 1_000, 0) }
        count += 1
        return count <= max
    }
}

/// The newest requests of a node, bounded by their bytes. A value: time and chance are of the entries.
struct RequestLog {
    /// What the entries may take in memory.
    private let bytesMax: Int
    private var entries: Deque<RequestEntry> = []
    private var bytes = 0
    /// How many entries there were before the first one of `entries`.
    private var dropped: UInt64 = 0

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// How many entries there ever were.
    var count: UInt64 { dropped + UInt64(entries.count) }

    mutating func append(_ entry: RequestEntry) {
        entries.append(entry)
        bytes += entry.sizeBytes
        while bytes > bytesMax, entries.count > 1 {
            bytes -= entries.removeFirst().sizeBytes
            dropped += 1
        }
    }

    /// The newest of those that a filter lets through and that came before a request, the newest first.
    func newest(_ filter: RequestFilter, before: UUIDv7?, limit: Int) -> [RequestEntry] {
        var found: [RequestEntry] = []
        // They stand in the order in which they were answered, which is nearly that in which they came.
        for entry in entries.reversed() where before.map({ entry.id < $0 }) ?? true {
            guard filter.admits(entry) else { continue }
            found.append(entry)
            if found.count >= 4 * limit { found = Self.newest(found, limit) }
        }
        return Self.newest(found, limit)
    }

    private static func newest(_ entries: [RequestEntry], _ limit: Int) -> [RequestEntry] {
        Array(entries.sorted { $0.id > $1.id }.prefix(limit))
    }

    /// Those that a filter lets through and that were answered after the first `count` ever, oldest first; of more than
    /// `limit` the newest, and how many others there were.
    func entries(after count: UInt64, _ filter: RequestFilter, limit: Int) -> (entries: [RequestEntry], skipped: Int) {
        let first = count > dropped ? Int(min(count - dropped, UInt64(entries.count))) : 0
        let missed = count < dropped ? Int(clamping: dropped - count) : 0
        let found = entries[first...].filter { filter.admits($0) }
        return (Array(found.suffix(limit)), missed + max(found.count - limit, 0))
    }

    func entry(of id: UUIDv7) -> RequestEntry? { entries.last { $0.id == id } }
}
