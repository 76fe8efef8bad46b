import Testing
import Wire

@Suite("The binary form")
struct WireTests {
    /// One field of each kind.
    private struct Sample: Hashable, WireCodable {
        var unsigned: UInt64 = 0
        var signed: Int64 = 0
        var double = 0.0
        var text = ""
        var bytes: [UInt8] = []
        var nested: [UInt64] = []

        init() {}

        func encode(to writer: inout WireWriter) {
            writer.field(1, unsigned)
            writer.field(2, signed: signed)
            writer.field(3, double: double)
            writer.field(4, text)
            writer.field(5, bytes)
            writer.field(6) { writer in for value in nested { writer.field(1, value) } }
        }

        init(from reader: inout WireReader) throws(WireError) {
            while let field = try reader.nextField() {
                switch field {
                case 1: unsigned = try reader.unsigned()
                case 2: signed = try reader.signed()
                case 3: double = try reader.double()
                case 4: text = try reader.string()
                case 5: bytes = try reader.array()
                case 6:
                    var inner = try reader.nested()
                    while let field = try inner.nextField() {
                        if field == 1 { nested.append(try inner.unsigned()) } else { try inner.skip() }
                    }
                default: try reader.skip()
                }
            }
        }
    }

    @Test("values come back as they were, the extremes too")
    func roundTrip() throws {
        var sample = Sample()
        for (unsigned, signed) in [(0, 0), (1, -1), (UInt64.max, Int64.min), (127, 63), (128, Int64.max)] {
            sample.unsigned = unsigned
            sample.signed = signed
            sample.double = -0.0
            sample.text = "Grüße 👋"
            sample.bytes = [0, 255]
            sample.nested = [unsigned, 3]
            #expect(try Sample(decoding: sample.encoded()) == sample)
            sample.nested = []
        }
    }

    @Test("many numbers at once have the bytes of one after the other", arguments: [1, 15, 16, 0xFFFF])
    func manyNumbers(number: Int) {
        let values: [UInt64] = [0, 1, 127, 128, 16_383, 16_384, .max]
        var single = WireWriter()
        for value in values { single.field(number, value) }
        var many = WireWriter()
        many.fields(number, [])
        #expect(many.bytes.isEmpty)
        many.fields(number, values)
        #expect(many.bytes == single.bytes)
    }

    @Test("a field that nobody knows is skipped")
    func unknownFields() throws {
        var writer = WireWriter()
        writer.field(90, 7)
        writer.field(91, double: 1.5)
        writer.field(92, "unknown")
        writer.field(1, 5)
        #expect(try Sample(decoding: writer.bytes).unsigned == 5)
    }

    @Test("bytes cut anywhere, and random ones, are refused or read, never trapped on")
    func damaged() {
        var sample = Sample()
        sample.unsigned = 1 << 40
        sample.text = "some text"
        sample.nested = [1, 2, 3]
        let whole = sample.encoded()
        for length in 0..<whole.count { _ = try? Sample(decoding: whole.prefix(length)) }
        var state: UInt64 = 1
        for seed in 0..<2_000 {
            var bytes = whole
            bytes[seed % bytes.count] = UInt8(truncatingIfNeeded: seed &* 31)
            _ = try? Sample(decoding: bytes)
            let random = (0..<40).map { _ -> UInt8 in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(truncatingIfNeeded: state >> 56)
            }
            _ = try? Sample(decoding: random)
        }
    }

    @Test("a varint of more than ten bytes, or beyond 64 bits, is malformed")
    func longVarint() {
        var reader = WireReader([UInt8](repeating: 0xFF, count: 10))
        #expect(throws: WireError.malformed) { try reader.varint() }
        var large = WireReader([UInt8](repeating: 0x80, count: 9) + [2])
        #expect(throws: WireError.malformed) { try large.varint() }
    }

    @Test("text that is not UTF-8 is refused")
    func invalidText() {
        var writer = WireWriter()
        writer.field(4, [0xC3, 0x28] as [UInt8])
        #expect(throws: WireError.invalidUTF8) { try Sample(decoding: writer.bytes) }
    }
}
