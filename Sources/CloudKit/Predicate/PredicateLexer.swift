import Foundation

struct PredicateLexer {
    let format: String
    let scalars: [Unicode.Scalar]
    var position = 0

    /// The tokens of `format`, the last of which is `end`.
    static func tokens(of format: String) throws(NSPredicate.FormatError) -> [PredicateToken] {
        var lexer = PredicateLexer(format: format, scalars: Array(format.unicodeScalars))
        guard lexer.scalars.count <= PredicateLimits.lengthMax else {
            throw NSPredicate.FormatError(
                format: format, position: 0, expected: "a format of at most \(PredicateLimits.lengthMax) characters",
                found: "\(lexer.scalars.count)")
        }
        var tokens: [PredicateToken] = []
        while true {
            lexer.skipSpace()
            let start = lexer.position
            let kind = try lexer.next()
            tokens.append(PredicateToken(kind: kind, offset: start))
            if kind == .end { return tokens }
        }
    }

    /// The scalar `distance` ahead; nil behind the end.
    func peek(_ distance: Int = 0) -> Unicode.Scalar? {
        position + distance < scalars.count ? scalars[position + distance] : nil
    }

    /// An error at a place, by default the current one.
    func failure(at place: Int? = nil, _ expected: String, found: String? = nil) -> NSPredicate.FormatError {
        let place = place ?? position
        let here = place < scalars.count ? "'\(scalars[place])'" : "the end"
        return NSPredicate.FormatError(
            format: format, position: PredicateMark(format: format, offset: place).position, expected: expected,
            found: found ?? here)
    }

    private func text(_ range: Range<Int>) -> String { String(String.UnicodeScalarView(scalars[range])) }

    private mutating func skipSpace() {
        while let scalar = peek(), scalar.properties.isWhitespace { position += 1 }
    }

    private mutating func next() throws(NSPredicate.FormatError) -> PredicateToken.Kind {
        guard let scalar = peek() else { return .end }
        switch scalar {
        case "'", "\"": return .string(try string())
        case "%": return .placeholder(try placeholder())
        case "#": return .escaped(try sigil("a name after '#'"))
        case "$": return .variable(try sigil("a name after '$'"))
        case "@": return .collectionOperator(try sigil("a name after '@'"))
        case "0"..."9": return try number()
        case "." where peek(1).map(Self.isDigit) == true: return try number()
        case _ where Self.isNameStart(scalar): return nameOrFunction()
        default: return .symbol(try symbol())
        }
    }

    static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

    /// Letters of any script: a name that CloudKit does not have is refused with its reason, not as a stray sign.
    static func isNameStart(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "_" || (scalar.isASCII ? scalar.properties.isAlphabetic : scalar.properties.isXIDStart)
    }

    private static func isNamePart(_ scalar: Unicode.Scalar) -> Bool {
        isNameStart(scalar) || isDigit(scalar) || (!scalar.isASCII && scalar.properties.isXIDContinue)
    }

    private mutating func name() -> String {
        let start = position
        while let scalar = peek(), Self.isNamePart(scalar) { position += 1 }
        return text(start..<position)
    }

    private mutating func sigil(_ expected: String) throws(NSPredicate.FormatError) -> String {
        position += 1
        guard let scalar = peek(), Self.isNameStart(scalar) else { throw failure(expected) }
        return name()
    }

    /// `now`, or `distanceToLocation:fromLocation:` with colons right behind its words.
    private mutating func nameOrFunction() -> PredicateToken.Kind {
        var text = name()
        var isFunction = false
        while peek() == ":", peek(1) != "=" {
            isFunction = true
            text += ":"
            position += 1
            if let scalar = peek(), Self.isNameStart(scalar) { text += name() }
        }
        return isFunction ? .function(text) : .word(text)
    }

    private mutating func symbol() throws(NSPredicate.FormatError) -> String {
        let length: Int
        switch (scalars[position], peek(1)) {
        case ("=", "="), ("=", ">"), ("=", "<"), ("<", "="), ("<", ">"), (">", "="), ("!", "="), ("&", "&"), ("|", "|"),
            ("*", "*"), (":", "="):
            length = 2
        case ("=", _), ("<", _), (">", _), ("!", _), ("+", _), ("-", _), ("*", _), ("/", _), ("(", _), (")", _),
            ("{", _),
            ("}", _), ("[", _), ("]", _), (",", _), (".", _):
            length = 1
        default: throw failure("a name, a value, an operator or a bracket")
        }
        defer { position += length }
        return text(position..<position + length)
    }

