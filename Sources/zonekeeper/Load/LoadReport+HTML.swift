import Foundation
import WebServices

extension LoadReport {
    /// The report as one page that needs nothing else: no script, no network.
    func html(date: String) -> String {
        let title = "\(settings.mix.name) on \(settings.place.container)"
        return """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <title>Load: \(title.escapedForHTML)</title>
            <style>\(Self.style)</style></head><body><main>
            <h1>\(title.escapedForHTML)</h1>
            <p class="sub">\(headline.escapedForHTML) · \(date.escapedForHTML)</p>
            \(badge)
            <div class="cards">\(cards.joined())</div>
            <h2>Findings</h2>
            <ul>\(sentences.map { "<li>\($0.escapedForHTML)</li>" }.joined(separator: "\n"))</ul>
            <h2>Over time</h2>
            \(charts.map(\.svg).joined(separator: "\n"))
            \(tables.joined(separator: "\n"))
            </main></body></html>

            """
    }

    private var badge: String {
        guard let verdict else { return "" }
        let text =
            switch verdict.kind {
            case .kept: "limit kept"
            case .missed: "limit not kept"
            case .unknown: "limit not judged"
            }
        return "<p><span class=\"badge \(verdict.kind.rawValue)\">\(text)</span></p>"
    }

    private var cards: [String] {
        func card(_ value: String, _ name: String) -> String {
            "<div class=\"card\"><b>\(value.escapedForHTML)</b><span>\(name.escapedForHTML)</span></div>"
        }
        var cards = [
            card(String(operationsPerSecond, digits: 1) + "/s", "accepted"),
            card(String(sentPerSecond, digits: 1) + "/s", "offered"), card("\(throttled)", "throttled"),
            card("\(failed - throttled + unanswered)", "failed otherwise"),
            card(latency.map { String(time: $0.p50) } ?? "-", "median"),
            card(latency.map { String(time: $0.p99) } ?? "-", "99th percentile"),
        ]
        if let limit { cards.insert(card(String(off: (limit.ratio - 1) * 100), "off limit × time"), at: 0) }
        if let share = retryAfter.share {
            cards.append(card(String(percent: (share * 1_000).rounded() / 1_000), "true retryAfter"))
        }
        return cards
    }

    private var charts: [LineChart] {
        // The last second of a run is cut short, and would look like a fall.
        let all = measurement.timeline.seconds
        let seconds = all.count > 1 ? all.dropLast() : all[...]
        var rates: [LineChart.Line] = [
            .init(name: "offered", style: "c4", values: seconds.map { Double($0.sent) }),
            .init(name: "accepted", style: "c1", values: seconds.map { Double($0.accepted) }),
            .init(name: "throttled", style: "c2", values: seconds.map { Double($0.throttled) }),
        ]
        if failed - throttled + unanswered > 0 {
            rates.append(.init(name: "failed", style: "c3", values: seconds.map { Double($0.failed + $0.unanswered) }))
        }
        var charts = [LineChart(title: "Requests", unit: "a second", lines: rates)]
        if let limit {
            charts.append(
                LineChart(
                    title: "Accepted against the limit", unit: "a second",
                    lines: [
                        .init(name: "limit", style: "rule", values: seconds.map { _ in limit.limit }),
                        .init(name: "accepted", style: "c1", values: seconds.map { Double($0.accepted) }),
                    ]))
        }
        charts.append(
            LineChart(
                title: "Time to a good answer", unit: "milliseconds",
                lines: [
                    .init(name: "p99", style: "c3", values: seconds.map(\.p99)),
                    .init(name: "p90", style: "c2", values: seconds.map(\.p90)),
                    .init(name: "median", style: "c1", values: seconds.map(\.p50)),
                ]))
        return charts
    }

    private var tables: [String] {
        var tables: [String] = []
        let latencies = latencies.map { name, latency in
            [name] + latency.values.map { String(milliseconds: $0) } + ["\(latency.count)"]
        }
        tables.append("<h2>Latency, milliseconds</h2>" + HTML.table([""] + Latency.names + ["count"], latencies))
        for (name, shares) in [("Clients", behaviourShares), ("Operations", operationShares), ("Nodes", nodeShares)] {
            tables.append("<h2>\(name)</h2>" + shareTable(shares))
        }
        if !errorsByCode.isEmpty || !errorsByTransport.isEmpty {
            let errors =
                errorsByCode.map { [$0.code, "\($0.count)", $0.reason ?? ""] }
                + errorsByTransport.map { ["no answer: \($0.reason)", "\($0.count)", ""] }
            tables.append("<h2>Errors</h2>" + HTML.table(["code", "count", "the first one's reason"], errors))
        }
        return tables
    }

