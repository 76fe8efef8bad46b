/// The clock that a client waits by; tests bring their own.
package struct Waiting: Sendable {
    /// Time since some fixed moment; never goes back.
    package var now: @Sendable () -> Duration
    /// Returns when the span has passed. Throws `CancellationError` if the task ends first.
    package var sleep: @Sendable (Duration) async throws -> Void

    package init(
        now: @escaping @Sendable () -> Duration, sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.now = now
        self.sleep = sleep
    }

    /// The machine's clock.
    package static let real = Waiting(
        now: { [start = ContinuousClock.now] in start.duration(to: .now) }, sleep: { try await Task.sleep(for: $0) })
}

/// How long to wait before a request is sent again, and when to give up.
///
/// What the server names is kept to exactly: who comes back then finds room, who comes earlier is refused again. Where
/// it names nothing, pauses double from 0.1 s up to 2 s, of which each client takes a portion of its own, so that those
/// who were
/// turned away together do not come back together. A pause that would end too late is not begun: the answer comes at
/// once.
package struct RetryPauses: Hashable, Sendable {
    /// How long to go on from the first attempt, in seconds.
    private let patienceSeconds: Double
    private var nextSeconds = 0.1
    private static let secondsMax = 2.0

    package init(patienceSeconds: Double) { self.patienceSeconds = patienceSeconds }

    /// The pause before the next attempt, in seconds; nil to give up.
    /// - Parameters:
    ///   - named: what the server asked for, in seconds; may be fractional.
    ///   - elapsed: since the first attempt began, in seconds.
    ///   - portion: how much of a pause of our own choice is taken, above 0 to 1; random for real clients.
    package mutating func next(named: Double?, elapsed: Double, portion: Double = 1) -> Double? {
        let pause: Double
        // A server that names no time to wait is not asked again and again at once.
        if let named, named > 0 {
            pause = named
        } else {
            pause = nextSeconds * portion
            nextSeconds = min(nextSeconds * 2, Self.secondsMax)
        }
        return elapsed + pause < patienceSeconds ? pause : nil
    }
}
