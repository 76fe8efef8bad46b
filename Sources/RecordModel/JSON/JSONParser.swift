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
