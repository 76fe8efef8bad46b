public import Foundation

/// A message as a string literal. Each value may say who can read it: `"saved \(count) for \(name, privacy:
/// .private)"`.
public struct OSLogMessage: ExpressibleByStringInterpolation {
    private let interpolation: OSLogInterpolation

    /// A message without values.
    public init(stringLiteral value: String) {
        var interpolation = OSLogInterpolation(literalCapacity: value.utf8.count, interpolationCount: 0)
        interpolation.appendLiteral(value)
        self.interpolation = interpolation
    }

    /// A message with values.
    public init(stringInterpolation: OSLogInterpolation) {
        interpolation = stringInterpolation
    }

    /// The message as it is to be read, with private values or without.
    package func text(showsPrivateValues: Bool) -> String {
        interpolation.text(showsPrivateValues: showsPrivateValues)
    }
}

/// Collects the parts of a message.
public struct OSLogInterpolation: StringInterpolationProtocol {
    private enum Part {
        case literal(String)
        case value(String, OSLogPrivacy, isOpenByType: Bool, OSLogStringAlignment)
    }

    private var parts: [Part] = []

    /// Called by the compiler.
    public init(literalCapacity: Int, interpolationCount: Int) {
        parts.reserveCapacity(2 * interpolationCount + 1)
    }

    /// Called by the compiler.
    public mutating func appendLiteral(_ literal: String) {
        if !literal.isEmpty { parts.append(.literal(literal)) }
    }

    /// Text; private unless it says otherwise.
    public mutating func appendInterpolation(
        _ value: String, align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
    ) {
        parts.append(.value(value, privacy, isOpenByType: false, align))
    }

    /// A value by its description; private unless it says otherwise.
    public mutating func appendInterpolation<T: CustomStringConvertible>(
        _ value: T, align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
    ) {
        parts.append(.value(value.description, privacy, isOpenByType: false, align))
    }

    /// An object, or none; private unless it says otherwise.
    public mutating func appendInterpolation(
        _ value: NSObject?, align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
    ) {
        parts.append(.value(value?.description ?? "nil", privacy, isOpenByType: false, align))
    }

    /// An error; private unless it says otherwise.
    public mutating func appendInterpolation(_ value: (any Error)?, privacy: OSLogPrivacy = .auto) {
        parts.append(.value(value.map { "\($0)" } ?? "nil", privacy, isOpenByType: false, .none))
    }

    /// A type; shown unless it says otherwise.
    public mutating func appendInterpolation(
        _ value: any Any.Type, align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
    ) {
        parts.append(.value(String(describing: value), privacy, isOpenByType: true, align))
    }

    /// A whole number; shown unless it says otherwise.
    public mutating func appendInterpolation<T: FixedWidthInteger>(
        _ value: T, align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
    ) {
        appendInterpolation(value, format: .decimal, align: align, privacy: privacy)
    }

    // A default for the format below would make the compiler prefer the function for any describable value.
    /// A whole number, written in a way; shown unless it says otherwise.
    public mutating func appendInterpolation<T: FixedWidthInteger>(
        _ value: T, format: OSLogIntegerFormatting, align: OSLogStringAlignment = .none,
        privacy: OSLogPrivacy = .auto
    ) {
        parts.append(.value(format.text(of: value), privacy, isOpenByType: true, align))
    }

    /// A number; shown unless it says otherwise.
    public mutating func appendInterpolation(
        _ value: Double, format: OSLogFloatFormatting = .fixed, align: OSLogStringAlignment = .none,
        privacy: OSLogPrivacy = .auto
    ) {
        parts.append(.value(format.text(of: value), privacy, isOpenByType: true, align))
    }

    /// A number; shown unless it says otherwise.
    public mutating func appendInterpolation(
        _ value: Float, format: OSLogFloatFormatting = .fixed, align: OSLogStringAlignment = .none,
        privacy: OSLogPrivacy = .auto
    ) {
        appendInterpolation(Double(value), format: format, align: align, privacy: privacy)
    }

    /// A truth value; shown unless it says otherwise.
    public mutating func appendInterpolation(
        _ value: Bool, format: OSLogBoolFormat = .truth, privacy: OSLogPrivacy = .auto
    ) {
        let text =
            switch format {
            case .truth: value ? "true" : "false"
            case .answer: value ? "YES" : "NO"
            }
        parts.append(.value(text, privacy, isOpenByType: true, .none))
    }

    fileprivate func text(showsPrivateValues: Bool) -> String {
        var text = ""
        for part in parts {
            switch part {
            case .literal(let literal): text += literal
            case .value(let value, let privacy, let isOpenByType, let align):
                text += align.aligned(
                    privacy.shown(value, isOpenByType: isOpenByType, showsPrivateValues: showsPrivateValues))
            }
        }
        return text
    }
}

/// Who may read a value in a message.
///
/// Where the environment variable `OS_ACTIVITY_DT_MODE` is set to anything but `NO` or `0`, as Xcode sets it, private
/// values are shown.
public struct OSLogPrivacy: Sendable {
    /// What stands in the place of a hidden value.
    public enum Mask: Sendable {
        /// A hash that is the same for equal values during one run of the program, and different in the next.
        case hash
        /// Nothing but that there is a value.
        case none
    }

    enum Kind { case open, hidden, secret, byType }

    let kind: Kind
    let mask: Mask

