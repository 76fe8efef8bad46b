/// Reads JSON as RFC 8259 has it and no more: no comments, no trailing commas, no byte order mark, nothing after the
/// document; strings are valid UTF-8 and surrogates come in pairs. Of two members with one key the last wins. Arrays
/// and objects nest at most `Limits.jsonDepthMax` deep.
package struct JSONParser {
    // The buffer is valid inside `parse` only and this value never leaves it; every access is held against `count`
    // first, because an unsafe buffer is not checked in release builds.
    let bytes: UnsafeBufferPointer<UInt8>
    var position = 0
    private var depth = 0
    /// Reused for strings with escapes.
    var scratch: [UInt8] = []

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// Reads a document.
    /// - Throws: `JSONError` with the place of the first fault; a retry does not help.
    package static func parse(_ bytes: [UInt8]) throws(JSONError) -> JSONValue {
        try parse(bytes[...])
    }

    /// Reads a document; positions in errors count from the slice's start.
    /// - Throws: `JSONError` with the place of the first fault; a retry does not help.
    package static func parse(_ bytes: ArraySlice<UInt8>) throws(JSONError) -> JSONValue {
        try bytes.withUnsafeBufferPointer { (buffer) throws(JSONError) -> JSONValue in
            var parser = JSONParser(buffer)
            parser.skipSpace()
            let value = try parser.value()
            parser.skipSpace()
            if parser.position < buffer.count { throw parser.failure("the end of the document") }
            return value
        }
    }

    /// The byte at the position; nil at the end.
    @inline(__always)
    func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func skipSpace() {
        while let byte = peek(), byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    /// An error at the current position.
    func failure(_ expected: String) -> JSONError {
        guard let byte = peek() else { return JSONError(position: position, expected: expected, found: "the end") }
        let isPrintable = byte > 0x20 && byte < 0x7F
        let found = isPrintable ? "'\(Character(Unicode.Scalar(byte)))'" : "byte 0x\(String(byte, radix: 16))"
        return JSONError(position: position, expected: expected, found: found)
    }

    mutating func value() throws(JSONError) -> JSONValue {
        switch peek() {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "{"): return try object()
        case UInt8(ascii: "["): return try array()
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case let byte? where byte == UInt8(ascii: "-") || isDigit(byte): return try number()
        default: throw failure("a value")
        }
    }

    private mutating func word(_ text: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for offset in 0..<text.utf8CodeUnitCount {
            // The pointer of a static string is good for as many bytes as it says.
            guard peek() == text.utf8Start[offset] else { throw failure("the rest of \(text)") }
            position += 1
        }
        return value
    }

    private mutating func enter() throws(JSONError) {
        guard depth < Limits.jsonDepthMax else {
            throw failure("at most \(Limits.jsonDepthMax) nested arrays and objects")
        }
        depth += 1
        position += 1
        skipSpace()
    }

    private mutating func leave() {
        depth -= 1
        position += 1
    }

    private mutating func array() throws(JSONError) -> JSONValue {
        try enter()
        var members: [JSONValue] = []
        if peek() == UInt8(ascii: "]") {
            leave()
            return .array(members)
        }
        while true {
            members.append(try value())
            skipSpace()
            switch peek() {
            case UInt8(ascii: ","):
                position += 1
                skipSpace()
            case UInt8(ascii: "]"):
                leave()
                return .array(members)
            default: throw failure("',' or ']' after a member of an array")
            }
        }
    }

    private mutating func object() throws(JSONError) -> JSONValue {
        try enter()
        if peek() == UInt8(ascii: "}") {
            leave()
            return .object([])
        }
        var members = JSONMembers()
        while true {
            guard peek() == UInt8(ascii: "\"") else { throw failure("a key in quotes") }
            let key = try string()
            skipSpace()
            guard peek() == UInt8(ascii: ":") else { throw failure("':' after a key") }
            position += 1
            skipSpace()
            members.set(key, try value())
            skipSpace()
            switch peek() {
            case UInt8(ascii: ","):
                position += 1
                skipSpace()
            case UInt8(ascii: "}"):
                leave()
                return .object(members.all)
            default: throw failure("',' or '}' after a member of an object")
            }
        }
    }
}

/// Members of an object while it is read: the last of two with one key wins. Small objects are searched from the
/// start; in large ones a table finds the key, so that a hostile document costs no more than its size.
private struct JSONMembers {
    private(set) var all: [JSONValue.Member] = []
    private var places: [Bytewise: Int] = [:]
    private static let searchedMax = 16

    init() { all.reserveCapacity(4) }

    mutating func set(_ key: String, _ value: JSONValue) {
        if let place = place(of: key) {
            all[place].value = value
            return
        }
        all.append(JSONValue.Member(key, value))
        if all.count > Self.searchedMax { places[Bytewise(key)] = all.count - 1 }
        if all.count == Self.searchedMax + 1 {
            for (place, member) in all.enumerated() { places[Bytewise(member.key)] = place }
        }
    }

    private func place(of key: String) -> Int? {
        if all.count > Self.searchedMax { return places[Bytewise(key)] }
        return all.firstIndex { Bytewise($0.key) == Bytewise(key) }
    }
}

extension JSONParser {
    /// A string; the position is on its opening quote.
    mutating func string() throws(JSONError) -> String {
        position += 1
        let start = position
        var end = start
        var isASCII = true
        while end < bytes.count {
            let byte = bytes[end]
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 { break }
            if byte >= 0x80 { isASCII = false }
            end += 1
        }
        position = end
        switch peek() {
        case UInt8(ascii: "\""):
            position += 1
            let text = UnsafeBufferPointer(rebasing: bytes[start..<end])
            if isASCII { return String(decoding: text, as: UTF8.self) }
            guard let text = String(validating: text, as: UTF8.self) else { throw invalidUTF8(from: start) }
            return text
        case UInt8(ascii: "\\"): return try stringWithEscapes(from: start)
        case nil: throw failure("'\"' at the end of a string")
        default: throw failure("an escape in place of a control character")
        }
    }

