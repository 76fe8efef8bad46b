import Foundation
import RecordModel

struct LoadReport: Sendable {
    /// Percentiles of one histogram and its mean, in milliseconds.
    struct Latency: Hashable, Sendable {
        static let names = ["p50", "p90", "p99", "p99.9", "max", "mean"]

        let count: Int
        let values: [Double]

        var p50: Double { values[0] }
        var p99: Double { values[2] }

        /// - Returns: nil when nothing was measured.
        init?(_ histogram: LatencyHistogram) {
            guard histogram.count > 0 else { return nil }
            count = histogram.count
            let percentiles = [50, 90, 99, 99.9, 100].compactMap(histogram.milliseconds(atPercentile:))
            values = percentiles + [histogram.meanMilliseconds]
        }
    }

    /// The nodes' counters over the run, or why they are not known.
    enum Cost: Sendable {
        case measured(NodeCounters, nodes: Int)
        case unknown(String)
    }

    struct Expectation: Hashable, Sendable {
        /// Requests a second that were typed; nil where the nodes' own word counts.
        var limit: Double?
        /// 0.02 is two percent to either side; nil where nothing is to be judged.
        var tolerance: Double?
    }

    let settings: LoadSettings
    let targets: [String]
    let seconds: Double
    let wasInterrupted: Bool
    let measurement: LoadMeasurement
    let latency: Latency?
    /// Of a closed loop only: corrected for coordinated omission with the median as interval.
    let correctedLatency: Latency?
    let failureLatency: Latency?
    /// Of an open loop only.
    let lateness: Latency?
    /// Most frequent first.
    let errorsByCode: [(code: String, count: Int, reason: String?)]
    let errorsByStatus: [(status: Int, count: Int)]
    let errorsByTransport: [(reason: String, count: Int)]
    let cost: Cost
    /// User and system time that the load command as a whole took.
    let generatorCPUSeconds: Double
    let tester: TesterShare
    /// nil where no limit was reached.
    let limit: LimitMeasure?
    /// nil where nothing was expected.
    let verdict: LimitVerdict?

    var succeeded: Int { measurement.tally.succeeded }
    var unanswered: Int { measurement.tally.unanswered }
    /// Answers that were errors, those that told to slow down included.
    var failed: Int { measurement.tally.failed - measurement.tally.unanswered }
    var throttled: Int { measurement.tally.throttled }
    var notIssued: Int { measurement.tally.notIssued }
    var retryAfter: RetryAfterAccuracy { measurement.retryAfter }

    init(
        _ result: LoadResult, settings: LoadSettings, targets: [String], cost: Cost, generatorCPUSeconds: Double,
        expectation: Expectation = Expectation()
    ) {
        let tally = result.measurement.tally
        self.settings = settings
        self.targets = targets
        self.cost = cost
        self.generatorCPUSeconds = generatorCPUSeconds
        measurement = result.measurement
        seconds = result.seconds
        wasInterrupted = result.wasInterrupted
        latency = Latency(tally.latencies)
        failureLatency = Latency(tally.failureLatencies)
        switch settings.pace {
        case .open:
            lateness = Latency(tally.lateness)
            correctedLatency = nil
        case .closed:
            lateness = nil
            let median = tally.latencies.nanoseconds(atPercentile: 50)
            correctedLatency = Latency(tally.latencies.corrected(interval: median))
        }
        errorsByCode = tally.errorsByCode.map { (code: $0.key, count: $0.value, reason: tally.reasonsByCode[$0.key]) }
            .sorted { ($1.count, $0.code) < ($0.count, $1.code) }
        errorsByStatus = tally.errorsByStatus.map { (status: $0.key, count: $0.value) }
            .sorted { ($1.count, $0.status) < ($0.count, $1.status) }
        errorsByTransport = tally.errorsByTransport.map { (reason: $0.key, count: $0.value) }
            .sorted { ($1.count, $0.reason) < ($0.count, $1.reason) }
        tester = TesterShare(result)
        // Records and preferences have a limit each; what is accepted of both together is held against neither.
        let hasBoth = settings.mix.hasRecords && settings.mix.hasKeyValues
        limit = hasBoth ? nil : LimitMeasure(result.measurement, limit: expectation.limit)
        if let expected = expectation.limit, let tolerance = expectation.tolerance {
            verdict = LimitVerdict(limit, limit: expected, tolerance: tolerance, testerIsLimit: tester.limitReason)
        } else {
            verdict = nil
        }
    }

