import ArgumentParser
import Foundation

/// Amounts as people read and write them: decimal units, as storage is sold and CloudKit's limits are stated.
enum Units {
    private static let decimal = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"]
    private static let factors: [String: Int64] = [
        "": 1, "b": 1, "byte": 1, "bytes": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000,
        "tb": 1_000_000_000_000, "pb": 1_000_000_000_000_000, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
        "tib": 1 << 40, "pib": 1 << 50,
    ]

    /// Such as `999 bytes`, `1.2 MB`, `100 MB`: two digits or more, cut rather than rounded up, so that what is shown
    /// as full is.
    static func bytes(_ count: Int64) -> String {
        var unit = 0
        var scale: UInt64 = 1
        while unit + 1 < decimal.count, count.magnitude / scale >= 1_000 {
            scale *= 1_000
            unit += 1
        }
        let sign = count < 0 ? "-" : ""
        let whole = count.magnitude / scale
        if unit == 0 { return "\(count) \(whole == 1 ? "byte" : "bytes")" }
        let tenth = count.magnitude % scale / (scale / 10)
        return "\(sign)\(whole)\(whole < 100 && tenth > 0 ? ".\(tenth)" : "") \(decimal[unit])"
    }

    /// Such as `1,234,567`.
    static func count(_ count: Int64) -> String {
        var text = ""
        for (position, digit) in String(count.magnitude).reversed().enumerated() {
            if position > 0, position % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return (count < 0 ? "-" : "") + String(text.reversed())
    }

    /// Such as `0.25 s`, `12.5 s`, `2 min`, `1 h 5 min`; rounded up: a caller that waits this long has waited long
    /// enough.
    static func seconds(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds >= 0, seconds < 1e9 else { return "\(seconds) s" }
        if seconds < 60 {
            let hundredths = Int((seconds * 100 - 1e-6).rounded(.up))
            let digits = hundredths % 100 == 0 ? "" : hundredths % 10 == 0 ? ".\(hundredths % 100 / 10)" : nil
            return "\(hundredths / 100)\(digits ?? (hundredths % 100 < 10 ? ".0" : ".") + "\(hundredths % 100)") s"
        }
        let minutes = Int((seconds / 60).rounded(.up))
        if minutes < 60 { return "\(minutes) min" }
        let days = minutes / 1_440
        if days > 0 { return minutes % 1_440 < 60 ? "\(days) d" : "\(days) d \(minutes % 1_440 / 60) h" }
        return minutes % 60 == 0 ? "\(minutes / 60) h" : "\(minutes / 60) h \(minutes % 60) min"
    }

    /// Reads `40`, `10GB`, `2.5 MB` or `64KiB`; nil for anything else, a fraction of a byte, or more than 63 bits.
    static func parse(_ text: String) -> Int64? {
        let number = text.prefix { $0.isASCII && ($0.isWholeNumber || $0 == ".") }
        let unit = text.dropFirst(number.count).trimmingCharacters(in: .whitespaces).lowercased()
        let parts = number.split(separator: ".", omittingEmptySubsequences: false)
        guard let factor = factors[unit], (1...2).contains(parts.count),
            parts.allSatisfy({ (1...19).contains($0.count) }), let digits = Int128(parts.joined())
        else { return nil }
        let scale = (0..<(parts.count == 2 ? parts[1].count : 0)).reduce(Int128(1)) { scale, _ in scale * 10 }
        // At most 38 digits; the largest unit has 16 more, which may not fit.
        let (product, overflow) = digits.multipliedReportingOverflow(by: Int128(factor))
        guard !overflow, product % scale == 0 else { return nil }
        return Int64(exactly: product / scale)
    }
}

enum Times {
    /// The years 1 to 9999, which have a text; beyond, Foundation's is not that of the time.
    private static let written: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

    /// Such as `2026-01-31T12:00:00Z`; the milliseconds where the year has no four digits.
    static func text(_ milliseconds: Int64) -> String {
        guard written.contains(milliseconds) else { return String(milliseconds) }
        return Date(timeIntervalSince1970: Double(milliseconds) / 1_000).formatted(.iso8601)
    }

    static func text(_ date: Date) -> String { date.formatted(.iso8601) }

    /// Reads milliseconds since 1970, or a time as ISO 8601 writes it; nil for anything else.
    static func milliseconds(_ text: String) -> Int64? {
        if let number = Int64(text) { return number }
        let plain = Date.ISO8601FormatStyle()
        let fractional = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        guard let date = (try? plain.parse(text)) ?? (try? fractional.parse(text)) else { return nil }
        return Int64((date.timeIntervalSince1970 * 1_000).rounded())
    }
}

/// A span of time such as `90s`, `15m`, `12h` or `14d`.
struct Lifetime: ExpressibleByArgument, Hashable {
    var seconds: Int64

    init(seconds: Int64) { self.seconds = seconds }

    init?(argument: String) {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let last = argument.last, let unit = units[last], let count = Int64(argument.dropLast()), count > 0,
            case let (seconds, isTooLong) = count.multipliedReportingOverflow(by: unit), !isTooLong
        else { return nil }
        self.seconds = seconds
    }

    var defaultValueDescription: String {
        seconds % 86_400 == 0 ? "\(seconds / 86_400)d" : "\(seconds)s"
    }
}
