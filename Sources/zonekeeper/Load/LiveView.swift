import Foundation

struct LiveFrame: Sendable {
    let snapshot: LoadSnapshot
    /// Seconds that the run is to take; nil where a number of requests bounds it.
    let secondsMax: Double?
    /// Requests a second that are expected to be allowed; nil where the nodes' word counts.
    let limit: Double?

    private var second: LoadTimeline.Second { snapshot.lately.last ?? LoadTimeline.Second() }

    /// One line, for a log.
    var line: String {
        var parts = [
            "\(String(snapshot.seconds, digits: 0)) s", "\(second.sent)/s sent", "\(second.accepted)/s accepted",
            "\(second.throttled)/s throttled", "\(second.failed + second.unanswered)/s failed",
        ]
        if let p50 = second.p50, let p99 = second.p99 {
            parts += ["p50 \(String(milliseconds: p50)) ms", "p99 \(String(milliseconds: p99)) ms"]
        }
        if let remaining = snapshot.budget?.remaining {
            parts.append("\(String(short: remaining)) of the limit left")
        }
        return parts.joined(separator: ", ")
    }

    /// The screen, no line longer than `width`; always the same number of lines, so that it can be written over.
    func lines(width: Int) -> [String] {
        let wait = snapshot.waitingToRetry > 0 ? ", \(snapshot.waitingToRetry) waiting to retry" : ""
        let accepted = Self.sparkline(
            snapshot.lately.map { Double($0.accepted) }, width: max(8, min(60, width - 10)))
        let errors = snapshot.errors.map { "\($0.name) \($0.count)" }
        let lines: [String] = [
            progress(width: min(width, 72)),
            "",
            row("", "last second", "run, a second", "total"),
            row("due", snapshot.dueRate.map { String(short: $0) } ?? "-", "", ""),
            row("sent", second.sent, snapshot.sent),
            row("accepted", second.accepted, snapshot.accepted),
            row("throttled", second.throttled, snapshot.throttled),
            row("failed", second.failed + second.unanswered, snapshot.failed),
            "",
            """
            latency ms, second  p50 \(pad(second.p50)) p90 \(pad(second.p90)) p99 \(pad(second.p99)) \
            max \(pad(second.max))
            """,
            """
            latency ms, run     p50 \(pad(percentile(50))) p90 \(pad(percentile(90))) p99 \(pad(percentile(99))) \
            p99.9 \(pad(percentile(99.9)))
            """,
            "accepted \(accepted)",
            "budget   \(budget)",
            "errors   \(errors.isEmpty ? "none" : errors.joined(separator: ", "))",
            "         \(snapshot.outstanding) under way, \(snapshot.notIssued) not issued\(wait)",
        ]
        return lines.map { $0.shortened(to: width) }
    }

    private func progress(width: Int) -> String {
        let seconds = String(snapshot.seconds, digits: 0)
        guard let secondsMax else { return "\(seconds) s" }
        let label = "\(seconds) of \(String(short: secondsMax)) s "
        let room = max(4, width - label.count - 2)
        let full = min(room, Int(Double(room) * snapshot.seconds / secondsMax))
        return label + "[" + String(repeating: "#", count: full) + String(repeating: " ", count: room - full) + "]"
    }

    private var budget: String {
        let rate = limit ?? snapshot.budget?.rate
        guard snapshot.budget != nil || rate != nil else { return "no limit announced" }
        var parts: [String] = []
        if let rate { parts.append("limit \(String(short: rate))/s") }
        if let remaining = snapshot.budget?.remaining { parts.append("\(String(short: remaining)) left") }
        if let reset = snapshot.budget?.resetSeconds { parts.append("more in \(String(short: reset)) s") }
        return parts.joined(separator: ", ")
    }

    private func percentile(_ value: Double) -> Double? { snapshot.latencies.milliseconds(atPercentile: value) }

    private func row(_ name: String, _ second: Int, _ total: Int) -> String {
        let rate = snapshot.seconds > 0 ? Double(total) / snapshot.seconds : 0
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

/// Shows a run while it goes: a screen that is drawn over on a terminal, else a line now and then.
struct LiveView: Sendable {
    enum Mode: Hashable, Sendable {
        case screen
        /// On standard error, so that what is written to a file or a pipe is the report alone.
        case lines
        case none
    }

    let mode: Mode
    let settings: LoadSettings
    let limit: Double?

    static func mode(isQuiet: Bool, printsJSON: Bool) -> Mode {
        if isQuiet { return .none }
        return !printsJSON && isatty(STDOUT_FILENO) == 1 ? .screen : .lines
    }

    /// Until its task is cancelled or the run is over.
    /// - Parameter snapshot: nil when the run is over.
    func watch(_ snapshot: @Sendable () async -> LoadSnapshot?) async {
        var drawn = 0
        while mode != .none {
            let pause: Duration = mode == .screen ? .milliseconds(250) : .seconds(2)
            do { try await Task.sleep(for: pause) } catch { break }
            guard let now = await snapshot() else { break }
            let frame = LiveFrame(snapshot: now, secondsMax: settings.bound.seconds, limit: limit)
            if mode == .lines {
                Console.note(frame.line)
                continue
            }
            let lines = frame.lines(width: Self.terminalWidth)
            // Up to the first line of the frame before, and over it line by line: no flicker, and nothing above is
            // lost.
            Console.printPart((drawn > 0 ? "\u{1B}[\(drawn)A" : "") + lines.map { "\r\u{1B}[K\($0)\n" }.joined())
            drawn = lines.count
        }
        // The report comes where the screen was.
        if drawn > 0 { Console.printPart("\u{1B}[\(drawn)A\u{1B}[J") }
    }

    private static var terminalWidth: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col >= 20 else { return 80 }
        return Int(size.ws_col)
    }
}
