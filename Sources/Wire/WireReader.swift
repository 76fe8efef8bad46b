/// Why bytes are not what they should be. The bytes are at fault, so a retry does not help.
public enum WireError: Error, Hashable, Sendable {
    /// The bytes end inside a value.
    case truncated
    /// A varint of more than 10 bytes, or a key of an unknown kind.
    case malformed
    /// A string that is not UTF-8.
    case invalidUTF8
    /// A field that the message cannot do without is not there.
    case missingField(Int)
    /// A value outside what the message allows.
    case invalidValue(field: Int)
    /// An unknown field in a strict message.
    case unknownField(Int)
    /// A value of an enumeration that this build does not know.
    case unknownValue(field: Int)

    /// Whether the bytes are well formed as far as they were read, and a newer build may know what they say.
    public var isOfNewerBuild: Bool {
        switch self {
        case .unknownField, .unknownValue: true
        case .truncated, .malformed, .invalidUTF8, .missingField, .invalidValue: false
        }
    }
}

/// Reads tagged fields (see `WireWriter`) from bytes it shares with their owner: nested messages and payloads are
/// slices, never copies, until the caller makes one.
public struct WireReader: Sendable {
    @usableFromInline let bytes: ArraySlice<UInt8>
    @usableFromInline var position: Int
    /// The kind of the field that `nextField` found last.
    @usableFromInline var kind: UInt8 = 0
    /// The number of the field that `nextField` found last; 0 before the first.
    public var number = 0
    /// Whether `skip` fails: what is read must be understood whole.
    @usableFromInline let isStrict: Bool

    /// A reader of all of some bytes.
    public init(_ bytes: some Collection<UInt8>, strictly isStrict: Bool = false) {
        self.isStrict = isStrict
        if let slice = bytes as? ArraySlice<UInt8> {
            self.bytes = slice
        } else if let array = bytes as? [UInt8] {
            self.bytes = array[...]
        } else {
            self.bytes = Array(bytes)[...]
        }
        position = self.bytes.startIndex
    }

    /// A reader of a slice, which it shares.
    @inlinable
    public init(slice: ArraySlice<UInt8>, strictly isStrict: Bool) {
        bytes = slice
        position = slice.startIndex
        self.isStrict = isStrict
    }

    /// Whether everything was read.
    @inlinable public var isAtEnd: Bool { position >= bytes.endIndex }

    /// The number of the next field, or nil at the end. The value must be read, or skipped by `skip()`, before the next
    /// call.
    @inlinable
    public mutating func nextField() throws(WireError) -> Int? {
        if isAtEnd { return nil }
        let key = try varint()
        kind = UInt8(key & 7)
        guard kind <= 2, key >> 3 <= 0xFFFF else { throw .malformed }
        number = Int(key >> 3)
        return number
    }

    /// A bare varint.
    @inlinable
    public mutating func varint() throws(WireError) -> UInt64 {
        // Most are of one byte.
        if position < bytes.endIndex, bytes[position] < 0x80 {
            defer { position += 1 }
            return UInt64(bytes[position])
        }
        var result: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            guard position < bytes.endIndex else { throw .truncated }
            let byte = bytes[position]
            position += 1
            if shift == 63, byte > 1 { throw .malformed }
            result |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return result }
            shift += 7
            if shift > 63 { throw .malformed }
        }
    }

    /// The current field as an unsigned number.
    @inlinable
    public mutating func unsigned() throws(WireError) -> UInt64 {
        guard kind == 0 else { throw .malformed }
        return try varint()
    }

    /// The current field as a zigzag-coded signed number.
    @inlinable
    public mutating func signed() throws(WireError) -> Int64 {
        let raw = try unsigned()
        return Int64(bitPattern: raw >> 1) ^ -Int64(bitPattern: raw & 1)
    }

    /// The current field as a number that is 0 for false.
    @inlinable
    public mutating func bool() throws(WireError) -> Bool { try unsigned() != 0 }

    /// The current field as a floating-point number.
    @inlinable
    public mutating func double() throws(WireError) -> Double {
        guard kind == 1 else { throw .malformed }
        return Double(bitPattern: try fixed64())
    }

    /// Eight bytes, little-endian, without a key.
    @inlinable
    public mutating func fixed64() throws(WireError) -> UInt64 {
        guard bytes.endIndex - position >= 8 else { throw .truncated }
        var value: UInt64 = 0
        for offset in 0..<8 { value |= UInt64(bytes[position + offset]) << UInt64(8 * offset) }
        position += 8
        return value
    }

    /// The current field's bytes, shared.
    @inlinable
    public mutating func slice() throws(WireError) -> ArraySlice<UInt8> {
        guard kind == 2 else { throw .malformed }
        let length = try varint()
        guard length <= UInt64(bytes.endIndex - position) else { throw .truncated }
        let end = position + Int(length)
        defer { position = end }
        return bytes[position..<end]
    }

    /// The current field's bytes, copied.
    @inlinable
    public mutating func array() throws(WireError) -> [UInt8] { Array(try slice()) }

    /// The current field as UTF-8 text; text that is not UTF-8 is refused.
    @inlinable
    public mutating func string() throws(WireError) -> String {
        let bytes = try slice()
        // Most text is ASCII, for which this takes a fifth of the instructions.
        let isASCII = bytes.withUnsafeBufferPointer { bytes in bytes.allSatisfy { $0 < 0x80 } }
        if isASCII { return String(decoding: bytes, as: UTF8.self) }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .invalidUTF8 }
        return text
    }

    /// The current field as a nested message.
    @inlinable
    public mutating func nested() throws(WireError) -> WireReader {
        WireReader(slice: try slice(), strictly: isStrict)
    }

    /// The current field as a nested value.
    package mutating func message<Value: WireDecodable>(_: Value.Type = Value.self) throws(WireError) -> Value {
        var reader = try nested()
        return try Value(from: &reader)
    }

    /// The current field as the bits of a set of options.
    /// - Parameter known: the bits that this build knows.
    /// - Throws: `unknownValue` for others where nothing may be passed over; else they are left out.
    @inlinable
    public mutating func options(_ known: UInt64) throws(WireError) -> UInt64 {
        let bits = try unsigned()
        if isStrict, bits & ~known != 0 { throw .unknownValue(field: number) }
        return bits & known
    }

    /// Steps over the current field, which this build does not know.
    /// - Throws: `unknownField` where nothing may be passed over.
    @inlinable
    public mutating func skip() throws(WireError) {
        if isStrict { throw .unknownField(number) }
        try pass()
    }

    /// Steps over the current field.
    @inlinable
    public mutating func pass() throws(WireError) {
        switch kind {
        case 0: _ = try varint()
        case 1: _ = try fixed64()
        default: _ = try slice()
        }
    }
}
