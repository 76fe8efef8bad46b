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

    let settings: LoadSettings
    let targets: [String]
    let seconds: Double
    let wasInterrupted: Bool
    let succeeded: Int
    let failed: Int
    let unanswered: Int
    let notIssued: Int
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
    /// User and system time that the load command itself took.
    let generatorCPUSeconds: Double

    init(
        _ result: LoadResult, settings: LoadSettings, targets: [String], cost: Cost, generatorCPUSeconds: Double
    ) {
        let tally = result.tally
        self.settings = settings
        self.targets = targets
        self.cost = cost
        self.generatorCPUSeconds = generatorCPUSeconds
        seconds = result.seconds
        wasInterrupted = result.wasInterrupted
        succeeded = tally.succeeded
        unanswered = tally.unanswered
        failed = tally.failed - tally.unanswered
        notIssued = tally.notIssued
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
    }

    /// Successes a second.
    var operationsPerSecond: Double { seconds > 0 ? Double(succeeded) / seconds : 0 }

    func per1000(_ total: Double) -> Double? { ClusterCost.per1000(total, operations: succeeded) }
}
