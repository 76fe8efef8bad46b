/// Whether a follower keeps up with a log that grows meanwhile (dissertation section 4.2.1).
///
/// Catching up goes in rounds: each brings the follower to where the log ended when the round began. One that took less
/// than an election timeout leaves so little that making the follower a voter holds nobody up for longer than that.
struct CatchUp: Hashable, Sendable {
    /// Where the log ended when the round began.
    private var target: LogIndex
    private var begin: MonotonicTime
    /// How long the last whole round took; nil before the first is done.
    private var lastNanoseconds: UInt64?

    init(target: LogIndex, now: MonotonicTime) {
        self.target = target
        begin = now
    }

    /// Notes that the follower has everything up to `match` of a log that ends at `last`.
    mutating func acknowledged(_ match: LogIndex, last: LogIndex, now: MonotonicTime) {
        guard match >= target else { return }
        lastNanoseconds = now.nanoseconds - begin.nanoseconds
        target = last
        begin = now
    }

    /// Whether the last round was short, and the one under way is not already longer.
    func isShort(_ limitNanoseconds: UInt64, now: MonotonicTime) -> Bool {
        guard let lastNanoseconds else { return false }
        return lastNanoseconds < limitNanoseconds && now.nanoseconds - begin.nanoseconds < limitNanoseconds
    }
}
