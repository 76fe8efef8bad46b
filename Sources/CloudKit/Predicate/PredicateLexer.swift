import Foundation

/// Cuts a predicate format into tokens.
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
        var text = String.UnicodeScalarView()
        while let scalar = peek(), Self.isNamePart(scalar) {
            text.append(scalar)
            position += 1
        }
        return String(text)
    }

    /// A name after one sign.
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

    /// An operator of one or two signs, or a bracket.
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
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars[position..<position + length])
        position += length
        return String(text)
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
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars[start..<position])
        return PredicatePlaceholder(conversion: conversion, text: String(text))
    }
}
