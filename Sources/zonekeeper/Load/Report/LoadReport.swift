import Histogram
import RecordModel

/// What a run comes to, with all arithmetic done.
struct LoadReport: Sendable {
    /// Percentiles of one histogram, in milliseconds.
    struct Latency: Hashable, Sendable {
        let count: Int
        let p50: Double
        let p90: Double
        let p99: Double
        let p999: Double
        let max: Double
        let mean: Double

        /// - Returns: nil when nothing was measured.
        init?(_ histogram: Histogram<UInt64>) {
            guard histogram.totalCount > 0 else { return nil }
            func milliseconds(_ percentile: Double) -> Double {
                Double(histogram.valueAtPercentile(percentile)) / 1_000_000
            }
            count = Int(histogram.totalCount)
            p50 = milliseconds(50)
            p90 = milliseconds(90)
            p99 = milliseconds(99)
            p999 = milliseconds(99.9)
            max = Double(histogram.maxRecorded) / 1_000_000
            mean = histogram.mean / 1_000_000
        }
    }

    /// The nodes' counters over the run, or why they are not known.
    enum Cost: Sendable {
        case measured(ClusterCost, nodes: Int)
        case unknown(String)
    }

    /// What a limit is held against.
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
    var truth: RetryTruth { measurement.truth }

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
            let median = tally.latencies.valueAtPercentile(50)
            correctedLatency =
                tally.succeeded > 0 ? Latency(tally.correctedLatencies(intervalNanoseconds: median)) : nil
        }
        errorsByCode = tally.errorsByCode.map { (code: $0.key, count: $0.value, reason: tally.reasonsByCode[$0.key]) }
            .sorted { ($1.count, $0.code) < ($0.count, $1.code) }
        errorsByStatus = tally.errorsByStatus.map { (status: $0.key, count: $0.value) }
            .sorted { ($1.count, $0.status) < ($0.count, $1.status) }
        errorsByTransport = tally.errorsByTransport.map { (reason: $0.key, count: $0.value) }
            .sorted { ($1.count, $0.reason) < ($0.count, $1.reason) }
        let tester = TesterShare(result)
        // Records and preferences have a limit each; what is accepted of both together is held against neither.
        let hasBoth = settings.mix.hasRecords && settings.mix.hasKeyValues
        let measure = hasBoth ? nil : LimitMeasure(result.measurement, limit: expectation.limit)
        self.tester = tester
        limit = measure
        verdict = expectation.limit.flatMap { limit in
            expectation.tolerance.map {
                LimitVerdict(measure, limit: limit, tolerance: $0, testerIsLimit: tester.limitReason)
            }
        }
    }

    /// Successes a second.
    var operationsPerSecond: Double { seconds > 0 ? Double(succeeded) / seconds : 0 }

    func per1000(_ total: Double) -> Double? { ClusterCost.per1000(total, operations: succeeded) }

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
