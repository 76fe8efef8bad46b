/// What a field of a message can hold: one field, or as many as a list has members.
public protocol WireValue {
    /// Writes the value under a number.
    func write(_ number: Int, to writer: inout WireWriter)
    /// Reads the current field.
    init(field reader: inout WireReader) throws(WireError)
    /// Takes in the current field, which comes after others of its number: a list grows, of anything else the last one
    /// counts.
    mutating func read(_ reader: inout WireReader) throws(WireError)
    /// What a field that is not there stands for; nil where it must be there.
    static var absent: Self? { get }

    /// Writes a list of values under a number.
    static func write(_ list: [Self], _ number: Int, to writer: inout WireWriter)
    /// Reads the current field, which is a part of a list.
    static func read(into list: inout [Self], _ reader: inout WireReader) throws(WireError)
}

extension WireValue {
    @inlinable public mutating func read(_ reader: inout WireReader) throws(WireError) {
        self = try Self(field: &reader)
    }

    @inlinable public static var absent: Self? { nil }

    @inlinable public static func write(_ list: [Self], _ number: Int, to writer: inout WireWriter) {
        for value in list { value.write(number, to: &writer) }
    }

    @inlinable public static func read(into list: inout [Self], _ reader: inout WireReader) throws(WireError) {
        list.append(try Self(field: &reader))
    }
}

/// A nested message.
extension WireValue where Self: WireEncodable & WireDecodable {
    package func write(_ number: Int, to writer: inout WireWriter) {
        let start = writer.open(number)
        encode(to: &writer)
        writer.close(start)
    }

    package init(field reader: inout WireReader) throws(WireError) {
        var nested = try reader.nested()
        try self.init(from: &nested)
    }
}

// Numbers of a kind of their own, and enumerations by the number or the name of a case.
extension WireValue where Self: RawRepresentable, RawValue: WireValue {
    @inlinable public func write(_ number: Int, to writer: inout WireWriter) { rawValue.write(number, to: &writer) }

    @inlinable public init(field reader: inout WireReader) throws(WireError) {
        guard let value = Self(rawValue: try RawValue(field: &reader)) else {
            throw .unknownValue(field: reader.number)
        }
        self = value
    }
}

/// A set of options that is a field by its bits.
package protocol WireOptions: OptionSet, WireValue where RawValue: FixedWidthInteger & WireValue {
    /// All that this build knows.
    static var known: Self { get }
}

extension WireOptions {
    package func write(_ number: Int, to writer: inout WireWriter) {
        writer.field(number, UInt64(truncatingIfNeeded: rawValue))
    }

    package init(field reader: inout WireReader) throws(WireError) {
        let bits = try reader.options(UInt64(truncatingIfNeeded: Self.known.rawValue))
        self.init(rawValue: RawValue(truncatingIfNeeded: bits))
    }
}

extension UInt64: WireValue {
    public func write(_ number: Int, to writer: inout WireWriter) { writer.field(number, self) }
    public init(field reader: inout WireReader) throws(WireError) { self = try reader.unsigned() }
    public static var absent: Self? { 0 }
    public static func write(_ list: [Self], _ number: Int, to writer: inout WireWriter) {
        writer.fields(number, list)
    }
}

extension Int64: WireValue {
    public func write(_ number: Int, to writer: inout WireWriter) { writer.field(number, signed: self) }
    public init(field reader: inout WireReader) throws(WireError) { self = try reader.signed() }
    public static var absent: Self? { 0 }
}

extension Double: WireValue {
    public func write(_ number: Int, to writer: inout WireWriter) { writer.field(number, double: self) }
    public init(field reader: inout WireReader) throws(WireError) { self = try reader.double() }
    public static var absent: Self? { 0 }
}

extension Bool: WireValue {
    public func write(_ number: Int, to writer: inout WireWriter) { writer.field(number, self) }
    public init(field reader: inout WireReader) throws(WireError) { self = try reader.bool() }
    public static var absent: Self? { false }
}

extension String: WireValue {
    public func write(_ number: Int, to writer: inout WireWriter) { writer.field(number, self) }
    public init(field reader: inout WireReader) throws(WireError) { self = try reader.string() }
    public static var absent: Self? { "" }
}

// Whole numbers of other sizes have the form of unsigned ones; one that does not fit is refused.
extension WireValue where Self: FixedWidthInteger {
    @inlinable public func write(_ number: Int, to writer: inout WireWriter) { writer.field(number, UInt64(self)) }

    @inlinable public init(field reader: inout WireReader) throws(WireError) {
        guard let value = Self(exactly: try reader.unsigned()) else { throw .invalidValue(field: reader.number) }
        self = value
    }

    public static var absent: Self? { 0 }
}

extension Int: WireValue {}
extension UInt32: WireValue {}

/// A list of bytes is one field.
extension UInt8: WireValue {
    public static func write(_ list: [Self], _ number: Int, to writer: inout WireWriter) {
        writer.field(number, list)
    }

    public static func read(into list: inout [Self], _ reader: inout WireReader) throws(WireError) {
        list = try reader.array()
    }
}

extension Array: WireValue where Element: WireValue {
    public func write(_ number: Int, to writer: inout WireWriter) {
        Element.write(self, number, to: &writer)
    }

    public init(field reader: inout WireReader) throws(WireError) {
        self = []
        try Element.read(into: &self, &reader)
    }

    public mutating func read(_ reader: inout WireReader) throws(WireError) {
        try Element.read(into: &self, &reader)
    }

    public static var absent: Self? { [] }
}

/// What is nil is left out.
extension Optional: WireValue where Wrapped: WireValue {
    public func write(_ number: Int, to writer: inout WireWriter) {
        if let self { self.write(number, to: &writer) }
    }

    public init(field reader: inout WireReader) throws(WireError) { self = try Wrapped(field: &reader) }

    public static var absent: Self? { .some(nil) }
}
