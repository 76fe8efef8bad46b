import Synchronization

/// How far the files of some records have come, by the bytes of each record's files together. It tells each percent
/// once, and less than 1: a record is done when it is saved or fetched.
final class TransferProgress: Sendable {
    private struct Item {
        var total: Int64 = 0
        /// The most bytes of each file that have moved: an attempt that begins again is no step back.
        var moved: [Int: Int64] = [:]
        var toldPercent = 0
    }

    private let items = Mutex<[Int: Item]>([:])
    private let tell: @Sendable (Int, Double) -> Void

    /// - Parameter tell: gets an item's number and the part that is done, not one after the other.
    init(_ tell: @escaping @Sendable (Int, Double) -> Void) { self.tell = tell }

    /// Expects a file of an item, before the first one moves.
    func expect(_ bytes: Int64, of item: Int) { items.withLock { $0[item, default: Item()].total += bytes } }

    /// So many bytes of a file have moved.
    func moved(_ bytes: Int64, file: Int, of number: Int) {
        let percent = items.withLock { items -> Int? in
            guard var item = items[number], item.total > 0 else { return nil }
            item.moved[file] = max(item.moved[file] ?? 0, bytes)
            let percent = min(99, Int(item.moved.values.reduce(0, +) * 100 / item.total))
            defer { items[number] = item }
            guard percent > item.toldPercent else { return nil }
            item.toldPercent = percent
            return percent
        }
        if let percent { tell(number, Double(percent) / 100) }
    }
}
