import Testing

@testable import RecordModel

@Suite("JSON (RFC 8259)")
struct JSONTests {
    private func parse(_ text: String) throws(JSONError) -> JSONValue { try JSONParser.parse(Array(text.utf8)) }

    @Test(
        "documents are read",
        arguments: [
            ("null", JSONValue.null), (" \t\r\n[ ] ", .array([])), ("{}", .object([])), ("-1", .integer(-1)),
            ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
            ("9223372036854775808", .number(9_223_372_036_854_775_808)), ("1.0", .number(1)), ("1e+20", .number(1e20)),
            ("1E-2", .number(0.01)), ("0", .integer(0)), ("1e-400", .number(0)),
            (#""\u00e9\ud83d\ude00\/\b\f\n\r\t\"\\""#, .string("é😀/\u{8}\u{C}\n\r\t\"\\")),
            (#""é\u0000""#, .string("é\u{0}")),
            (
                #"{"a":1,"b":[true,false]}"#,
                .object([.init("a", .integer(1)), .init("b", .array([.bool(true), .bool(false)]))])
            ),
        ])
    func documents(text: String, value: JSONValue) throws {
        #expect(try parse(text) == value)
    }

    @Test(
        "what is not JSON is refused, with the place",
        arguments: [
            ("", 0), (" ", 1), ("nul", 3), ("nulL", 3), ("[1,]", 3), ("[1 2]", 3), ("{\"a\" 1}", 5), ("{a:1}", 1),
            ("{\"a\":1,}", 7), ("01", 1), ("-", 1), ("+1", 0), (".5", 0), ("1.", 2), ("1e", 2), ("1e400", 0),
            ("NaN", 0),
            ("\"a", 2), ("\"\n\"", 1), (#""\x""#, 2), (#""\u12g4""#, 5), (#""\ud800""#, 7), (#""\ud800\u0041""#, 9),
            (#""\udc00""#, 3), ("1 1", 2), ("[]]", 2), ("'a'", 0), ("\u{FEFF}1", 0), ("{\"a\":1 \"b\":2}", 7),
            ("// a\n1", 0),
        ])
    func refused(text: String, position: Int) {
        let error = #expect(throws: JSONError.self) { try JSONParser.parse(Array(text.utf8)) }
        #expect(error?.position == position)
    }

    @Test("errors say what was expected and what was found")
    func messages() {
        let error = #expect(throws: JSONError.self) { try JSONParser.parse(Array(#"{"a";1}"#.utf8)) }
        #expect(error?.description == "byte 4: expected ':' after a key, found ';'")
    }

    @Test(
        "bytes that are not UTF-8 are refused",
        arguments: [[0xC0, 0x80], [0xFF], [0xED, 0xA0, 0x80], [0xE2, 0x82], [0xF4, 0x90, 0x80, 0x80]] as [[UInt8]])
    func invalidUTF8(bytes: [UInt8]) {
        #expect(throws: JSONError.self) { try JSONParser.parse([0x22] + bytes + [0x22]) }
        #expect(throws: JSONError.self) { try JSONParser.parse([0x22, 0x5C, 0x6E] + bytes + [0x22]) }
    }

    @Test("arrays and objects nest up to the limit")
    func depth() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(throws: Never.self) { try parse(nested(Limits.jsonDepthMax)) }
        #expect(throws: JSONError.self) { try parse(nested(Limits.jsonDepthMax + 1)) }
        #expect(throws: JSONError.self) { try parse(String(repeating: "[", count: 1_000_000)) }
        let wide = "[" + Array(repeating: "[]", count: 100).joined(separator: ",") + "]"
        #expect(throws: Never.self) { try parse(wide) }
    }

    @Test("of two members with one key the last wins, in small and in large objects", arguments: [2, 16, 17, 3000])
    func duplicates(count: Int) throws {
        let once = (0..<count).map { "\"k\($0)\":\($0)" }
        let twice = (0..<count).map { "\"k\($0)\":\(-$0)" }
        let value = try parse("{" + (once + twice).joined(separator: ",") + "}")
        #expect(value == .object((0..<count).map { .init("k\($0)", .integer(Int64(-$0))) }))
    }

    @Test("keys that only look the same are two keys")
    func canonicalEquivalence() throws {
        guard case .object(let members) = try parse("{\"é\":1,\"e\u{301}\":2}") else {
            Issue.record("no object")
            return
        }
        #expect(members.map(\.value) == [.integer(1), .integer(2)])
    }

    @Test("a slice is read from its own start")
    func slice() throws {
        let bytes = Array("xx[1]yy".utf8)
        #expect(try JSONParser.parse(bytes[2..<5]) == .array([.integer(1)]))
        let error = #expect(throws: JSONError.self) { try JSONParser.parse(bytes[2..<4]) }
        #expect(error?.position == 2)
    }

    @Test("negative zero keeps its sign")
    func negativeZero() throws {
        guard case .number(let zero) = try parse("-0") else {
            Issue.record("not a double")
            return
        }
        #expect(zero.sign == .minus && zero == 0)
    }

    @Test("a number is as long as a double can be, not longer")
    func longNumbers() throws {
        #expect(try parse("0." + String(repeating: "1", count: 1100)) == .number(0.1111111111111111))
        #expect(throws: JSONError.self) { try parse(String(repeating: "1", count: 3000)) }
    }

    @Test("a member is found by the bytes of its key alone")
    func keyBytes() throws {
        let json = try JSONParser.parse(Array("{\"desired\u{212A}eys\": 1, \"e\u{301}\": 2}".utf8))
        #expect(json["desiredKeys"] == nil && json["desired\u{212A}eys"] == .integer(1))
        #expect(json["\u{e9}"] == nil && json["e\u{301}"] == .integer(2))
    }

    @Test("members are found by key")
    func lookup() throws {
        let value = try parse(#"{"a":null,"b":"x"}"#)
        #expect(value["a"] == .null && value["b"]?.string == "x" && value["c"] == nil && JSONValue.null["a"] == nil)
    }

    @Test("random documents read back as they were written")
    func roundTrip() throws {
        var numbers = SeededNumbers(state: 4)
        for _ in 0..<300 {
            let value = numbers.json(depth: 4)
            #expect(try JSONParser.parse(value.serialized()) == value)
        }
    }

    @Test("integers and doubles are lossless")
    func lossless() throws {
        var numbers = SeededNumbers(state: 5)
        for _ in 0..<2000 {
            let (integer, double) = (numbers.integer(), numbers.double())
            #expect(try JSONParser.parse(JSONValue.integer(integer).serialized()) == .integer(integer))
            guard case .number(let read) = try JSONParser.parse(JSONValue.number(double).serialized()) else {
                Issue.record("\(double) is read as no double")
                continue
            }
            #expect(read.bitPattern == double.bitPattern)
        }
    }

    @Test("random and mutated input throws or reads, and what is read can be written")
    func fuzz() throws {
        var numbers = SeededNumbers(state: 6)
        var outcomes = (read: 0, refused: 0)
        for round in 0..<4000 {
            let bytes = round % 4 == 0 ? numbers.bytes(30) : numbers.mutated(numbers.json(depth: 3).serialized())
            if let value = try? JSONParser.parse(bytes) {
                outcomes.read += 1
                #expect(try JSONParser.parse(value.serialized()) == value)
            } else {
                outcomes.refused += 1
            }
        }
        #expect(outcomes.read > 50 && outcomes.refused > 1000)
    }

    @Test("control characters, quotes and backslashes are escaped, the rest is not")
    func escapes() {
        let text = "a\"\\\u{8}\u{C}\n\r\t\u{0}\u{1F}\u{7F}/é"
        #expect(
            String(decoding: JSONValue.string(text).serialized(), as: UTF8.self)
                == #""a\"\\\b\f\n\r\t\u0000\u001f\#u{7F}/é""#)
    }

    @Test("commas come by themselves, after strings that end like brackets too")
    func commas() {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("a{", "x[")
            writer.key("b")
            writer.array {
                $0.string(":")
                $0.string("{")
                $0.array { _ in }
                $0.number(.nan)
                $0.integer(.min)
            }
            writer.member("c", true)
        }
        let text = String(decoding: writer.bytes, as: UTF8.self)
        #expect(text == #"{"a{":"x[","b":[":","{",[],null,-9223372036854775808],"c":true}"#)
    }

    @Test(
        "base64 is strict",
        arguments: ["Zg", "Zg=", "Zh==", "Z===", "Zm9=", "Zg==Zg==", "Zm 9v", "Zm9v\n", "-_==", "===="])
    func base64Refused(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test("base64 goes both ways")
    func base64() {
        #expect(
            ["", "f", "fo", "foo", "foob"].map { Base64.encode(Array($0.utf8)) } == [
                "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==",
            ])
        var numbers = SeededNumbers(state: 7)
        for _ in 0..<300 {
            let bytes = numbers.bytes(50)
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
    }
}
