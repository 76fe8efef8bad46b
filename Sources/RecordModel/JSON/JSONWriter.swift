/// Writes JSON straight into bytes. Commas come by themselves: one is due where the byte before is neither an opening
/// bracket nor a colon.
///
/// The caller keeps the order: inside an object a `key` before every value, and an `end` for every `begin`.
package struct JSONWriter: Sendable {
    /// What was written so far.
    package private(set) var bytes: [UInt8]

    /// A writer with room for `capacity` bytes before it has to grow.
    package init(capacity: Int = 512) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    @inline(__always)
    private mutating func separate() {
        switch bytes.last {
        case nil, UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: ":"): break
        default: bytes.append(UInt8(ascii: ","))
        }
    }

    /// Takes back what was written since there were `count` bytes.
    package mutating func cut(to count: Int) {
        precondition(count <= bytes.count, "cut to \(count) of \(bytes.count) bytes")
        bytes.removeLast(bytes.count - count)
    }

    /// A value that was rendered before.
    package mutating func raw(_ rendered: [UInt8]) {
        separate()
        bytes.append(contentsOf: rendered)
    }

    /// Opens an object as the next value; `endObject` closes it.
    package mutating func beginObject() {
        separate()
        bytes.append(UInt8(ascii: "{"))
    }

    /// Closes the object that was opened last; the caller makes sure that one is open.
    package mutating func endObject() { bytes.append(UInt8(ascii: "}")) }

    /// Opens an array as the next value; `endArray` closes it.
    package mutating func beginArray() {
        separate()
        bytes.append(UInt8(ascii: "["))
    }

    /// Closes the array that was opened last; the caller makes sure that one is open.
    package mutating func endArray() { bytes.append(UInt8(ascii: "]")) }

    /// The key of the member whose value comes next.
    package mutating func key(_ key: String) {
        string(key)
        bytes.append(UInt8(ascii: ":"))
    }

    /// Writes `null` as the next value.
    package mutating func null() {
        separate()
        bytes.append(contentsOf: "null".utf8)
    }

    /// Writes `true` or `false` as the next value.
    package mutating func bool(_ value: Bool) {
        separate()
        bytes.append(contentsOf: value ? "true".utf8 : "false".utf8)
    }

    /// A whole number with all its digits, also above 2^53, where JavaScript loses some.
    package mutating func integer(_ value: Int64) {
        separate()
        digits(value)
    }

    /// A number that reads back as the same double; JSON has no infinity and no NaN, which become null.
    package mutating func number(_ value: Double) {
        guard value.isFinite else { return null() }
        separate()
        bytes.append(contentsOf: value.description.utf8)
    }

    /// Text in quotation marks; only quotation marks, backslashes and bytes below 0x20 are escaped.
    package mutating func string(_ value: String) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        var value = value
        value.withUTF8 { escape($0) }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Bytes as a string of padded base64.
    package mutating func base64(_ value: [UInt8]) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        Base64.encode(value, into: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// A whole document, such as one parsed before.
    package mutating func value(_ value: JSONValue) {
        switch value {
        case .null: null()
        case .bool(let flag): bool(flag)
        case .integer(let number): integer(number)
        case .number(let double): number(double)
        case .string(let text): string(text)
        case .array(let members): array { for member in members { $0.value(member) } }
        case .object(let members): object { for member in members { $0.member(member.key, member.value) } }
        }
    }

    /// Text up to the next byte that must be escaped goes over in one piece.
    private mutating func escape(_ text: UnsafeBufferPointer<UInt8>) {
        var start = 0
        var position = 0
        while position < text.count {
            let byte = text[position]
            if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                position += 1
                continue
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[start..<position]))
            escape(byte)
            position += 1
            start = position
        }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[start...]))
    }

    private mutating func escape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        default:
            let low = byte & 0xF
            bytes.append(contentsOf: "u00".utf8)
            bytes.append(UInt8(ascii: "0") + byte >> 4)
            bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        }
    }

    private mutating func digits(_ value: Int64) {
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        var rest = value.magnitude
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { buffer in
            var start = buffer.count
            repeat {
                start -= 1
                buffer.initializeElement(at: start, to: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
                rest /= 10
            } while rest > 0
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: buffer[start...]))
        }
    }

    /// An object with the members that `body` writes.
    package mutating func object(_ body: (inout JSONWriter) -> Void) {
        beginObject()
        body(&self)
        endObject()
    }

    /// An array with the values that `body` writes.
    package mutating func array(_ body: (inout JSONWriter) -> Void) {
        beginArray()
        body(&self)
        endArray()
    }

    /// A member of the open object whose value is text.
    package mutating func member(_ key: String, _ value: String) {
        self.key(key)
        string(value)
    }

    /// A member of the open object whose value is `true` or `false`.
    package mutating func member(_ key: String, _ value: Bool) {
        self.key(key)
        bool(value)
    }

    /// A member of the open object whose value is a whole number, with all its digits.
    package mutating func member(_ key: String, integer value: Int64) {
        self.key(key)
        integer(value)
    }

    /// A member of the open object whose value is a number; null if it is infinite or NaN.
    package mutating func member(_ key: String, number value: Double) {
        self.key(key)
        number(value)
    }

    /// A member of the open object whose value is a whole document.
    package mutating func member(_ key: String, _ value: JSONValue) {
        self.key(key)
        self.value(value)
    }
}

extension JSONValue {
    /// The document as bytes, without spaces.
    package func serialized() -> [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }
}
