/// The clock that a client waits by; tests bring their own.
struct Waiting: Sendable {
    /// Time since some fixed moment; never goes back.
    var now: @Sendable () -> Duration
    /// Returns when the span has passed. Throws `CancellationError` if the task ends first.
    var sleep: @Sendable (Duration) async throws -> Void

    /// The machine's clock.
    static let real = Waiting(
        now: { [start = ContinuousClock.now] in start.duration(to: .now) }, sleep: { try await Task.sleep(for: $0) })
}

/// How long to wait before a request is sent again, and when to give up.
///
/// What the server names is kept to exactly: who comes back then finds room, who comes earlier is refused again. Where it
/// names nothing, pauses double from 0.1 s up to 2 s. A pause that would end too late is not begun: the answer comes at once.
struct RetryPauses: Hashable, Sendable {
    /// How long to go on from the first attempt, in seconds.
    private let patienceSeconds: Double
    private var nextSeconds = 0.1
    private static let secondsMax = 2.0

    init(patienceSeconds: Double) { self.patienceSeconds = patienceSeconds }

    /// The pause before the next attempt, in seconds; nil to give up.
    /// - Parameters:
    ///   - named: what the server asked for, in seconds; may be fractional.
    ///   - elapsed: since the first attempt began, in seconds.
    mutating func next(named: Double?, elapsed: Double) -> Double? {
        let pause: Double
        if let named {
            pause = max(named, 0)
        } else {
            pause = nextSeconds
            nextSeconds = min(nextSeconds * 2, Self.secondsMax)
        }
        return elapsed + pause < patienceSeconds ? pause : nil
    }
}