    /// The rest of a string from its first escape on.
    private mutating func stringWithEscapes(from start: Int) throws(JSONError) -> String {
        scratch.removeAll(keepingCapacity: true)
        scratch.append(contentsOf: bytes[start..<position])
        while let byte = peek() {
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: scratch, as: UTF8.self) else { throw invalidUTF8(from: start) }
                position += 1
                return text
            case UInt8(ascii: "\\"): try escape()
            case 0..<0x20: throw failure("an escape in place of a control character")
            default:
                scratch.append(byte)
                position += 1
            }
        }
        throw failure("'\"' at the end of a string")
    }

    private func invalidUTF8(from start: Int) -> JSONError {
        JSONError(position: start, expected: "a string in UTF-8", found: "bytes that are not")
    }

    private mutating func escape() throws(JSONError) {
        position += 1
        let byte: UInt8
        switch peek() {
        case UInt8(ascii: "\""): byte = 0x22
        case UInt8(ascii: "\\"): byte = 0x5C
        case UInt8(ascii: "/"): byte = 0x2F
        case UInt8(ascii: "b"): byte = 0x08
        case UInt8(ascii: "f"): byte = 0x0C
        case UInt8(ascii: "n"): byte = 0x0A
        case UInt8(ascii: "r"): byte = 0x0D
        case UInt8(ascii: "t"): byte = 0x09
        case UInt8(ascii: "u"):
            position += 1
            return try unicodeEscape()
        default: throw failure("one of \" \\ / b f n r t u after '\\'")
        }
        scratch.append(byte)
        position += 1
    }

    private mutating func unicodeEscape() throws(JSONError) {
        let start = position
        var code = UInt32(try fourHexDigits())
        if (0xD800..<0xDC00).contains(code) {
            for expected in [UInt8(ascii: "\\"), UInt8(ascii: "u")] {
                guard peek() == expected else { throw failure("a low surrogate after a high one") }
                position += 1
            }
            let lowStart = position
            let low = UInt32(try fourHexDigits())
            guard (0xDC00..<0xE000).contains(low) else {
                position = lowStart
                throw failure("a low surrogate after a high one")
            }
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else {
            position = start
            throw failure("a high surrogate before a low one")
        }
        scratch.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    }

    private mutating func fourHexDigits() throws(JSONError) -> UInt16 {
        var code: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = peek(), let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw failure("four hexadecimal digits")
            }
            code = code << 4 | UInt16(digit)
            position += 1
        }
        return code
    }

    /// Characters of one number; the longest exact double has less than 1,100.
    private static let numberLengthMax = 2048

    /// A number; the position is on its first character.
    mutating func number() throws(JSONError) -> JSONValue {
        let start = position
        let isNegative = peek() == UInt8(ascii: "-")
        if isNegative { position += 1 }
        guard let first = peek(), isDigit(first) else { throw failure("a digit") }
        let digitsStart = position
        skipDigits()
        if first == UInt8(ascii: "0"), position - digitsStart > 1 {
            position = digitsStart + 1
            throw failure("a number without leading zeros")
        }
        var isInteger = true
        if peek() == UInt8(ascii: ".") {
            isInteger = false
            position += 1
            try digits()
        }
        if let byte = peek(), byte | 0x20 == UInt8(ascii: "e") {
            isInteger = false
            position += 1
            if let sign = peek(), sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        // "-0" is the double: as an integer it would lose its sign.
        if isInteger, !(isNegative && first == UInt8(ascii: "0")),
            let integer = integer(from: digitsStart, isNegative: isNegative)
        {
            return .integer(integer)
        }
        return .number(try double(from: start))
    }

    func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    private mutating func skipDigits() {
        while let byte = peek(), isDigit(byte) { position += 1 }
    }

    private mutating func digits() throws(JSONError) {
        guard let byte = peek(), isDigit(byte) else { throw failure("a digit") }
        skipDigits()
    }

    /// The digits up to the position as a 64-bit number; nil if it does not fit.
    private func integer(from start: Int, isNegative: Bool) -> Int64? {
        var magnitude: UInt64 = 0
        for byte in bytes[start..<position] {
            let (product, isTooLarge) = magnitude.multipliedReportingOverflow(by: 10)
            let (sum, isOver) = product.addingReportingOverflow(UInt64(byte &- UInt8(ascii: "0")))
            if isTooLarge || isOver { return nil }
            magnitude = sum
        }
        if isNegative { return magnitude <= Int64.min.magnitude ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil }
        return Int64(exactly: magnitude)
    }

    private func double(from start: Int) throws(JSONError) -> Double {
        guard position - start <= Self.numberLengthMax else {
            throw JSONError(
                position: start, expected: "a number of at most \(Self.numberLengthMax) characters",
                found: "\(position - start)")
        }
        guard let number = Double(String(decoding: bytes[start..<position], as: UTF8.self)), number.isFinite else {
            throw JSONError(position: start, expected: "a number that a double can hold", found: "a larger one")
        }
        return number
    }

    /// Reads text that is one JSON number and nothing else; nil if it is not.
    package static func parseNumber(_ text: String) -> JSONValue? {
        var text = text
        return text.withUTF8 { buffer in
            var parser = JSONParser(buffer)
            guard let value = try? parser.number(), parser.position == buffer.count else { return nil }
            return value
        }
    }
}