    var operationsPerSecond: Double { seconds > 0 ? Double(succeeded) / seconds : 0 }

    var sentPerSecond: Double { seconds > 0 ? Double(measurement.sent) / seconds : 0 }

    var sentences: [String] { LoadFindings(report: self).sentences }

    /// Bytes of files a second that were sent or fetched; nil where the run had none.
    var assetBytesPerSecond: Double? {
        guard settings.mix.hasAssets, seconds > 0 else { return nil }
        let files = zip(settings.mix.operations, measurement.byOperation).reduce(0) { sum, operation in
            operation.0.isAsset ? sum + operation.1.accepted : sum
        }
        return Double(files) * Double(settings.assetBytes) / seconds
    }

    func per1000(_ total: Double) -> Double? { NodeCounters.per1000(total, operations: succeeded) }

    var isOpen: Bool { if case .open = settings.pace { true } else { false } }

    /// The shares with their names, where there is more than one.
    var behaviourShares: [(name: String, share: LoadShare)] {
        zip(settings.behaviours.values.map(\.rawValue), measurement.byBehaviour).map { ($0, $1) }
    }
    var nodeShares: [(name: String, share: LoadShare)] { zip(targets, measurement.byTarget).map { ($0, $1) } }
    var operationShares: [(name: String, share: LoadShare)] {
        zip(settings.mix.operations.map(\.rawValue), measurement.byOperation).map { ($0, $1) }
    }
}

extension LoadReport {
    var text: String {
        var lines = [headline, counts, ""]
        var table = Table(headings: ["milliseconds"] + Latency.names + ["count"])
        for (name, latency) in latencies {
            let cells = latency.values.map { String($0, digits: 3) } + ["\(latency.count)"]
            table.add([name == "corrected" ? "corrected*" : name] + cells)
        }
        lines.append(table.rows.isEmpty ? "nothing was measured" : table.text)
        if correctedLatency != nil {
            lines.append(
                "* a closed loop sends nothing while it waits; with the requests that it kept back, at one each median")
        }
        lines += shareLines + errorLines + [""] + costLines + [""] + sentences
        return lines.joined(separator: "\n")
    }

    var latencies: [(name: String, latency: Latency)] {
        [
            (isOpen ? "since due" : "answered in", latency), ("corrected", correctedLatency),
            ("until failure", failureLatency), ("generator late", lateness),
        ].compactMap { name, latency in latency.map { (name, $0) } }
    }

    private var shareLines: [String] {
        let groups = [behaviourShares, operationShares, nodeShares].filter { $0.count > 1 }
        guard !groups.isEmpty else { return [] }
        var table = Table("", "accepted", "/s", "throttled", "failed", "unanswered", "p50 ms", "p99 ms")
        for (name, share) in groups.flatMap(\.self) {
            table.add([name] + cells(of: share))
        }
        return ["", table.text]
    }

    /// Accepted, that a second, throttled, failed, unanswered, and two percentiles of the time to a good answer.
    func cells(of share: LoadShare) -> [String] {
        ["\(share.accepted)", seconds > 0 ? String(Double(share.accepted) / seconds, digits: 1) : "-"]
            + [share.throttled, share.failed, share.unanswered].map(String.init)
            + [50, 99].map { String(milliseconds: share.latencies.milliseconds(atPercentile: $0)) }
    }

    var headline: String {
        let pace =
            switch settings.pace {
            case .closed(let concurrency): "closed loop, concurrency \(concurrency)"
            case .open(let profile, let spacing, _):
                "open loop, \(Self.rates(of: profile)) \(spacing.rawValue), seed \(settings.seed)"
            }
        let nodes = targets.count == 1 ? targets[0] : "\(targets.count) nodes"
        let pattern = targets.count > 1 && settings.nodes != .even ? " (\(settings.nodes.name))" : ""
        return "\(settings.mix.name): \(pace), \(settings.connections) connections to \(nodes)\(pattern)"
            + (settings.users > 1 ? ", \(settings.users) users" : "")
            + (settings.place.zones.count > 1 ? ", \(settings.place.zones.count) zones" : "")
            + (wasInterrupted ? " (interrupted)" : "")
    }

