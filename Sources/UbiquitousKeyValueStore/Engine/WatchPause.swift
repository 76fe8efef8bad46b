/// How long to wait between two connections of a watch.
struct WatchPause: Sendable {
    /// Connections in a row that brought nothing.
    private var failures = 0

    /// A connection ended: the milliseconds to wait, of which one is chosen at random, so that not all devices come at
    /// once.
    /// - Parameters:
    ///   - broughtPages: whether it was of use; what ends at once must not begin again at once.
    ///   - said: what the server asked for.
    mutating func ended(broughtPages: Bool, said: Int64?) -> ClosedRange<Int64> {
        if broughtPages { failures = 0 }
        let own: Int64 = broughtPages ? 0 : min(60_000, 250 << Int64(min(failures, 8)))
        if !broughtPages { failures += 1 }
        let least = min(max(said ?? 0, own), 86_400_000)
        return least...(least + max(own, said == nil ? 0 : 250) / 4)
    }
}
