/// What a node has counted since its start, from `GET /admin/1/metrics`.
struct NodeCounters: Hashable, Sendable {
    /// fdatasyncs of the log.
    var logSyncs: Double
    var logBytesWritten: Double
    /// User and system time of the node's process.
    var cpuSeconds: Double

    init(logSyncs: Double, logBytesWritten: Double, cpuSeconds: Double) {
        self.logSyncs = logSyncs
        self.logBytesWritten = logBytesWritten
        self.cpuSeconds = cpuSeconds
    }

    /// Reads the Prometheus text form; nil when one of the three is missing or not a number.
    init?(metrics text: some StringProtocol) {
        var values: [Substring: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: " ")
            guard parts.count == 2, let value = Double(parts[1]), value.isFinite else { continue }
            values[Substring(parts[0])] = value
        }
        guard let syncs = values["zonekeeper_log_syncs_total"],
            let bytes = values["zonekeeper_log_written_bytes_total"],
            let cpu = values["zonekeeper_cpu_seconds_total"]
        else { return nil }
        self.init(logSyncs: syncs, logBytesWritten: bytes, cpuSeconds: cpu)
    }
}

/// What all nodes together spent on a run.
struct ClusterCost: Hashable, Sendable {
    var logSyncs = 0.0
    var logBytesWritten = 0.0
    var cpuSeconds = 0.0

    /// The difference of two readings, each with one entry a node in the same order.
    /// - Returns: nil when a node was started anew between them, as then its counters say nothing about the run.
    init?(before: [NodeCounters], after: [NodeCounters]) {
        precondition(before.count == after.count, "\(before.count) readings before, \(after.count) after")
        for (first, second) in zip(before, after) {
            let isSameProcess =
                second.logSyncs >= first.logSyncs && second.logBytesWritten >= first.logBytesWritten
                && second.cpuSeconds >= first.cpuSeconds
            guard isSameProcess else { return nil }
            logSyncs += second.logSyncs - first.logSyncs
            logBytesWritten += second.logBytesWritten - first.logBytesWritten
            cpuSeconds += second.cpuSeconds - first.cpuSeconds
        }
    }

    /// The share of 1,000 operations; nil where there was none.
    static func per1000(_ total: Double, operations: Int) -> Double? {
        operations > 0 ? total / Double(operations) * 1_000 : nil
    }
}
