/// Appends tagged fields in Zonekeeper's binary form to a byte array.
///
/// A field is a key (`number << 3 | kind`, as a varint) followed by its value. Kind 0 is a varint, kind 1 eight bytes
/// little-endian, kind 2 a length (varint) and that many bytes. A reader skips fields whose number it does not know, so
/// a message may gain fields without breaking older nodes. Fields equal to their default may be left out by the writer.
public struct WireWriter: Sendable {
    /// What was written so far.
    public var bytes: [UInt8]

    /// A writer with room for `capacity` bytes before it has to grow.
    public init(capacity: Int = 64) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    /// A bare varint: 7 bits a byte, least significant first; at most 10 bytes.
    @inlinable
    public mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    /// An unsigned number as a varint; readers refuse field numbers above 0xFFFF.
    @inlinable
    public mutating func field(_ number: Int, _ value: UInt64) {
        varint(UInt64(number) << 3)
        varint(value)
    }

    /// A field for each of many numbers, all under one key: the same bytes as one after the other, in a fraction of the
    /// time.
    public mutating func fields(_ number: Int, _ values: [UInt64]) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20 * values.count) { buffer in
            var end = 0
            func append(_ value: UInt64) {
                var rest = value
                while rest >= 0x80 {
                    buffer[end] = UInt8(truncatingIfNeeded: rest) | 0x80
                    end += 1
                    rest >>= 7
                }
                buffer[end] = UInt8(truncatingIfNeeded: rest)
                end += 1
            }
            for value in values {
                append(UInt64(number) << 3)
                append(value)
            }
            bytes.append(contentsOf: buffer[..<end])
        }
    }

    /// A signed number, zigzag-coded so that small negative ones stay short.
    @inlinable
    public mutating func field(_ number: Int, signed value: Int64) {
        field(number, UInt64(bitPattern: (value << 1) ^ (value >> 63)))
    }

    /// A varint of 1 for true and 0 for false.
    @inlinable
    public mutating func field(_ number: Int, _ value: Bool) {
        field(number, UInt64(value ? 1 : 0))
    }

    /// A floating-point number as its eight bytes, little-endian, so that every bit is kept.
    @inlinable
    public mutating func field(_ number: Int, double value: Double) {
        varint(UInt64(number) << 3 | 1)
        fixed64(value.bitPattern)
    }

    /// Eight bytes, little-endian, without a key.
    @inlinable
    public mutating func fixed64(_ value: UInt64) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// Bytes, after a varint that counts them.
    @inlinable
    public mutating func field(_ number: Int, _ value: some Collection<UInt8>) {
        varint(UInt64(number) << 3 | 2)
        varint(UInt64(value.count))
        bytes.append(contentsOf: value)
    }

    /// Text in UTF-8, after a varint that counts its bytes.
    @inlinable
    public mutating func field(_ number: Int, _ value: String) {
        var value = value
        value.withUTF8 { utf8 in
            varint(UInt64(number) << 3 | 2)
            varint(UInt64(utf8.count))
            bytes.append(contentsOf: utf8)
        }
    }

    /// A nested message; its fields are whatever `body` writes.
    @inlinable
    public mutating func field(_ number: Int, _ body: (inout WireWriter) -> Void) {
        let start = open(number)
        body(&self)
        close(start)
    }

    /// Begins a nested message, with room for a length of one byte.
    /// - Returns: where its bytes begin.
    @inlinable
    public mutating func open(_ number: Int) -> Int {
        varint(UInt64(number) << 3 | 2)
        bytes.append(0)
        return bytes.count
    }

    /// Ends the nested message that begins at `start`: puts its length in front of it.
    @inlinable
    public mutating func close(_ start: Int) {
        let length = bytes.count - start
        if length < 0x80 { bytes[start - 1] = UInt8(length) } else { makeRoom(at: start, length) }
    }

    @usableFromInline
    mutating func makeRoom(at start: Int, _ length: Int) {
        let shift = (Int.bitWidth - length.leadingZeroBitCount - 1) / 7
        bytes.append(contentsOf: repeatElement(0, count: shift))
        bytes.withUnsafeMutableBytes { bytes in
            UnsafeMutableRawBufferPointer(rebasing: bytes[(start + shift)...]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: bytes[start..<(start + length)]))
            for place in 0...shift {
                let more: UInt8 = place < shift ? 0x80 : 0
                bytes[start - 1 + place] = UInt8(length >> (7 * place) & 0x7F) | more
            }
        }
    }
}

/// A value with a binary form of its own.
package protocol WireEncodable {
    func encode(to writer: inout WireWriter)
}

extension WireEncodable {
    /// The value's binary form.
    package func encoded() -> [UInt8] {
        var writer = WireWriter()
        encode(to: &writer)
        return writer.bytes
    }
}

/// A value that can be read back from its binary form.
package protocol WireDecodable {
    init(from reader: inout WireReader) throws(WireError)
}

extension WireDecodable {
    /// Reads a value from exactly these bytes.
    /// - Throws: `WireError` if the bytes are cut short or malformed; a retry does not help.
    package init(decoding bytes: some Collection<UInt8>) throws(WireError) {
        var reader = WireReader(bytes)
        try self.init(from: &reader)
    }

    /// Reads a value of whose bytes nothing may be passed over, at any depth: what passes over a field that others know
    /// would come to another result.
    /// - Throws: `WireError`; `isOfNewerBuild` tells what a newer build may know from what is damaged.
    package init(decodingStrictly bytes: some Collection<UInt8>) throws(WireError) {
        var reader = WireReader(bytes, strictly: true)
        try self.init(from: &reader)
    }
}

/// A value with a binary form in both directions, which is a nested message where it is a field.
package typealias WireCodable = WireDecodable & WireEncodable & WireValue
