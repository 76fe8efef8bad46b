/// The term of every entry of a log, as the first position of each run of equal terms.
///
/// A term lasts from one election to the next, so the list is short however long the log. Indices and terms both grow.
struct TermRuns: Hashable, Sendable {
    private(set) var starts: [LogPosition]

    init(_ starts: [LogPosition]) {
        for (left, right) in zip(starts, starts.dropFirst()) {
            precondition(left.index < right.index && left.term < right.term, "term runs \(left), \(right) do not grow")
        }
        self.starts = starts
    }

    /// The term at an index that is at or after the first start; nil before it.
    func term(at index: LogIndex) -> Term? {
        // The last entries are asked for most.
        if let last = starts.last, last.index <= index { return last.term }
        var low = 0
        var high = starts.count
        while low < high {
            let middle = (low + high) / 2
            if starts[middle].index <= index { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : starts[low - 1].term
    }

    /// The greatest index that is at most `limit` and whose term is at most `term`; nil if there is none.
    func greatestIndex(through limit: LogIndex, termAtMost term: Term) -> LogIndex? {
        var end = limit
        for start in starts.reversed() where start.index <= limit {
            if start.term <= term { return end }
            end = start.index.previous
        }
        return nil
    }

    mutating func append(_ position: LogPosition) {
        if let last = starts.last {
            precondition(last.term <= position.term, "term \(position.term) after \(last.term)")
            precondition(last.index < position.index, "index \(position.index) after \(last.index)")
            if last.term == position.term { return }
        }
        starts.append(position)
    }

    /// Forgets everything at and after `index`.
    mutating func truncate(from index: LogIndex) {
        while let last = starts.last, last.index >= index { starts.removeLast() }
    }

    /// Forgets everything up to `index`; `last` is where the log ends.
    mutating func compact(through index: LogIndex, last: LogIndex) {
        precondition(index <= last, "compaction to \(index) of a log that ends at \(last)")
        guard let term = term(at: index.next), index < last else {
            starts = []
            return
        }
        starts.removeAll { $0.index <= index.next }
        starts.insert(LogPosition(index: index.next, term: term), at: 0)
    }
}