    private func shareTable(_ shares: [(name: String, share: LoadShare)]) -> String {
        HTML.table(
            ["", "attempts", "accepted", "a second", "throttled", "failed", "unanswered", "p50 ms", "p99 ms"],
            shares.map { name, share in [name, "\(share.attempts)"] + cells(of: share) })
    }

    private static let style = """
        :root{color-scheme:light dark;--ink:#1c2330;--soft:#5b6472;--line:#dfe3e8;--page:#fff;--card:#f5f7f9;\
        --c1:#2367c9;--c2:#c9720a;--c3:#b3261e;--c4:#8b95a3}
        @media(prefers-color-scheme:dark){:root{--ink:#e8ebf0;--soft:#9aa4b2;--line:#343b46;--page:#14181e;\
        --card:#1d232b;--c1:#6aa5f5;--c2:#f0a146;--c3:#f2837b;--c4:#76808e}}
        *{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);\
        font:15px/1.5 system-ui,sans-serif}
        main{max-width:820px;margin:0 auto;padding:32px 20px 64px}h1{font-size:24px;margin:0}\
        h2{font-size:17px;margin:32px 0 8px}
        .sub{color:var(--soft);margin:4px 0 16px}.cards{display:grid;\
        grid-template-columns:repeat(auto-fit,minmax(120px,1fr));gap:10px}
        .card{background:var(--card);border-radius:8px;padding:10px 12px}\
        .card b{display:block;font-size:19px;font-variant-numeric:tabular-nums;white-space:nowrap}
        .card span,.unit,.legend{color:var(--soft);font-size:13px}\
        .badge{border-radius:99px;padding:3px 12px;font-weight:600;color:#fff;background:#5b6472}
        .badge.kept{background:#1a7f4b}.badge.missed{background:#b3261e}ul{padding-left:20px}figure{margin:16px 0}\
        figcaption{font-weight:600}
        svg{width:100%;height:auto;display:block}path{fill:none;stroke-width:1.8;stroke-linejoin:round;\
        stroke-linecap:round}
        .c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}\
        .rule{stroke:var(--ink);stroke-dasharray:5 4;stroke-width:1.4}
        .grid{stroke:var(--line)}.tick{fill:var(--soft);font-size:11px}.legend{margin:2px 0}\
        .legend span{margin-right:14px;white-space:nowrap}
        .key{display:inline-block;width:18px;height:8px;margin-right:5px}.wide{overflow-x:auto}
        table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
        th,td{text-align:right;padding:4px 8px;border-bottom:1px solid var(--line);white-space:nowrap}
        th{color:var(--soft);font-weight:500;font-size:13px}th:first-child,td:first-child{text-align:left}
        """
}

/// A chart of values over the seconds of a run, as SVG inside a page: no script, no font, no network.
struct LineChart: Sendable {
    /// One line. `values` has one for each second; nil leaves a gap.
    struct Line: Sendable {
        var name: String
        /// The CSS class that gives it its colour: `c1` to `c4`, or `rule` for a dashed line.
        var style: String
        var values: [Double?]
    }

    var title: String
    var unit: String
    var lines: [Line]

    private static let width = 760.0
    private static let height = 240.0
    private static let left = 52.0
    private static let right = 12.0
    private static let top = 12.0
    private static let bottom = 28.0
    /// Points of one line at most: seconds beyond are put together, as their mean.
    private static let pointsMax = 380