    private static func rates(of profile: LoadProfile) -> String {
        func rate(_ value: Double) -> String { String(value, digits: 1) + "/s" }
        let pieces = profile.pieces
        switch profile.name {
        case "constant": return rate(pieces[0].from)
        case "ramp": return "ramp \(rate(pieces[0].from)) to \(rate(pieces[0].to))"
        default: return profile.name + " " + pieces.map { rate($0.from) }.joined(separator: ", ")
        }
    }

    private var counts: String {
        var text = "\(succeeded) succeeded in \(String(seconds, digits: 2)) s: "
        text += "\(String(operationsPerSecond, digits: 1))/s; \(failed) failed, \(unanswered) unanswered"
        if throttled > 0 { text += " (\(throttled) throttled)" }
        if let bytes = assetBytesPerSecond {
            text += "; files of \(Units.bytes(Int64(settings.assetBytes))), \(Units.bytes(Int64(bytes))) a second"
        }
        if isOpen { text += ", \(notIssued) not issued" }
        return text
    }

    private var errorLines: [String] {
        guard failed + unanswered > 0 else { return [] }
        var table = Table("error", "count", "the first one's reason")
        for error in errorsByCode { table.add([error.code, "\(error.count)", error.reason ?? ""]) }
        for error in errorsByStatus { table.add(["HTTP \(error.status)", "\(error.count)", ""]) }
        for error in errorsByTransport { table.add(["no answer: \(error.reason)", "\(error.count)", ""]) }
        return ["", table.text]
    }

    private var costLines: [String] {
        func cell(_ total: Double, _ digits: Int) -> String {
            per1000(total).map { String($0, digits: digits) } ?? "-"
        }
        var table = Table("per 1,000 operations", "log fdatasyncs", "log bytes", "CPU s")
        var notes: [String] = []
        switch cost {
        case .measured(let cost, let nodes):
            table.add(
                [
                    nodes == 1 ? "1 node" : "\(nodes) nodes together", cell(cost.logSyncs, 1),
                    cell(cost.logBytesWritten, 0), cell(cost.cpuSeconds, 3),
                ])
        case .unknown(let reason): notes.append("what the nodes spent is not known: \(reason)")
        }
        table.add(["this generator", "", "", cell(generatorCPUSeconds, 3)])
        return [table.text] + notes
    }
}

extension String {
    init(_ value: Double, digits: Int) { self = String(format: "%.\(digits)f", value) }

    /// With as many digits as say something.
    init(short value: Double) {
        self = String(value, digits: value == value.rounded() || value >= 1_000 ? 0 : value < 10 ? 2 : 1)
    }

    /// A time in the unit that suits it; `-` for nil.
    init(time milliseconds: Double?) {
        guard let milliseconds else {
            self = "-"
            return
        }
        self =
            milliseconds < 1_000
            ? "\(String(milliseconds: milliseconds)) ms" : "\(String(milliseconds / 1_000, digits: 2)) s"
    }

    /// `0.02` as `2 %`, with as many digits as say something.
    init(percent share: Double) {
        let value = share * 100
        let digits = value == value.rounded() ? 0 : abs(value) < 10 ? 2 : 1
        self = String(value, digits: digits) + " %"
    }

    /// A deviation in percent, with its sign.
    init(off percent: Double) { self = String(format: "%+.2f %%", percent) }

    /// Milliseconds with three significant digits or so; `-` for nil.
    init(milliseconds: Double?) {
        guard let value = milliseconds else {
            self = "-"
            return
        }
        self = String(value, digits: value < 10 ? 2 : value < 100 ? 1 : 0)
    }
}

/// What a run says about a limit, in sentences: the summary of the terminal and of the HTML report.
struct LoadFindings {
    let report: LoadReport

    /// Where the limit is, how exactly it was kept, how true `retryAfter` was, and what each kind of client got.
    var sentences: [String] { limitSentences + retrySentences + clientSentences + testerSentences }

