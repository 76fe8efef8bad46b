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
        lines += shareLines + errorLines + [""] + costLines + [""] + sentences
        return lines.joined(separator: "\n")
    }

    /// What each kind of client, operation and node got, where there is more than one.
    private var shareLines: [String] {
        let groups = [behaviourShares, operationShares, nodeShares].filter { $0.count > 1 }
        guard !groups.isEmpty else { return [] }
        var table = Table("", "accepted", "/s", "throttled", "failed", "unanswered", "p50 ms", "p99 ms")
        for (name, share) in groups.flatMap(\.self) {
            let counts = [
                "\(share.accepted)", seconds > 0 ? Self.fixed(Double(share.accepted) / seconds, digits: 1) : "-",
            ]
            table.add(
                [name] + counts + ["\(share.throttled)", "\(share.failed)", "\(share.unanswered)"]
                    + [50, 99].map { String(milliseconds: share.latencies.milliseconds(atPercentile: $0)) })
        }
        return ["", table.text]
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
        func rate(_ value: Double) -> String { fixed(value, digits: 1) + "/s" }
        let pieces = profile.pieces
        switch profile.name {
        case "constant": return rate(pieces[0].from)
        case "ramp": return "ramp \(rate(pieces[0].from)) to \(rate(pieces[0].to))"
        default: return profile.name + " " + pieces.map { rate($0.from) }.joined(separator: ", ")
        }
    }

    private var counts: String {
        var text = "\(succeeded) succeeded in \(Self.fixed(seconds, digits: 2)) s: "
        text += "\(Self.fixed(operationsPerSecond, digits: 1))/s; \(failed) failed, \(unanswered) unanswered"
        if throttled > 0 { text += " (\(throttled) throttled)" }
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
