import Foundation

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
    /// What the vertical axis counts.
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
            "<figure><figcaption>\(HTML.escape(title)) <span class=\"unit\">\(HTML.escape(unit))</span></figcaption>",
            "<svg viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" role=\"img\" aria-label=\"\(HTML.escape(title))\">",
        ]
        for step in 0...4 {
            let value = top * Double(step) / 4
            let y = Self.y(value, top: top)
            parts.append(
                "<line class=\"grid\" x1=\"\(Int(Self.left))\" x2=\"\(Int(Self.width - Self.right))\" y1=\"\(y)\" y2=\"\(y)\"/>"
            )
            parts.append(
                "<text class=\"tick\" x=\"\(Int(Self.left) - 6)\" y=\"\(y)\" dy=\"4\" text-anchor=\"end\">\(Self.label(value, top: top))</text>"
            )
        }
        for second in Self.ticks(seconds) {
            let x = Self.x(Double(second), of: seconds)
            parts.append(
                "<text class=\"tick\" x=\"\(x)\" y=\"\(Int(Self.height) - 8)\" text-anchor=\"middle\">\(second) s</text>"
            )
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
        "<span><svg class=\"key\" viewBox=\"0 0 18 8\"><path class=\"\(line.style)\" d=\"M1 4h16\"/></svg>\(HTML.escape(line.name))</span>"
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
        let digits =
            [0, 1, 2].first { abs(step * pow(10, Double($0)) - (step * pow(10, Double($0))).rounded()) < 1e-6 } ?? 3
        return String(value / unit, digits: digits) + (unit > 1 ? "k" : "")
    }

    /// At most eight marks at round seconds, from 0.
    private static func ticks(_ seconds: Int) -> [Int] {
        let step =
            [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400].first { seconds / $0 <= 8 } ?? 86_400
        return Array(stride(from: 0, through: seconds, by: step))
    }
}

/// Text in a page.
enum HTML {
    static func escape(_ text: some StringProtocol) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }

    /// A table; cells are escaped. The first column is text, the others are numbers.
    static func table(_ headings: [String], _ rows: [[String]]) -> String {
        func row(_ cells: [String], _ tag: String) -> String {
            "<tr>" + cells.map { "<\(tag)>\(escape($0))</\(tag)>" }.joined() + "</tr>"
        }
        return "<div class=\"wide\"><table><thead>\(row(headings, "th"))</thead><tbody>"
            + rows.map { row($0, "td") }.joined(separator: "\n") + "</tbody></table></div>"
    }
}
