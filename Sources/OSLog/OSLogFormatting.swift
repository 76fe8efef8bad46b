private import Foundation

/// How a value stands among its neighbours.
public struct OSLogStringAlignment: Sendable {
    private var minimumColumns = 0
    private var isRight = false

    /// As wide as the value.
    public static var none: Self { .init() }

    /// Against the right end of a column of a width.
    public static func right(columns: @autoclosure @escaping () -> Int) -> Self {
        .init(minimumColumns: columns(), isRight: true)
    }

    /// Against the left end of a column of a width.
    public static func left(columns: @autoclosure @escaping () -> Int) -> Self {
        .init(minimumColumns: columns(), isRight: false)
    }

    func aligned(_ text: String) -> String {
        let padding = String(repeating: " ", count: max(0, minimumColumns - text.count))
        return isRight ? padding + text : text + padding
    }
}

/// How a truth value is written.
public enum OSLogBoolFormat: Sendable {
    /// `true` or `false`.
    case truth
    /// `YES` or `NO`.
    case answer
}

/// How a whole number is written.
public struct OSLogIntegerFormatting: Sendable {
    private var radix = 10
    private var explicitPositiveSign = false
    private var prefix = ""
    private var isUppercase = false
    private var minDigits = 0

    /// In tens.
    public static var decimal: Self { .init() }
    /// In sixteens.
    public static var hex: Self { .init(radix: 16) }
    /// In eights.
    public static var octal: Self { .init(radix: 8) }

    /// In tens, with a sign and zeros.
    public static func decimal(
        explicitPositiveSign: Bool = false, minDigits: @autoclosure @escaping () -> Int = 0
    ) -> Self {
        .init(explicitPositiveSign: explicitPositiveSign, minDigits: minDigits())
    }

    /// In sixteens, with a sign, `0x`, capitals and zeros.
    public static func hex(
        explicitPositiveSign: Bool = false, includePrefix: Bool = false, uppercase: Bool = false,
        minDigits: @autoclosure @escaping () -> Int = 0
    ) -> Self {
        .init(
            radix: 16, explicitPositiveSign: explicitPositiveSign, prefix: includePrefix ? "0x" : "",
            isUppercase: uppercase, minDigits: minDigits())
    }

    /// In eights, with a sign, `0o` and zeros.
    public static func octal(
        explicitPositiveSign: Bool = false, includePrefix: Bool = false,
        minDigits: @autoclosure @escaping () -> Int = 0
    ) -> Self {
        .init(
            radix: 8, explicitPositiveSign: explicitPositiveSign, prefix: includePrefix ? "0o" : "",
            minDigits: minDigits())
    }

    func text<T: FixedWidthInteger>(of value: T) -> String {
        let digits = String(value.magnitude, radix: radix, uppercase: isUppercase)
        let sign = value < 0 ? "-" : explicitPositiveSign ? "+" : ""
        return sign + prefix + String(repeating: "0", count: max(0, minDigits - digits.count)) + digits
    }
}

/// How a number is written.
public struct OSLogFloatFormatting: Sendable {
    private enum Style: String { case fixed = "f", exponential = "e", hybrid = "g", hex = "a" }

    private var style: Style
    private var precision: Int?
    private var explicitPositiveSign = false
    private var isUppercase = false

    /// With six digits behind the point.
    public static var fixed: Self { .init(style: .fixed) }
    /// With an exponent.
    public static var exponential: Self { .init(style: .exponential) }
    /// The shorter of the two.
    public static var hybrid: Self { .init(style: .hybrid) }
    /// In sixteens.
    public static var hex: Self { .init(style: .hex) }

    /// With a number of digits behind the point.
    public static func fixed(
        precision: @autoclosure @escaping () -> Int = 6, explicitPositiveSign: Bool = false, uppercase: Bool = false
    ) -> Self {
        .init(
            style: .fixed, precision: precision(), explicitPositiveSign: explicitPositiveSign, isUppercase: uppercase)
    }

    /// With an exponent, and a number of digits behind the point.
    public static func exponential(
        precision: @autoclosure @escaping () -> Int = 6, explicitPositiveSign: Bool = false, uppercase: Bool = false
    ) -> Self {
        .init(
            style: .exponential, precision: precision(), explicitPositiveSign: explicitPositiveSign,
            isUppercase: uppercase)
    }

    /// The shorter of the two, with a number of digits.
    public static func hybrid(
        precision: @autoclosure @escaping () -> Int = 6, explicitPositiveSign: Bool = false, uppercase: Bool = false
    ) -> Self {
        .init(
            style: .hybrid, precision: precision(), explicitPositiveSign: explicitPositiveSign, isUppercase: uppercase)
    }

    func text(of value: Double) -> String {
        let digits = precision.map { ".\(max(0, $0))" } ?? ""
        let letter = isUppercase ? style.rawValue.uppercased() : style.rawValue
        return String(format: "%\(explicitPositiveSign ? "+" : "")\(digits)\(letter)", value)
    }
}