    /// `%`, a length that C has and Swift does not need, and the conversion.
    private mutating func placeholder() throws(NSPredicate.FormatError) -> PredicatePlaceholder {
        let start = position
        position += 1
        while let scalar = peek(), "hlqLztj".unicodeScalars.contains(scalar) { position += 1 }
        let conversion: PredicatePlaceholder.Conversion
        switch peek() {
        case "@": conversion = .value
        case "K": conversion = .field
        case "d", "D", "i", "u", "U", "x", "X", "o", "O", "c", "C": conversion = .integer
        case "f", "F", "e", "E", "g", "G", "a", "A": conversion = .double
        case "s": conversion = .text
        case "%": throw failure(at: start, "a name, a value or an operator", found: "'%%', a per cent sign")
        default: throw failure("@, K, d, u, x, f or another conversion right after '%'")
        }
        position += 1
        return PredicatePlaceholder(conversion: conversion, text: text(start..<position))
    }
}

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
        let text = text(start..<position)
        if isWhole, let number = UInt64(text) { return .integer(number) }
        guard let number = Double(text), number.isFinite else {
            throw failure(at: start, "a number that fits 64 bits", found: text)
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
        let text = text(start..<position)
        guard let number = UInt64(text, radix: radix) else {
            throw failure(at: start, "digits of base \(radix) that fit 64 bits", found: "'\(text)'")
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

struct PredicateToken: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// A name or a keyword, as written.
        case word(String)
        /// `#name`: a name, even where it is spelled like a keyword.
        case escaped(String)
        /// A function's name with its colons, such as `distanceToLocation:fromLocation:`.
        case function(String)
        case string(String)
        /// A whole number without its sign; one that needs more than 64 bits is a `double`.
        case integer(UInt64)
        case double(Double)
        case placeholder(PredicatePlaceholder)
        /// `$name`.
        case variable(String)
        /// `@name`.
        case collectionOperator(String)
        /// An operator of signs or a bracket.
        case symbol(String)
        case end
    }

    var kind: Kind
    /// Unicode scalars from the start of the format.
    var offset: Int

    /// The keyword that this is, in capitals; nil for anything but a word.
    var keyword: PredicateKeyword? {
        if case .word(let text) = kind { PredicateKeyword(rawValue: text.uppercased()) } else { nil }
    }

    var found: String {
        switch kind {
        case .word(let text), .function(let text): "'\(text)'"
        case .escaped(let text): "'#\(text)'"
        case .string: "a string"
        case .integer, .double: "a number"
        case .placeholder(let placeholder): "'\(placeholder.text)'"
        case .variable(let name): "'$\(name)'"
        case .collectionOperator(let name): "'@\(name)'"
        case .symbol(let text): "'\(text)'"
        case .end: "the end"
        }
    }
}

/// `%@`, `%K` and the rest, which stand for arguments.
struct PredicatePlaceholder: Sendable, Equatable {
    enum Conversion: Sendable, Equatable {
        /// `%@`: any value.
        case value
        /// `%K`: the name of a field.
        case field
        /// `%d`, `%i`, `%u`, `%x`, `%c` and their like.
        case integer
        /// `%f`, `%e`, `%g`, `%a`.
        case double
        /// `%s`.
        case text
    }

    var conversion: Conversion
    /// As written, `%lld`.
    var text: String
}

/// The words that mean something of themselves, in any case. `FIRST`, `LAST` and `SIZE` mean something only in
/// brackets, which CloudKit does not have: here they are names.
enum PredicateKeyword: String, Sendable, CaseIterable {
    case and = "AND"
    case or = "OR"
    case not = "NOT"
    case `in` = "IN"
    case any = "ANY"
    case some = "SOME"
    case all = "ALL"
    case none = "NONE"
    case between = "BETWEEN"
    case contains = "CONTAINS"
    case beginsWith = "BEGINSWITH"
    case endsWith = "ENDSWITH"
    case like = "LIKE"
    case matches = "MATCHES"
    case tokenMatches = "TOKENMATCHES"
    case null = "NULL"
    case `nil` = "NIL"
    case `true` = "TRUE"
    case `false` = "FALSE"
    case yes = "YES"
    case no = "NO"
    case itself = "SELF"
    case truePredicate = "TRUEPREDICATE"
    case falsePredicate = "FALSEPREDICATE"
    case anyKey = "ANYKEY"
    case cast = "CAST"
    case subquery = "SUBQUERY"
    case fetch = "FETCH"
    case ternary = "TERNARY"
    case function = "FUNCTION"
}
