/// A moment in UTC, in the Gregorian calendar. Apply has no other calendar: one of a library may differ from build to
/// build.
package struct UTCTime {
    /// Since 1970.
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// The year, the month from 1 on, and the day of the month.
    package var date: (year: Int64, month: Int64, day: Int64) {
        // Years begin in March, so that a leap day is the last: 719,468 days before 1970 is 1 March of year 0. Eras
        // have 400 years.
        let shifted = Self.floor(milliseconds, 86_400_000) + 719_468
        let era = Self.floor(shifted, 146_097)
        let day = shifted - era * 146_097
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
        let dayOfYear = day - (365 * year + year / 4 - year / 100)
        let month = (5 * dayOfYear + 2) / 153
        return (
            era * 400 + year + (month < 10 ? 0 : 1), month < 10 ? month + 3 : month - 9,
            dayOfYear - (153 * month + 2) / 5 + 1
        )
    }

    /// As ISO 8601 writes it, to the second, such as `2026-09-21T14:13:20Z`.
    package var text: String {
        let seconds = Self.floor(milliseconds, 1_000)
        let (second, date) = (seconds - Self.floor(seconds, 86_400) * 86_400, date)
        let parts = [
            "\(Self.padded(date.year, 4))-\(Self.padded(date.month, 2))-\(Self.padded(date.day, 2))",
            "T\(Self.padded(second / 3_600, 2)):\(Self.padded(second / 60 % 60, 2)):\(Self.padded(second % 60, 2))Z",
        ]
        return parts.joined()
    }

    private static func floor(_ number: Int64, _ divisor: Int64) -> Int64 {
        let (quotient, rest) = number.quotientAndRemainder(dividingBy: divisor)
        return rest < 0 ? quotient - 1 : quotient
    }

    private static func padded(_ number: Int64, _ count: Int) -> String {
        let digits = "\(number.magnitude)"
        return (number < 0 ? "-" : "") + String(repeating: "0", count: max(count - digits.count, 0)) + digits
    }
}
