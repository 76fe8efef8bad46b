/// Reads times as the signatures of server-to-server keys have them.
enum CivilTime {
    /// Milliseconds since 1970 of `2016-01-25T22:15:43Z`: four-digit years, optionally a fraction of a second, then `Z`
    /// or what the clock is ahead of UTC, such as `+02:00`, `+0200` or `-05`. Nil for anything else, such as days that
    /// no month has. A leap second is the first of the next minute.
    static func milliseconds(_ text: String) -> Int64? {
        var rest = Array(text.utf8)[...]
        guard let year = number(&rest, digits: 4), take("-", &rest), let month = number(&rest, digits: 2),
            take("-", &rest), let day = number(&rest, digits: 2), take("T", &rest),
            let hour = number(&rest, digits: 2), take(":", &rest), let minute = number(&rest, digits: 2),
            take(":", &rest), let second = number(&rest, digits: 2), let fraction = fraction(&rest),
            let offset = offsetMinutes(&rest), rest.isEmpty,
            (1...12).contains(month), (1...dayCount(year: year, month: month)).contains(day),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        let seconds = days(year: year, month: month, day: day) * 86_400 + hour * 3600 + minute * 60 + second
        return (seconds - offset * 60) * 1000 + fraction
    }

    private static func take(_ character: Unicode.Scalar, _ text: inout ArraySlice<UInt8>) -> Bool {
        guard text.first == UInt8(ascii: character) else { return false }
        text.removeFirst()
        return true
    }

    private static func number(_ text: inout ArraySlice<UInt8>, digits: Int) -> Int64? {
        guard text.count >= digits else { return nil }
        var value: Int64 = 0
        for byte in text.prefix(digits) {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            value = value * 10 + Int64(byte - UInt8(ascii: "0"))
        }
        text.removeFirst(digits)
        return value
    }

    /// The minutes that a clock is ahead of UTC; less than a day. Nil for what says no offset.
    private static func offsetMinutes(_ text: inout ArraySlice<UInt8>) -> Int64? {
        if take("Z", &text) { return 0 }
        let isAhead = take("+", &text)
        guard isAhead || take("-", &text), let hours = number(&text, digits: 2), hours < 24 else { return nil }
        guard !text.isEmpty else { return isAhead ? hours * 60 : -hours * 60 }
        _ = take(":", &text)
        guard let minutes = number(&text, digits: 2), minutes < 60 else { return nil }
        return (hours * 60 + minutes) * (isAhead ? 1 : -1)
    }

    /// Milliseconds of `.5` and the like, cut after the third digit; 0 where there is no fraction.
    private static func fraction(_ text: inout ArraySlice<UInt8>) -> Int64? {
        guard text.first == UInt8(ascii: ".") else { return 0 }
        text.removeFirst()
        let digits = text.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard (1...9).contains(digits.count) else { return nil }
        text.removeFirst(digits.count)
        return (0..<3).reduce(0) { value, offset in
            let digit = offset < digits.count ? Int64(digits[digits.startIndex + offset] - UInt8(ascii: "0")) : 0
            return value * 10 + digit
        }
    }

    private static func dayCount(year: Int64, month: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days from 1970-01-01 in the Gregorian calendar; years begin in March here, so that the leap day is the last.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
