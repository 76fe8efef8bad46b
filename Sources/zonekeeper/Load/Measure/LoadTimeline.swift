/// What happened when: counts of each second, and of each tenth of one what was accepted.
///
/// Requests count when they are sent, answers when they arrive. Times are nanoseconds since the start.
struct LoadTimeline: Hashable, Sendable {
    struct Second: Hashable, Sendable {
        /// Attempts that were sent, those that repeat a refused one included.
        var sent = 0
        /// Attempts that a connection took in this second and that were answered, whenever and however.
        var answered = 0
        var accepted = 0
        var throttled = 0
        var failed = 0
        var unanswered = 0
        /// Of the accepted, in milliseconds; nil where there was none.
        var p50: Double?
        var p90: Double?
        var p99: Double?
        var max: Double?
    }

    private(set) var seconds: [Second] = []
    /// Accepted requests in each tenth of a second.
    private(set) var acceptedTenths: [UInt32] = []
    /// The accepted of the last second that an answer fell into.
    private var current = LatencySketch()
    private var currentSecond = 0

    private static let second: UInt64 = 1_000_000_000

    mutating func recordSent(at nanoseconds: UInt64) { seconds[reach(nanoseconds)].sent += 1 }

    /// - Parameter nanoseconds: not after what was recorded last.
    mutating func recordAnswered(sentAt nanoseconds: UInt64) { seconds[reach(nanoseconds)].answered += 1 }

    /// - Parameters:
    ///   - latencyNanoseconds: since the request was due.
    ///   - nanoseconds: never before that of the call before.
    mutating func record(_ outcome: LoadOutcome, latencyNanoseconds: UInt64, at nanoseconds: UInt64) {
        let index = reach(nanoseconds)
        if index != currentSecond { close(movingTo: index) }
        switch outcome {
        case .succeeded:
            seconds[index].accepted += 1
            acceptedTenths[Int(nanoseconds / (Self.second / 10))] += 1
            current.record(latencyNanoseconds)
        case .throttled: seconds[index].throttled += 1
        case .failed: seconds[index].failed += 1
        case .unanswered: seconds[index].unanswered += 1
        }
    }

    /// Ends the last second; to be called once, at the end.
    mutating func finish(at nanoseconds: UInt64) {
        _ = reach(nanoseconds)
        close(movingTo: currentSecond)
    }

    private mutating func close(movingTo next: Int) {
        if current.count > 0 {
            seconds[currentSecond].p50 = current.milliseconds(atPercentile: 50)
            seconds[currentSecond].p90 = current.milliseconds(atPercentile: 90)
            seconds[currentSecond].p99 = current.milliseconds(atPercentile: 99)
            seconds[currentSecond].max = Double(current.maxNanoseconds) / 1_000_000
            current.removeAll()
        }
        currentSecond = next
    }

    /// Makes room up to a time.
    private mutating func reach(_ nanoseconds: UInt64) -> Int {
        let index = Int(nanoseconds / Self.second)
        while seconds.count <= index {
            seconds.append(Second())
            acceptedTenths.append(contentsOf: repeatElement(0, count: 10))
        }
        return index
    }

    /// What was accepted from one tenth of a second on and before another.
    func accepted(inTenths tenths: Range<Int>) -> Int {
        acceptedTenths[tenths.clamped(to: 0..<acceptedTenths.count)].reduce(0) { $0 + Int($1) }
    }

    /// The most that was accepted in any span of so many tenths of a second; nil for a run that is shorter.
    ///
    /// Spans begin on tenths: a span between may hold up to what one tenth more holds.
    func acceptedMax(inTenths span: Int) -> Int? {
        guard acceptedTenths.count >= span else { return nil }
        var sum = acceptedTenths[..<span].reduce(0) { $0 + Int($1) }
        var most = sum
        for index in span..<max(span, acceptedTenths.count) {
            sum += Int(acceptedTenths[index]) - Int(acceptedTenths[index - span])
            most = max(most, sum)
        }
        return most
    }
}
