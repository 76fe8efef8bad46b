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
}

extension JSONParser {
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
