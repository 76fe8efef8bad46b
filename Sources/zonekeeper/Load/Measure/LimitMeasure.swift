/// How exactly a limit was kept, counted from the answers that clients got: the burst is in it.
struct LimitMeasure: Hashable, Sendable {
    /// Which limit was compared with.
    enum Source: String, Hashable, Sendable {
        /// The one that was typed (`--expect-limit`, `--limit`).
        case given
        /// The one that the nodes' headers announced.
        case announced
        /// None was known: what was accepted while requests were refused.
        case estimated
    }

    /// Requests a second.
    let limit: Double
    let source: Source
    /// The time compared, in seconds: when nodes answered more than the limit throughout.
    let seconds: Double
    /// Where it begins, in seconds after the start.
    let begin: Double
    let isWholeRun: Bool
    let accepted: Int
    let sent: Int
    /// Refused in that time.
    let throttled: Int
    /// The most that was accepted in any second and in any ten seconds of the run; nil for a shorter run.
    let acceptedInOneSecondMax: Int?
    let acceptedInTenSecondsMax: Int?

    var allowed: Double { limit * seconds }
    /// 1 is exact, above it too much was accepted.
    var ratio: Double { Double(accepted) / allowed }
    var acceptedPerSecond: Double { Double(accepted) / seconds }

    /// Of the requests sent in each second that counts, nodes must answer more than this part of the limit. What is only offered
    /// does not count: it may have waited in the tester, or gone to a node that is down.
    private static let pressure = 1.05

    /// Requests that a limit lets through at once after a pause: a tenth of a second's, but two at least.
    static func burst(_ limit: Double) -> Double { max(2, limit / 10) }

    /// - Parameter limit: requests a second that were typed; else what the nodes announced counts, else what can be seen.
    /// - Returns: nil where the limit was not reached for a second: then nothing can be said.
    init?(_ measurement: LoadMeasurement, limit given: Double?) {
        let timeline = measurement.timeline
        guard let first = measurement.firstSent, let last = measurement.lastAnswer, last > first else { return nil }
        let announced = measurement.budget?.rate.flatMap { $0 > 0 ? $0 : nil }
        let known = given ?? announced
        let lastSent = measurement.lastSent ?? last
        let whole = timeline.seconds.indices.filter { $0 < max(1, Int(lastSent / 1_000_000_000)) }
        let pressed = Self.longest(whole) { index in
            let second = timeline.seconds[index]
            return known.map { Double(second.answered) >= $0 * Self.pressure } ?? (second.throttled > 0)
        }
        guard let pressed else { return nil }
        // At the run's ends seconds may be cut short; they are left out only where the load was not pressing all the time.
        isWholeRun = pressed.lowerBound == 0 && pressed.count == whole.count
        if isWholeRun {
            begin = Double(first) / 1_000_000_000
            // Until when requests were decided: a last answer that took much longer than the others says nothing of it.
            let usual = UInt64((measurement.answerTimes.milliseconds(atPercentile: 90) ?? 0) * 1_000_000)
            let end = max(first + 1, min(last, lastSent + usual))
            seconds = Double(end - first) / 1_000_000_000
            accepted = measurement.tally.succeeded
            sent = measurement.sent
            throttled = measurement.tally.throttled
        } else {
            begin = Double(pressed.lowerBound)
            seconds = Double(pressed.count)
            accepted = timeline.seconds[pressed].reduce(0) { $0 + $1.accepted }
            sent = timeline.seconds[pressed].reduce(0) { $0 + $1.sent }
            throttled = timeline.seconds[pressed].reduce(0) { $0 + $1.throttled }
        }
        source = given != nil ? .given : announced != nil ? .announced : .estimated
        guard let rate = known ?? (accepted > 0 ? Double(accepted) / seconds : nil) else { return nil }
        self.limit = rate
        acceptedInOneSecondMax = timeline.acceptedMax(inTenths: 10)
        acceptedInTenSecondsMax = timeline.acceptedMax(inTenths: 100)
    }

    /// The longest run of seconds for which something holds.
    private static func longest(_ seconds: [Int], where holds: (Int) -> Bool) -> Range<Int>? {
        var best: Range<Int>?
        var begin: Int?
        for index in seconds {
            guard holds(index) else {
                begin = nil
                continue
            }
            let first = begin ?? index
            begin = first
            if index + 1 - first > best?.count ?? 0 { best = first..<index + 1 }
        }
        return best
    }
}
