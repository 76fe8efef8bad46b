import RaftCore

/// How slowly a file may come: a slow one holds a place that others wait for.
struct UploadPace {
    /// The least on the average of all the time so far.
    static let bytesPerSecondMin: UInt64 = 16 << 10
    /// How long an upload may be slower at first.
    static let secondsBefore: UInt64 = 30
    /// How long an upload may take in all, however steadily it comes.
    static let secondsMax: UInt64 = 3_600

    var began: MonotonicTime

    /// What is wrong where so many bytes have come by now; nil where they came fast enough.
    func problem(after bytes: UInt64, now: MonotonicTime) -> String? {
        if now > began.adding(milliseconds: Self.secondsMax * 1_000) {
            return "the file took longer than \(Self.secondsMax) s"
        }
        guard now > began.adding(milliseconds: Self.secondsBefore * 1_000),
            now > began.adding(milliseconds: bytes * 1_000 / Self.bytesPerSecondMin)
        else { return nil }
        return "the file came with less than \(Self.bytesPerSecondMin) bytes a second: use a better connection"
    }
}
