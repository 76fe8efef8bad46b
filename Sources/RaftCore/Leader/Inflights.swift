/// The appends under way to one follower, oldest first.
struct Inflights: Hashable, Sendable {
    private var appends: [Append] = []
    private(set) var bytes = 0

    private struct Append: Hashable, Sendable {
        var last: LogIndex
        var bytes: Int
    }

    var count: Int { appends.count }
    var isEmpty: Bool { appends.isEmpty }

    /// Whether another append must wait. An empty window is never full, however large an append is.
    func isFull(_ settings: RaftSettings) -> Bool {
        !isEmpty && (count >= settings.inflightAppendsMax || bytes >= settings.inflightBytesMax)
    }

    /// Notes an append that ends at `last`.
    mutating func add(last: LogIndex, bytes: Int) {
        if let latest = appends.last { precondition(last > latest.last, "append to \(last) after \(latest.last)") }
        appends.append(Append(last: last, bytes: bytes))
        self.bytes += bytes
    }

    /// Frees the appends that end at or before `match`.
    mutating func acknowledge(through match: LogIndex) {
        var count = 0
        for append in appends {
            if append.last > match { break }
            bytes -= append.bytes
            count += 1
        }
        appends.removeFirst(count)
        precondition(bytes >= 0, "\(bytes) bytes under way")
    }
}
