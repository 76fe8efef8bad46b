/// How exactly a limit was kept, counted from the answers that clients got: the burst is in it.
struct LimitMeasure: Hashable, Sendable {
    enum Source: String, Hashable, Sendable {
        /// The one that was typed (`--expect-limit`, `--limit`).
        case given
        /// The one that the nodes' headers announced.
        case announced
        /// None was known: what was accepted while requests were refused.
        case estimated
    }

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
    /// The most that may be accepted: a container that was not fully used has up to a second of its limit saved.
    var allowedMax: Double { limit * (seconds + Self.savedSeconds) }
    /// 1 is exact, above it too much was accepted.
    var ratio: Double { Double(accepted) / allowed }

    /// Of the requests sent in each second that counts, nodes must answer more than this part of the limit. What is
    /// only offered does not count: it may have waited in the tester, or gone to a node that is down.
    private static let pressure = 1.05

    /// What a limit lets through at once after a pause, in seconds of it.
    static let savedSeconds = 1.0

    /// - Parameter limit: requests a second that were typed; else what the nodes announced counts, else what can be
    ///   seen.
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
        // At the run's ends seconds may be cut short; they are left out only where the load was not pressing all the
        // time.
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

/// Whether a run kept to the limit that was expected.
struct LimitVerdict: Hashable, Sendable {
    enum Kind: String, Hashable, Sendable {
        case kept, missed, unknown
    }

    let kind: Kind
    /// Why not; nil where it was kept.
    let reason: String?

    private init(_ kind: Kind, _ reason: String? = nil) { (self.kind, self.reason) = (kind, reason) }

    /// A limit is kept where over T seconds of more demand at most limit x (T + 1 s) was accepted, and no less than
    /// limit x T.
    /// - Parameters:
    ///   - measure: nil where the limit was not reached for a second.
    ///   - tolerance: how much less is tolerated; 0.005 is half a percent.
    ///   - testerIsLimit: why the tester may not have sent in time, if so.
    init(_ measure: LimitMeasure?, limit: Double, tolerance: Double, testerIsLimit: String?) {
        guard let measure else {
            self.init(
                .unknown,
                testerIsLimit
                    ?? "never in a whole second did nodes answer more requests than \(String(short: limit)): "
                    + "raise --rate")
            return
        }
        let accepted = Double(measure.accepted)
        // Requests come whole.
        if accepted > measure.allowedMax + 1 {
            let most = String(measure.allowedMax, digits: 1)
            self.init(.missed, "\(measure.accepted) were accepted, and limit x (time + 1 s) is \(most)")
        } else if accepted < measure.allowed * (1 - tolerance) - 1 {
            let off = String(off: (measure.ratio - 1) * 100)
            let missed = "accepted was \(off) of limit x time, and -\(String(percent: tolerance)) is tolerated"
            let excuse = Self.excuse(measure, testerIsLimit)
            self.init(excuse == nil ? .missed : .unknown, excuse ?? missed)
        } else if measure.seconds < Self.secondsMin(tolerance) {
            self.init(.unknown, Self.tooShort(measure, limit: limit, tolerance))
        } else {
            self.init(.kept)
        }
    }

    /// What was saved may hide for a second that the limit is not given. So a run that is to see a tenth too little
    /// takes ten seconds; one that is to see less than that, as it tolerates more, a shorter time.
    private static func secondsMin(_ tolerance: Double) -> Double {
        LimitMeasure.savedSeconds / max(tolerance, 0.1) * 0.99
    }

    /// Why too little accepted is not the cluster's limiter; nil where it is. What could not be sent was not refused,
    /// and a cluster that refuses nothing is slow, not limited.
    private static func excuse(_ measure: LimitMeasure, _ testerIsLimit: String?) -> String? {
        testerIsLimit
            ?? (measure.throttled == 0 ? "less than the limit was accepted, and yet nothing was throttled" : nil)
    }

    private static func tooShort(_ measure: LimitMeasure, limit: Double, _ tolerance: Double) -> String {
        "\(String(measure.seconds, digits: 1)) s under pressure are too few to judge \(String(short: limit))/s, of which "
            + "a second may be saved up; \(String(short: secondsMin(tolerance).rounded(.up))) s are enough"
    }

    /// For CI: 0 kept, 1 missed, 3 not known.
    var exitCode: Int32 {
        switch kind {
        case .kept: 0
        case .missed: 1
        case .unknown: 3
        }
    }
}

/// How much of a run was the load tester itself.
struct TesterShare: Hashable, Sendable {
    /// CPU seconds of the thread that sends and counts, and its part of the run, 0 to 1.
    let cpuSeconds: Double
    let busyShare: Double
    /// Answers a second that the thread could have counted had it been busy all the time; nil where it did next to
    /// nothing.
    let capacityPerSecond: Double?
    /// Of an open loop: how late requests were sent, in milliseconds, at the 99th percentile.
    let latenessP99Milliseconds: Double?
    /// Of an open loop: how long requests waited for a free connection, in milliseconds, at the 99th percentile.
    let connectionWaitP99Milliseconds: Double?
    /// The part of the machine's CPU that nobody used, 0 to 1.
    let machineIdleShare: Double?

    init(_ result: LoadResult) {
        let tally = result.measurement.tally
        let answered = Double(tally.succeeded + tally.failed)
        let isOpen = tally.lateness.count > 0
        cpuSeconds = result.testerCPUSeconds
        busyShare = result.seconds > 0 ? min(1, cpuSeconds / result.seconds) : 0
        capacityPerSecond = cpuSeconds > 0.001 && answered >= 100 ? answered / cpuSeconds : nil
        latenessP99Milliseconds = isOpen ? tally.lateness.milliseconds(atPercentile: 99) : nil
        connectionWaitP99Milliseconds = isOpen ? result.measurement.connectionWaits.milliseconds(atPercentile: 99) : nil
        machineIdleShare = result.machineIdleShare
    }

    private static let busyMax = 0.85
    private static let latenessMax = 20.0
    private static let idleMin = 0.05

    /// Why the figures are the tester's rather than the cluster's; nil where they are the cluster's.
    var limitReason: String? {
        if busyShare > Self.busyMax {
            return
                "the tester is the limit: its thread was busy for "
                + "\(String(percent: (busyShare * 100).rounded() / 100)) of the time"
        }
        if let late = latenessP99Milliseconds, late > Self.latenessMax {
            return
                "the tester is the limit: one request in a hundred was sent \(String(milliseconds: late)) ms late or "
                + "more"
        }
        return nil
    }

    /// That requests waited for a connection rather than at a node; nil where they did not. The nodes were busy all the
    /// same, so it says nothing against what they accepted, only against the rate offered and the times since requests
    /// were due.
    var connectionReason: String? {
        guard let wait = connectionWaitP99Milliseconds, wait > Self.latenessMax else { return nil }
        return
            "the tester's connections are the limit: one request in a hundred waited \(String(milliseconds: wait)) "
            + "ms or more for a free one; --connections makes more"
    }

    /// What to keep in mind about the machine; nil where there is nothing.
    var machineNote: String? {
        guard let idle = machineIdleShare, idle < Self.idleMin else { return nil }
        return
            "the machine was busy throughout: where the cluster runs on it too, tester and cluster took from each other"
    }
}
