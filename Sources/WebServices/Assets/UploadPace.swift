/// How slowly a file may come: a slow one holds a place that others wait for.
struct UploadPace {
    /// The least on the average of all the time so far.
    static let bytesPerSecondMin: UInt64 = 16 << 10
    /// How long an upload may be slower at first.
    static let secondsBefore: UInt64 = 30
    /// How long an upload may take in all, however steadily it comes.
    static let secondsMax: UInt64 = 3_600

    /// Nanoseconds of the node's monotonic clock.
    var began: UInt64

    /// What is wrong where so many bytes have come by now; nil where they came fast enough.
    func problem(after bytes: UInt64, now: UInt64) -> String? {
        let milliseconds = (now - min(now, began)) / 1_000_000
        if milliseconds > Self.secondsMax * 1_000 { return "the file took longer than \(Self.secondsMax) s" }
        guard milliseconds > Self.secondsBefore * 1_000, milliseconds > bytes * 1_000 / Self.bytesPerSecondMin
        else { return nil }
        return "the file came with less than \(Self.bytesPerSecondMin) bytes a second: use a better connection"
    }
}
