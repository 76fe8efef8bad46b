/// What a client does when it is told to slow down (`THROTTLED`).
enum ThrottleBehaviour: String, Hashable, Sendable, CaseIterable {
    /// Gives this request up and sends the next one as if nothing had been said.
    case ignore
    /// Sends it again exactly when `retryAfter` says.
    case honour
    /// Sends it again after a time of its own that doubles, whatever `retryAfter` says.
    case backOff = "back-off"

    /// The first pause of a client that backs off, and the longest, in nanoseconds.
    static let firstPause: UInt64 = 100_000_000
    static let pauseMax: UInt64 = 10_000_000_000

    /// How long the client waits before it sends a refused request again.
    /// - Parameters:
    ///   - attempt: how often the request was refused before, from 0.
    ///   - retryAfter: nanoseconds, as the refusal said; nil where it said nothing.
    ///   - unit: a random number from 0 to 1: clients that back off wait between half and all of their pause.
    /// - Returns: nil where it is not sent again.
    func pause(attempt: Int, retryAfter: UInt64?, unit: Double) -> UInt64? {
        switch self {
        case .ignore: return nil
        case .honour: return retryAfter
        case .backOff:
            let whole = min(Self.pauseMax, Self.firstPause << UInt64(min(attempt, 10)))
            return whole / 2 + UInt64(Double(whole / 2) * unit)
        }
    }
}

/// Requests that wait to be sent again, by when they are due; a binary heap.
struct RetryBook<Item: Sendable>: Sendable {
    private var heap: [(due: UInt64, order: UInt64, item: Item)] = []
    private var added: UInt64 = 0

    var count: Int { heap.count }
    var nextDue: UInt64? { heap.first?.due }

    /// Items of one due time come out as they went in.
    mutating func add(_ item: Item, due: UInt64) {
        heap.append((due, added, item))
        added += 1
        var child = heap.count - 1
        while child > 0, precedes(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// The earliest item that is due by now; nil when there is none.
    mutating func pop(by now: UInt64) -> (due: UInt64, item: Item)? {
        guard let first = heap.first, first.due <= now else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < heap.count else { break }
            let child = left + 1 < heap.count && precedes(left + 1, left) ? left + 1 : left
            guard precedes(child, parent) else { break }
            heap.swapAt(child, parent)
            parent = child
        }
        return (first.due, first.item)
    }

    mutating func removeAll() { heap.removeAll() }

    private func precedes(_ left: Int, _ right: Int) -> Bool {
        (heap[left].due, heap[left].order) < (heap[right].due, heap[right].order)
    }
}
