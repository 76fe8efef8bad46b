import Testing

@testable import Wire

@Suite("Messages that are one list of fields")
struct MessageTests {
    private enum Color: String, WireValue { case red, green }

    private struct Sample: Hashable, WireMessage {
        var number: UInt64 = 0
        var text = ""
        var color = Color.red
        var note: String?
        var names: [String] = []
        var bytes: [UInt8] = []
        var isOpen = false
        var children: [Sample] = []

        static var blank: Self { Sample() }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.required(1, &number)
            try wire.field(2, &text)
            try wire.field(3, &color, unless: .red)
            try wire.field(4, &note)
            // Written before what has a lower number.
            try wire.field(6, &bytes)
            try wire.field(5, &names)
            try wire.field(7, &isOpen, unless: false)
            try wire.field(8, &children)
        }

        func check() throws(WireError) {
            guard number != 13 else { throw .invalidValue(field: 1) }
        }
    }

    private static let sample = Sample(
        number: 300, text: "a", color: .green, note: "", names: ["x", "", "y"], bytes: [1, 2], isOpen: true,
        children: [Sample(number: 1), Sample(number: 2, children: [Sample(number: 3)])])

    @Test("come back as they were, and leave out what says nothing")
    func roundTrip() throws {
        #expect(try Sample(decoding: Self.sample.encoded()) == Self.sample)
        #expect(try Sample(decodingStrictly: Self.sample.encoded()) == Self.sample)
        #expect(Sample(number: 5).encoded() == [8, 5, 18, 0, 50, 0])
    }

    @Test("are read in any order of their fields, and the last of several counts")
    func order() throws {
        var writer = WireWriter()
        writer.field(7, true)
        writer.field(5, "x")
        writer.field(4, "first")
        writer.field(1, UInt64(1))
        writer.field(5, "y")
        writer.field(4, "last")
        writer.field(1, UInt64(2))
        let read = try Sample(decoding: writer.bytes)
        #expect(read == Sample(number: 2, note: "last", names: ["x", "y"], isOpen: true))
    }

    @Test("pass over fields that they do not have, unless they are read strictly", arguments: [0, 9, 65, 0xFFFF])
    func unknown(number: Int) throws {
        for isFirst in [true, false] {
            var writer = WireWriter()
            if !isFirst { writer.field(1, UInt64(1)) }
            writer.field(number, UInt64(7))
            writer.field(number, "text")
            writer.field(number, double: 1)
            if isFirst { writer.field(1, UInt64(1)) }
            #expect(try Sample(decoding: writer.bytes) == Sample(number: 1))
            #expect(throws: WireError.unknownField(number)) { try Sample(decodingStrictly: writer.bytes) }
            var outer = WireWriter()
            outer.field(1, UInt64(1))
            outer.field(8, writer.bytes)
            #expect(throws: WireError.unknownField(number)) { try Sample(decodingStrictly: outer.bytes) }
        }
    }

    @Test("are refused without a field that must be there, with an unknown case, and where they break a rule")
    func refused() {
        #expect(throws: WireError.missingField(1)) { try Sample(decoding: []) }
        // The number of another field must not pass for it.
        #expect(throws: WireError.missingField(1)) { try Sample(decoding: [0x88, 4, 1]) }
        #expect(throws: WireError.unknownValue(field: 3)) { try Sample(decoding: [8, 1, 26, 1, 0x61]) }
        #expect(throws: WireError.invalidValue(field: 1)) { try Sample(decoding: [8, 13]) }
        #expect(throws: WireError.missingField(1)) { try Sample(decoding: [8, 1, 66, 0]) }
    }

    @Test("every part of one that is cut off is refused, or is a message itself")
    func cut() {
        let bytes = Self.sample.encoded()
        for end in 2..<bytes.count {
            guard let read = try? Sample(decoding: bytes[..<end]) else { continue }
            #expect(Array(read.encoded().prefix(2)) == Array(bytes.prefix(2)))
        }
        #expect(throws: WireError.truncated) { try Sample(decoding: bytes.dropLast()) }
    }

    @Test(
        "have the length of their contents in front, however many bytes that takes",
        arguments: [0, 123, 124, 125, 127, 128, 16_379, 16_380, 16_384, 2_097_152])
    func lengths(count: Int) throws {
        let child = Sample(number: 1, bytes: Array(repeating: 5, count: count))
        let sample = Sample(number: 2, children: [child, Sample(number: 3)])
        var expected = WireWriter()
        expected.field(1, UInt64(2))
        expected.field(2, "")
        expected.field(6, [UInt8]())
        expected.field(8, child.encoded())
        expected.field(8, Sample(number: 3).encoded())
        #expect(sample.encoded() == expected.bytes)
        #expect(try Sample(decoding: sample.encoded()) == sample)
    }

    private enum Choice: Hashable, WireUnion {
        case number(UInt64)
        case pair(name: String, Int64?, [Sample])
        case nothing

        func encode(to writer: inout WireWriter) {
            switch self {
            case .number(let number): writer.field(1, number)
            case .pair(let name, let value, let samples): writer.parts(2, name, value, samples)
            case .nothing: writer.field(3, true)
            }
        }

        init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
            switch number {
            case 1: self = .number(try reader.unsigned())
            case 2: self = try reader.parts(Self.pair)
            case 3: self = try reader.flag(.nothing)
            default: return nil
            }
        }
    }

    @Test("of which one is a case: the last that is known counts, and there must be one")
    func union() throws {
        let pair = Choice.pair(name: "n", -1, [Sample(number: 1), Sample(number: 2)])
        for choice in [.number(0), pair, .pair(name: "", nil, []), .nothing] as [Choice] {
            #expect(try Choice(decoding: choice.encoded()) == choice)
            #expect(try Choice(decodingStrictly: choice.encoded()) == choice)
            #expect(try Choice(decoding: Choice.number(4).encoded() + choice.encoded() + [0x48, 1]) == choice)
            #expect(throws: WireError.unknownField(9)) {
                try Choice(decodingStrictly: choice.encoded() + [0x48, 1])
            }
        }
        var writer = WireWriter()
        writer.parts(2, "n", Int64(-1), [Sample(number: 1), Sample(number: 2)])
        #expect(writer.bytes == pair.encoded())
        #expect(throws: WireError.missingField(1)) { try Choice(decoding: []) }
        #expect(throws: WireError.invalidValue(field: 3)) { try Choice(decoding: [24, 0]) }
        // A fourth part.
        #expect(throws: WireError.unknownField(4)) { try Choice(decodingStrictly: [18, 2, 32, 1]) }
        #expect(try Choice(decoding: [18, 2, 32, 1]) == .pair(name: "", nil, []))
    }
}
