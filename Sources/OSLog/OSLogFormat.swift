private import Foundation

/// Reads the formats of `os_log`: those of `printf`, with `@` for objects, and options in braces.
enum OSLogFormat {
    /// A place in a format for one argument.
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
