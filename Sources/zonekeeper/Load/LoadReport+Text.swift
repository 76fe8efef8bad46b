import Foundation

extension LoadReport {
    /// The report for people.
    var text: String {
        var lines = [headline, counts, ""]
        var table = Table("milliseconds", "p50", "p90", "p99", "p99.9", "max", "mean", "count")
        let rows: [(String, Latency?)] = [
            (isOpen ? "since due" : "answered in", latency), ("corrected*", correctedLatency),
            ("until failure", failureLatency), ("generator late", lateness),
        ]
        for case (let name, let latency?) in rows {
            let cells = [latency.p50, latency.p90, latency.p99, latency.p999, latency.max, latency.mean]
            table.add([name] + cells.map { Self.fixed($0, digits: 3) } + ["\(latency.count)"])
        }
        lines.append(table.rows.isEmpty ? "nothing was measured" : table.text)
        if correctedLatency != nil {
            lines.append(
                "* a closed loop sends nothing while it waits; with the requests that it kept back, at one each median")
        }
        lines += errorLines + [""] + costLines
        return lines.joined(separator: "\n")
    }

    private var isOpen: Bool { if case .open = settings.pace { true } else { false } }

    private var headline: String {
        let pace =
            switch settings.pace {
            case .closed(let concurrency): "closed loop, concurrency \(concurrency)"
            case .open(let rate, let spacing, _):
                "open loop, \(Self.fixed(rate, digits: 1))/s \(spacing.rawValue), seed \(settings.seed)"
            }
        let nodes = targets.count == 1 ? targets[0] : "\(targets.count) nodes"
        return "\(settings.operation.rawValue): \(pace), \(settings.connections) connections to \(nodes)"
            + (wasInterrupted ? " (interrupted)" : "")
    }

    private var counts: String {
        var text = "\(succeeded) succeeded in \(Self.fixed(seconds, digits: 2)) s: "
        text += "\(Self.fixed(operationsPerSecond, digits: 1))/s; \(failed) failed, \(unanswered) unanswered"
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
            per1000(total).map { Self.fixed($0, digits: digits) } ?? "-"
        }
        var table = Table("per 1,000 operations", "log fdatasyncs", "log bytes", "CPU s")
        var notes: [String] = []
        switch cost {
        case .measured(let cost, let nodes):
            table.add(
                [
                    nodes == 1 ? "1 node" : "\(nodes) nodes together", cell(cost.logSyncs, 1),
                    cell(cost.logBytesWritten, 0),
                    cell(cost.cpuSeconds, 3),
                ])
        case .unknown(let reason): notes.append("what the nodes spent is not known: \(reason)")
        }
        table.add(["this generator", "", "", cell(generatorCPUSeconds, 3)])
        return [table.text] + notes
    }

    private static func fixed(_ value: Double, digits: Int) -> String { String(format: "%.\(digits)f", value) }
}