    private var limitSentences: [String] {
        guard let limit = report.limit else {
            let text: String =
                if report.throttled > 0, report.settings.mix.hasRecords, report.settings.mix.hasKeyValues {
                    "Requests were refused; records and preferences have a limit each, so their sum is not judged."
                } else if report.throttled > 0 {
                    "Requests were refused, but in no whole second did nodes answer more than the limit: too little "
                        + "to judge it."
                } else {
                    "No limit was reached: nothing was refused at \(String(report.sentPerSecond, digits: 1)) requests "
                        + "a second."
                }
            return [text] + verdictSentence
        }
        let name =
            switch limit.source {
            case .given: "given"
            case .announced: "as the nodes announce it"
            case .estimated: "estimated from what was accepted, as nobody said it"
            }
        let span =
            limit.isWholeRun ? "in the whole run" : "from second \(Int(limit.begin)) on, while nodes answered more"
        var lines = [
            "The limit is \(String(short: limit.limit)) requests a second (\(name)); "
                + "\(String(short: Double(limit.sent) / limit.seconds))/s were offered.",
            "Accepted \(span): \(limit.accepted) in \(String(limit.seconds, digits: 2)) s; limit x time is "
                + "\(String(limit.allowed, digits: 1)) (\(String(off: (limit.ratio - 1) * 100))), limit x (time + 1 s) "
                + "\(String(limit.allowedMax, digits: 1)).",
        ]
        var bursts: [String] = []
        if let most = limit.acceptedInOneSecondMax { bursts.append("\(most) in any second") }
        if let most = limit.acceptedInTenSecondsMax { bursts.append("\(most) in any ten") }
        if !bursts.isEmpty {
            lines.append(
                "At most \(bursts.joined(separator: ", ")) were accepted, counted from tenth to tenth of a second.")
        }
        return lines + verdictSentence
    }

    private var verdictSentence: [String] {
        guard let verdict = report.verdict else { return [] }
        let reason = verdict.reason.map { ": \($0)" } ?? ""
        return switch verdict.kind {
        case .kept: ["The limit was kept."]
        case .missed: ["The limit was NOT kept\(reason)."]
        case .unknown: ["Whether the limit was kept is not known\(reason)."]
        }
    }

    private var retrySentences: [String] {
        let retryAfter = report.retryAfter
        guard retryAfter.refusals > 0 else { return [] }
        let times =
            "retryAfter came with \(retryAfter.refusalsWithTime) of \(retryAfter.refusals) refusals"
            + (retryAfter.refusalsWithTime > 0
                ? ": \(String(time: retryAfter.asked.milliseconds(atPercentile: 50))) in the median, "
                    + "\(String(time: retryAfter.asked.milliseconds(atPercentile: 100))) at most." : ".")
        guard let share = retryAfter.share else {
            return [times, "How true it is was not tried: --on-throttled honour sends again exactly then."]
        }
        let again =
            "\(retryAfter.accepted) of \(retryAfter.accepted + retryAfter.refusedAgain) retries sent exactly then "
            + "were accepted"
        let late =
            retryAfter.lateness.milliseconds(atPercentile: 50).map {
                ", sent \(String(milliseconds: $0)) ms after that moment in the median"
            } ?? ""
        return [times, "\(again): \(String(percent: (share * 1_000).rounded() / 1_000)) true\(late)."]
    }

    private var clientSentences: [String] {
        guard report.retryAfter.refusals > 0 else { return [] }
        return report.behaviourShares.compactMap { name, share in
            guard let part = share.acceptedShare else { return nil }
            let who: String =
                switch name {
                case ThrottleBehaviour.ignore.rawValue: "Clients that ignore it"
                case ThrottleBehaviour.honour.rawValue: "Clients that honour it"
                default: "Clients that back off by themselves"
                }
            var line =
                "\(who) got \(share.accepted) of \(share.requests) requests through "
                + "(\(String(percent: (part * 1_000).rounded() / 1_000))) with \(share.attempts) attempts"
            if name != ThrottleBehaviour.ignore.rawValue, let wait = share.waits.milliseconds(atPercentile: 50) {
                line += ", after \(String(time: wait)) in the median"
            }
            return line + "."
        }
    }

    private var testerSentences: [String] {
        let tester = report.tester
        var lines: [String] = []
        if let reason = tester.limitReason {
            lines.append(reason)
        } else if let capacity = tester.capacityPerSecond, report.seconds > 0 {
            let times = capacity / max(0.001, answeredPerSecond)
            lines.append(
                "The tester was busy for \(String(percent: (tester.busyShare * 1_000).rounded() / 1_000)) of the time; "
                    + "at that cost it could count \(String(short: capacity.rounded())) answers a second, "
                    + "\(String(short: times)) times what came")
        }
        lines += [tester.connectionReason, tester.machineNote].compactMap(\.self)
        return lines.map { $0.prefix(1).uppercased() + $0.dropFirst() + "." }
    }

    private var answeredPerSecond: Double {
        report.seconds > 0 ? Double(report.succeeded + report.failed) / report.seconds : 0
    }
}
