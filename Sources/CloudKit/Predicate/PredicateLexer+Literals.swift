import Foundation

extension PredicateLexer {
    /// A text in single or double quotes. A backslash takes the next character as it is, but for `\n`, `\t`, `\r`,
    /// `\b`, `\f`, `\xHH`, `\uHHHH` and `\UHHHHHHHH`. Placeholders in quotes are text, as on Apple's systems.
    mutating func string() throws(NSPredicate.FormatError) -> String {
        let start = position
        let quote = scalars[position]
        var text = String.UnicodeScalarView()
        position += 1
        while let scalar = peek() {
            position += 1
            if scalar == quote { return String(text) }
            text.append(scalar == "\\" ? try escape(of: start) : scalar)
        }
        throw unended(start)
    }

    private func unended(_ start: Int) -> NSPredicate.FormatError {
        let place = PredicateMark(format: format, offset: start).position
        return failure("\(scalars[start]) at the end of the string that begins at character \(place)")
    }

    private mutating func escape(of start: Int) throws(NSPredicate.FormatError) -> Unicode.Scalar {
        guard let scalar = peek() else { throw unended(start) }
        position += 1
        switch scalar {
        case "n": return "\n"
        case "t": return "\t"
        case "r": return "\r"
        case "b": return "\u{8}"
        case "f": return "\u{c}"
        case "x": return try scalarValue(digits: 2)
        case "u": return try scalarValue(digits: 4)
        case "U": return try scalarValue(digits: 8)
        default: return scalar
        }
    }

    private mutating func scalarValue(digits: Int) throws(NSPredicate.FormatError) -> Unicode.Scalar {
        let start = position
        var value: UInt32 = 0
        for _ in 0..<digits {
            guard let digit = peek().flatMap({ Character($0).hexDigitValue }), peek()?.isASCII == true else {
                throw failure("\(digits) hexadecimal digits")
            }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        guard let scalar = Unicode.Scalar(value) else {
            throw failure(at: start, "the code of a character", found: String(value, radix: 16))
        }
        return scalar
    }

    /// Decimal with fraction and exponent, or whole in base 16, 8 or 2 behind `0x`, `0o`, `0b`.
    mutating func number() throws(NSPredicate.FormatError) -> PredicateToken.Kind {
        let start = position
        if peek() == "0", let radix = radix() {
            position += 2
            return .integer(try whole(radix: radix))
        }
        skipDigits()
        var isWhole = true
        if peek() == ".", peek(1).map(Self.isDigit) == true {
            isWhole = false
            position += 1
            skipDigits()
        }
        if let scalar = peek(), scalar == "e" || scalar == "E", exponentFollows() {
            isWhole = false
            position += 2
            skipDigits()
        }
        if let scalar = peek(), Self.isNameStart(scalar) {
            throw failure("the end of the number, or a space before the next word")
        }
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars[start..<position])
        if isWhole, let number = UInt64(String(text)) { return .integer(number) }
        guard let number = Double(String(text)), number.isFinite else {
            throw failure(at: start, "a number that fits 64 bits", found: String(text))
        }
        return .double(number)
    }

    private func radix() -> Int? {
        switch peek(1) {
        case "x", "X": 16
        case "o", "O": 8
        case "b", "B": 2
        default: nil
        }
    }

    private mutating func whole(radix: Int) throws(NSPredicate.FormatError) -> UInt64 {
        let start = position
        while let scalar = peek(), scalar.isASCII, scalar.properties.isAlphabetic || Self.isDigit(scalar) {
            position += 1
        }
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars[start..<position])
        guard let number = UInt64(String(text), radix: radix) else {
            throw failure(at: start, "digits of base \(radix) that fit 64 bits", found: "'\(String(text))'")
        }
        return number
    }

    private mutating func skipDigits() {
        while let scalar = peek(), Self.isDigit(scalar) { position += 1 }
    }

    /// Whether the `e` here begins an exponent: digits follow, a sign may be between.
    private func exponentFollows() -> Bool {
        if peek(1).map(Self.isDigit) == true { return true }
        return (peek(1) == "+" || peek(1) == "-") && peek(2).map(Self.isDigit) == true
    }
}
