import Testing

@testable import zonekeeper

@Suite("Amounts, spans and passwords at the terminal")
struct UnitsTests {
    @Test(
        "Bytes have decimal units and are never rounded up",
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1_000, "1 kB"), (1_234_567, "1.2 MB"),
            (99_999_999, "99.9 MB"), (100_000_000, "100 MB"), (999_999_999, "999 MB"), (5_000_000_000, "5 GB"),
            (.max, "9.2 EB"), (-1_500, "-1.5 kB"),
        ] as [(Int64, String)])
    func bytes(count: Int64, text: String) { #expect(Units.bytes(count) == text) }

    @Test("Counts have commas between thousands")
    func counts() {
        #expect([0, 999, 1_000, 1_234_567, -1_000].map(Units.count) == ["0", "999", "1,000", "1,234,567", "-1,000"])
        #expect(Units.count(.min) == "-9,223,372,036,854,775,808")
    }

    @Test(
        "Spans are never rounded down, so that who waits so long has waited long enough",
        arguments: [
            (0, "0 s"), (0.25, "0.25 s"), (0.001, "0.01 s"), (0.337, "0.34 s"), (2.5, "2.5 s"), (3, "3 s"),
            (59.991, "60 s"), (60, "1 min"), (61, "2 min"), (3_600, "1 h"), (3_900, "1 h 5 min"), (86_400, "1 d"),
            (100_000, "1 d 3 h"),
        ] as [(Double, String)])
    func seconds(seconds: Double, text: String) { #expect(Units.seconds(seconds) == text) }

    @Test("A password is typed and mended, character by character")
    func typing() {
        func typed(_ bytes: [UInt8]) -> (text: String, state: PasswordLine.State) {
            var line = PasswordLine()
            var state = PasswordLine.State.unfinished
            for byte in bytes where state == .unfinished { state = line.take(byte) }
            return (String(decoding: line.bytes, as: UTF8.self), state)
        }
        #expect(typed(Array("pass\n".utf8)) == ("pass", .finished))
        #expect(typed(Array("pé\u{7F}\u{8}x\r".utf8)) == ("x", .finished))
        #expect(typed(Array("abc\u{15}é\n".utf8)) == ("é", .finished))
        #expect(typed([0x7F, 0x7F] + Array("a\n".utf8)) == ("a", .finished))
        #expect(typed(Array("abc\u{3}".utf8)).state == .givenUp)
        #expect(typed(Array("\n".utf8)).state == .givenUp)
        #expect(typed([UInt8](repeating: 0x61, count: PasswordInput.bytesMax + 1)).state == .givenUp)
    }

    @Test("Patience is seconds, or a number with its unit")
    func patience() {
        #expect(Patience(argument: "2.5")?.seconds == 2.5)
        #expect(Patience(argument: "0")?.seconds == 0)
        #expect(Patience(argument: "2m")?.seconds == 120)
        for wrong in ["", "-1", "inf", "nan", "soon", "2 m"] { #expect(Patience(argument: wrong) == nil, "\(wrong)") }
    }
}
