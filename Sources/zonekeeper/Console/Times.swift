import ArgumentParser
import Foundation

/// Times as commands read and print them.
enum Times {
    /// Milliseconds since 1970, now.
    static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    /// Such as `2026-01-31T12:00:00Z`.
    static func text(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1_000).formatted(.iso8601)
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
