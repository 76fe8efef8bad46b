/// A message whose writer and reader follow from one list of its fields.
package typealias WireMessage = WireDecodable & WireEncodable & WireFieldList

/// One list of a message's fields, for its writer and its reader.
///
/// Public, with what it uses, although only this package sees it: only public functions are specialised in other
/// modules.
public protocol WireFieldList: WireValue {
    /// A message before anything of it was read; it keeps what it has here of fields that are not there.
    static var blank: Self { get }
    /// Passes each field to `wire` under its number, in the order in which they are written.
    ///
    /// A reader comes by as often as there are fields in another order, so nothing but that may happen here. What is
    /// passed is written back each time, by a writer too: a computed property takes what it gave without a change.
    mutating func fields(_ wire: inout WireFields) throws(WireError)
    /// Brings in order what was read, and refuses it where its fields do not go together.
    mutating func check() throws(WireError)
}

extension WireFieldList {
    @inlinable public mutating func check() throws(WireError) {}

    @inlinable public func encode(to writer: inout WireWriter) {
        var wire = WireFields(writing: &writer)
        var message = self
        do throws(WireError) { try message.fields(&wire) } catch { preconditionFailure("writing fails: \(error)") }
        swap(&writer, &wire.writer)
    }

    @inlinable public init(from reader: inout WireReader) throws(WireError) {
        self = Self.blank
        var wire = try WireFields(reading: reader)
        try fields(&wire)
        while try wire.goesOn() { try fields(&wire) }
        reader = wire.reader
        try check()
    }
}

/// Takes the fields of one message, either to write them or to read them.
public struct WireFields {
    @usableFromInline var writer: WireWriter
    @usableFromInline var reader: WireReader
    @usableFromInline let isReading: Bool
    /// The number of the field that the reader is at; -1 at the end, and while writing.
    @usableFromInline var number = -1
    /// Where the reader was when it began to walk.
    @usableFromInline var before = -1
    /// The required fields, all below 64, and those of them that were read.
    @usableFromInline var required: UInt64 = 0
    @usableFromInline var seen: UInt64 = 0

    /// Goes on with what a writer has; `encode` gives it back.
    @inlinable
    public init(writing writer: inout WireWriter) {
        self.writer = WireWriter(capacity: 0)
        reader = WireReader(slice: [], strictly: false)
        isReading = false
        swap(&self.writer, &writer)
    }

    /// Is at the first field of what a reader has.
    @inlinable
    public init(reading reader: WireReader) throws(WireError) {
        writer = WireWriter(capacity: 0)
        self.reader = reader
        isReading = true
        try advance()
        before = self.reader.position
    }

    /// Goes to the next field.
    @inlinable
    public mutating func advance() throws(WireError) {
        number = try reader.nextField() ?? -1
    }

    /// Whether fields are left. One that the message does not have is stepped over.
    @inlinable
    public mutating func goesOn() throws(WireError) -> Bool {
        while number >= 0, reader.position == before {
            try reader.skip()
            try advance()
        }
        before = reader.position
        if number >= 0 { return true }
        let missing = required & ~seen
        guard missing == 0 else { throw .missingField(missing.trailingZeroBitCount) }
        return false
    }

    /// A field that keeps its value where it is not there.
    @inlinable
    public mutating func field<Value: WireValue>(_ number: Int, _ value: inout Value) throws(WireError) {
        guard isReading else { return value.write(number, to: &writer) }
        while self.number == number {
            try value.read(&reader)
            try advance()
        }
    }

    /// A field that is left out where there is nothing.
    @inlinable
    public mutating func field<Value: WireValue>(_ number: Int, _ value: inout Value?) throws(WireError) {
        guard isReading else { return value?.write(number, to: &writer) ?? () }
        while self.number == number {
            value = try Value(field: &reader)
            try advance()
        }
    }

    /// A field for each member of a list; one for all of a list of bytes.
    @inlinable
    public mutating func field<Value: WireValue>(_ number: Int, _ list: inout [Value]) throws(WireError) {
        guard isReading else { return Value.write(list, number, to: &writer) }
        while self.number == number {
            try Value.read(into: &list, &reader)
            try advance()
        }
    }

    /// A list that may be absent, which is another thing than an empty one: a field says that there is a list, and the
    /// members come under a number of their own.
    @inlinable
    public mutating func field<Value: WireValue>(
        _ number: Int, _ list: inout [Value]?, members: Int
    ) throws(WireError) {
        guard isReading else {
            guard let list else { return }
            writer.field(number, true)
            return Value.write(list, members, to: &writer)
        }
        while self.number == number {
            list = try reader.bool() ? [] : nil
            try advance()
        }
        while self.number == members {
            var read = list ?? []
            try Value.read(into: &read, &reader)
            if list != nil { list = read }
            try advance()
        }
    }

    /// A field that is left out where it has a value that says nothing.
    @inlinable
    public mutating func field<Value: WireValue & Equatable>(
        _ number: Int, _ value: inout Value, unless silent: Value
    ) throws(WireError) {
        if isReading || value != silent { try field(number, &value) }
    }

    /// A field that must be there.
    @inlinable
    public mutating func required<Value: WireValue>(_ number: Int, _ value: inout Value) throws(WireError) {
        required |= 1 << number
        if self.number == number { seen |= 1 << number }
        try field(number, &value)
    }
}

extension WireFields {
    /// A nested message of a type that cannot be a field by itself.
    package mutating func field<Message: WireDecodable & WireEncodable>(
        _ number: Int, nested message: inout Message
    ) throws(WireError) {
        guard isReading else { return writer.field(number) { message.encode(to: &$0) } }
        while self.number == number {
            message = try reader.message()
            try advance()
        }
    }
}
