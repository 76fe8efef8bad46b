extension RandomAccessCollection where Index == Int {
    /// The index of the first element for which `isBefore` does not hold, or `endIndex`, found by halving. The elements
    /// for which it holds must come first.
    ///
    /// Public, although only this package sees it: only public functions are specialised in other modules.
    @inlinable
    public func prefixEnd(where isBefore: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