    var svg: String {
        let seconds = lines.map(\.values.count).max() ?? 0
        let top = Self.axisTop(lines.flatMap(\.values).compactMap(\.self).max() ?? 0)
        var parts = [
            "<figure><figcaption>\(title.escapedForHTML) "
                + "<span class=\"unit\">\(unit.escapedForHTML)</span></figcaption>",
            "<svg viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" role=\"img\" "
                + "aria-label=\"\(title.escapedForHTML)\">",
        ]
        for step in 0...4 {
            let value = top * Double(step) / 4
            let y = Self.y(value, top: top)
            parts.append(
                "<line class=\"grid\" x1=\"\(Int(Self.left))\" x2=\"\(Int(Self.width - Self.right))\" y1=\"\(y)\" "
                    + "y2=\"\(y)\"/>")
            parts.append(
                "<text class=\"tick\" x=\"\(Int(Self.left) - 6)\" y=\"\(y)\" dy=\"4\" "
                    + "text-anchor=\"end\">\(Self.label(value, top: top))</text>")
        }
        for second in Self.ticks(seconds) {
            let x = Self.x(Double(second), of: seconds)
            parts.append(
                "<text class=\"tick\" x=\"\(x)\" y=\"\(Int(Self.height) - 8)\" text-anchor=\"middle\">\(second) "
                    + "s</text>")
        }
        for line in lines { parts.append(Self.path(line, seconds: seconds, top: top)) }
        parts.append("</svg>")
        parts.append("<p class=\"legend\">" + lines.map(Self.legend).joined(separator: " ") + "</p></figure>")
        return parts.joined(separator: "\n")
    }

    private static func path(_ line: Line, seconds: Int, top: Double) -> String {
        var commands = ""
        var isPenDown = false
        for (second, value) in merged(line.values) {
            guard let value else {
                isPenDown = false
                continue
            }
            commands += "\(isPenDown ? "L" : "M")\(x(second, of: seconds)) \(y(value, top: top))"
            // A value on its own would be invisible without a length.
            if !isPenDown { commands += "h0.1" }
            isPenDown = true
        }
        return "<path class=\"\(line.style)\" d=\"\(commands)\"/>"
    }

    /// Neighbours put together so that there are no more points than can be seen.
    private static func merged(_ values: [Double?]) -> [(second: Double, value: Double?)] {
        let width = max(1, (values.count + pointsMax - 1) / pointsMax)
        return stride(from: 0, to: values.count, by: width).map { first in
            let slice = values[first..<min(first + width, values.count)]
            let known = slice.compactMap(\.self)
            let mean = known.isEmpty ? nil : known.reduce(0, +) / Double(known.count)
            return (Double(first) + Double(slice.count) / 2, mean)
        }
    }

    private static func legend(_ line: Line) -> String {
        "<span><svg class=\"key\" viewBox=\"0 0 18 8\"><path class=\"\(line.style)\" d=\"M1 "
            + "4h16\"/></svg>\(line.name.escapedForHTML)</span>"
    }

    private static func x(_ second: Double, of seconds: Int) -> String {
        String(left + (width - left - right) * second / Double(max(1, seconds)), digits: 1)
    }

    private static func y(_ value: Double, top: Double) -> String {
        String(Self.top + (height - Self.top - bottom) * (1 - value / top), digits: 1)
    }

    /// The next number above that is 1, 2, 4, 5 or 8 times a power of ten.
    static func axisTop(_ value: Double) -> Double {
        guard value > 0, value.isFinite else { return 1 }
        let power = pow(10, floor(log10(value)))
        let factor = [1, 2, 4, 5, 8, 10].first { $0 * power >= value * 0.999_999 } ?? 10
        return factor * power
    }

    static func label(_ value: Double, top: Double) -> String {
        let unit = top >= 10_000 ? 1_000.0 : 1
        // As few digits as write each of the axis' four steps in full.
        let step = top / unit / 4
        let digits = (0...2).first { digits in
            let shifted = step * pow(10, Double(digits))
            return abs(shifted - shifted.rounded()) < 1e-6
        }
        return String(value / unit, digits: digits ?? 3) + (unit > 1 ? "k" : "")
    }

    /// At most eight marks at round seconds, from 0.
    private static func ticks(_ seconds: Int) -> [Int] {
        let step =
            [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400].first { seconds / $0 <= 8 } ?? 86_400
        return Array(stride(from: 0, through: seconds, by: step))
    }
}

enum HTML {
    /// A table; cells are escaped. The first column is text, the others are numbers.
    static func table(_ headings: [String], _ rows: [[String]]) -> String {
        func row(_ cells: [String], _ tag: String) -> String {
            "<tr>" + cells.map { "<\(tag)>\($0.escapedForHTML)</\(tag)>" }.joined() + "</tr>"
        }
        return "<div class=\"wide\"><table><thead>\(row(headings, "th"))</thead><tbody>"
            + rows.map { row($0, "td") }.joined(separator: "\n") + "</tbody></table></div>"
    }
}
