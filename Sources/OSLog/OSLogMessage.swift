/// A message as a string literal, whose values may say who reads them: `"saved \(count) for \(name, privacy: .private)"`.
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
