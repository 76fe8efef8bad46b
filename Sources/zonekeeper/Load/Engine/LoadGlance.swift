import NIOCore

/// How far a run has come: what a live view shows.
struct LoadGlance: Sendable {
    var seconds: Double
    /// Requests a second that are due now; nil in a closed loop.
    var dueRate: Double?
    var sent: Int
    var accepted: Int
    var throttled: Int
    /// Failed otherwise, and not answered.
    var failed: Int
    var outstanding: Int
    var waitingToRetry: Int
    var notIssued: Int
    /// The last whole seconds, oldest first, at most 60.
    var lately: [LoadTimeline.Second]
    /// Of all accepted so far.
    var latencies: LatencySketch
    /// Most frequent first, at most 6.
    var errors: [(name: String, count: Int)]
    var budget: RateBudget?
}

/// A view of a run under way.
struct LoadWatch: Sendable {
    let engine: NIOLoopBound<LoadEngine>
    let loop: any EventLoop

    /// - Returns: nil when the run is over.
    func glance() async -> LoadGlance? { try? await loop.submit { engine.value.glance }.get() }
}

extension LoadEngine {
    var glance: LoadGlance {
        let now = now
        let tally = measurement.tally
        let whole = measurement.timeline.seconds.prefix(Int(now / 1_000_000_000))
        var latencies = LatencySketch()
        for share in measurement.byTarget { latencies.add(share.latencies) }
        let errors =
            tally.errorsByCode.map { (name: $0.key, count: $0.value) }
            + tally.errorsByTransport.map { (name: $0.key, count: $0.value) }
        var dueRate: Double?
        if case .open(let profile, _, _) = settings.pace { dueRate = profile.rate(at: Double(now) / 1_000_000_000) }
        return LoadGlance(
            seconds: Double(now) / 1_000_000_000, dueRate: dueRate, sent: measurement.sent, accepted: tally.succeeded,
            throttled: tally.throttled, failed: tally.failed - tally.throttled, outstanding: outstanding,
            waitingToRetry: waiting.count, notIssued: tally.notIssued, lately: whole.suffix(60), latencies: latencies,
            errors: Array(errors.sorted { ($1.count, $0.name) < ($0.count, $1.name) }.prefix(6)),
            budget: measurement.budget)
    }

    /// Closes the connections; to be called once, at the end.
    func close() {
        for connection in Array(underWay.values) { connection.close("the run is over") }
    }
}