    /// Shown.
    public static var `public`: Self { .init(kind: .open, mask: .none) }
    /// Hidden, and shown while debugging.
    public static var `private`: Self { .init(kind: .hidden, mask: .none) }
    /// Hidden always.
    public static var sensitive: Self { .init(kind: .secret, mask: .none) }
    /// Numbers, truth values and types are shown; text and objects are private.
    public static var auto: Self { .init(kind: .byType, mask: .none) }

    /// Hidden behind a mask, and shown while debugging.
    public static func `private`(mask: Mask) -> Self { .init(kind: .hidden, mask: mask) }
    /// Hidden behind a mask always.
    public static func sensitive(mask: Mask) -> Self { .init(kind: .secret, mask: mask) }
    /// As ``auto``; what is hidden is so behind a mask.
    public static func auto(mask: Mask) -> Self { .init(kind: .byType, mask: mask) }

    static let showsPrivateValues: Bool = {
        guard let mode = ProcessInfo.processInfo.environment["OS_ACTIVITY_DT_MODE"] else { return false }
        return !["", "0", "NO", "no"].contains(mode)
    }()

    func shown(_ value: String, isOpenByType: Bool, showsPrivateValues: Bool) -> String {
        let isOpen =
            switch kind {
            case .open: true
            case .hidden: showsPrivateValues
            case .secret: false
            case .byType: isOpenByType || showsPrivateValues
            }
        if isOpen { return value }
        switch mask {
        case .none: return "<private>"
        case .hash: return "<mask.hash: '\(String(UInt(bitPattern: value.hashValue), radix: 16))'>"
        }
    }
}

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

/// Reads the formats of `os_log`: those of `printf`, with `@` for objects, and options in braces.
enum OSLogFormat {
    private struct Directive {
        var options: [Substring] = []
        /// Flags, width and precision, as they stand.
        var layout = ""
        var conversion: Character = "@"
    }

    /// The message of a format and its arguments. A place without argument is `<missing>`.
    static func message(_ format: StaticString, _ arguments: [any CVarArg]) -> OSLogMessage {
        var interpolation = OSLogInterpolation(literalCapacity: format.utf8CodeUnitCount, interpolationCount: 0)
        var rest = Substring(format.description)
        var arguments = arguments[...]
        while let place = rest.firstIndex(of: "%") {
            interpolation.appendLiteral(String(rest[..<place]))
            rest = rest[rest.index(after: place)...]
            if rest.first == "%" {
                interpolation.appendLiteral("%")
                rest.removeFirst()
                continue
            }
            let directive = directive(&rest)
            if directive.conversion == "m" {
                interpolation.appendInterpolation(String(cString: strerror(errno)), privacy: .public)
            } else if let argument = arguments.popFirst() {
                append(argument, directive, to: &interpolation)
            } else {
                interpolation.appendLiteral("<missing>")
            }
        }
        interpolation.appendLiteral(String(rest))
        return OSLogMessage(stringInterpolation: interpolation)
    }

    /// Takes a directive off the front of a text that followed its `%`.
    private static func directive(_ text: inout Substring) -> Directive {
        var directive = Directive()
        if text.first == "{", let end = text.firstIndex(of: "}") {
            directive.options = text[text.index(after: text.startIndex)..<end].split { $0 == "," || $0 == " " }
            text = text[text.index(after: end)...]
        }
        let layout = text.prefix { "-+ #0123456789.".contains($0) }
        directive.layout = String(layout)
        text = text[layout.endIndex...]
        // Sizes: an argument knows its own.
        text = text.drop { "hlLqjtz".contains($0) }
        if let conversion = text.popFirst() { directive.conversion = conversion }
        return directive
    }

    private static func append(
        _ argument: any CVarArg, _ directive: Directive, to interpolation: inout OSLogInterpolation
    ) {
        let isText = "@sSC".contains(directive.conversion)
        let privacy: OSLogPrivacy =
            directive.options.contains("public")
            ? .public
            : directive.options.contains("sensitive")
                ? .sensitive : directive.options.contains("private") || isText ? .private : .public
        interpolation.appendInterpolation(text(of: argument, directive), privacy: privacy)
    }

    private static func text(of argument: any CVarArg, _ directive: Directive) -> String {
        if directive.options.contains("bool") || directive.options.contains("BOOL") {
            return "\(argument)" == "0" ? "false" : "true"
        }
        switch directive.conversion {
        case "d", "i", "D":
            guard let number = argument as? any BinaryInteger else { return "\(argument)" }
            return String(format: "%\(directive.layout)lld", Int64(truncatingIfNeeded: number))
        case "u", "x", "X", "o":
            guard let number = argument as? any BinaryInteger else { return "\(argument)" }
            return String(format: "%\(directive.layout)ll\(directive.conversion)", bits(number))
        case "f", "F", "e", "E", "g", "G", "a", "A":
            guard let number = argument as? any BinaryFloatingPoint else { return "\(argument)" }
            return String(format: "%\(directive.layout)\(directive.conversion)", Double(number))
        case "c":
            guard let number = argument as? any BinaryInteger,
                let scalar = Unicode.Scalar(UInt32(truncatingIfNeeded: number))
            else { return "\(argument)" }
            return String(Character(scalar))
        default: return "\(argument)"
        }
    }

    /// The number's own bits: a negative Int32 has 32 of them.
    private static func bits(_ number: some BinaryInteger) -> UInt64 {
        let bits = UInt64(truncatingIfNeeded: number)
        return number.bitWidth >= 64 ? bits : bits & (1 << UInt64(number.bitWidth) - 1)
    }
}
