/// What a live view shows of one moment of a run, as lines of text.
struct LiveFrame: Sendable {
    let glance: LoadGlance
    /// Seconds that the run is to take; nil where a number of requests bounds it.
    let secondsMax: Double?
    /// Requests a second that are expected to be allowed; nil where the nodes' word counts.
    let limit: Double?

    /// The last whole second.
    private var second: LoadTimeline.Second { glance.lately.last ?? LoadTimeline.Second() }

    /// One line, for a log.
    var line: String {
        var parts = [
            "\(String(glance.seconds, digits: 0)) s", "\(second.sent)/s sent", "\(second.accepted)/s accepted",
            "\(second.throttled)/s throttled", "\(second.failed + second.unanswered)/s failed",
            "p50 \(String(milliseconds: second.p50)) ms", "p99 \(String(milliseconds: second.p99)) ms",
        ]
        if let remaining = glance.budget?.remaining { parts.append("budget \(LoadReport.short(remaining))") }
        return parts.joined(separator: ", ")
    }

    /// The screen, no line longer than `width`; always the same number of lines, so that it can be written over.
    func lines(width: Int) -> [String] {
        let wait = glance.waitingToRetry > 0 ? ", \(glance.waitingToRetry) waiting to retry" : ""
        let lines = [
            progress(width: min(width, 72)),
            "",
            row("", "last second", "run, a second", "total"),
            row("due", glance.dueRate.map(LoadReport.short) ?? "-", "", ""),
            row("sent", second.sent, glance.sent),
            row("accepted", second.accepted, glance.accepted),
            row("throttled", second.throttled, glance.throttled),
            row("failed", second.failed + second.unanswered, glance.failed),
            "",
            "latency ms, second  p50 \(pad(second.p50)) p90 \(pad(second.p90)) p99 \(pad(second.p99)) max \(pad(second.max))",
            "latency ms, run     p50 \(pad(percentile(50))) p90 \(pad(percentile(90))) p99 \(pad(percentile(99))) p99.9 \(pad(percentile(99.9)))",
            "accepted " + Self.sparkline(glance.lately.map { Double($0.accepted) }, width: max(8, min(60, width - 10))),
            "budget   " + budget,
            "errors   "
                + (glance.errors.isEmpty
                    ? "none" : glance.errors.map { "\($0.name) \($0.count)" }.joined(separator: ", ")),
            "         \(glance.outstanding) under way, \(glance.notIssued) not issued\(wait)",
        ]
        return lines.map { $0.shortened(to: width) }
    }

    private func progress(width: Int) -> String {
        let seconds = String(glance.seconds, digits: 0)
        guard let secondsMax else { return "\(seconds) s" }
        let label = "\(seconds) of \(LoadReport.short(secondsMax)) s "
        let room = max(4, width - label.count - 2)
        let full = min(room, Int(Double(room) * glance.seconds / secondsMax))
        return label + "[" + String(repeating: "#", count: full) + String(repeating: " ", count: room - full) + "]"
    }

    private var budget: String {
        let rate = limit ?? glance.budget?.rate
        guard glance.budget != nil || rate != nil else { return "no limit announced" }
        var parts: [String] = []
        if let rate { parts.append("limit \(LoadReport.short(rate))/s") }
        if let remaining = glance.budget?.remaining { parts.append("\(LoadReport.short(remaining)) left") }
        if let reset = glance.budget?.resetSeconds { parts.append("more in \(LoadReport.short(reset)) s") }
        return parts.joined(separator: ", ")
    }

    private func percentile(_ value: Double) -> Double? { glance.latencies.milliseconds(atPercentile: value) }

    private func row(_ name: String, _ second: Int, _ total: Int) -> String {
        let rate = glance.seconds > 0 ? Double(total) / glance.seconds : 0
        return row(name, "\(second)", String(rate, digits: 1), "\(total)")
    }

    private func row(_ cells: String...) -> String {
        cells.enumerated().map { index, cell in
            let padding = String(repeating: " ", count: max(0, (index == 0 ? 10 : 14) - cell.count))
            return index == 0 ? cell + padding : padding + cell
        }.joined()
    }

    private func pad(_ value: Double?) -> String {
        let text = String(milliseconds: value)
        return text + String(repeating: " ", count: max(0, 7 - text.count))
    }

    /// The last values as bars of eight heights.
    static func sparkline(_ values: [Double], width: Int) -> String {
        let bars = Array("▁▂▃▄▅▆▇█")
        let shown = values.suffix(width)
        guard let most = shown.max(), most > 0 else { return "" }
        return String(shown.map { bars[min(7, Int($0 / most * 7.999))] })
    }
}
