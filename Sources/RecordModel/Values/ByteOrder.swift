extension String {
    /// Whether this text comes before another in the order of their bytes in UTF-8, in which names are sorted.
    ///
    /// Swift's own order is none to store anything by: it takes different spellings of one character as equal, may
    /// change with Unicode's tables, and for some texts (`"e\u{301}"` and `"é\u{1F}"` in Swift 6.3) neither is less nor
    /// are they equal. This one is as fast.
    @inlinable
    package func precedes(_ other: String) -> Bool {
        let inPlace = utf8.withContiguousStorageIfAvailable { own in
            other.utf8.withContiguousStorageIfAvailable { theirs in
                let count = min(own.count, theirs.count)
                var position = 0
                // Both buffers have `count` bytes at least.
                while position < count {
                    if own[position] != theirs[position] { return own[position] < theirs[position] }
                    position += 1
                }
                return own.count < theirs.count
            }
        }
        // Text from elsewhere may not lie in one piece.
        return (inPlace ?? nil) ?? utf8.lexicographicallyPrecedes(other.utf8)
    }
}
