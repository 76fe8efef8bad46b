import RaftCore
import RecordModel
import Testing
import Wire

@testable import KeyValueStore

@Suite("Property values")
struct PropertyValueTests {
    private func json(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8)) }

    private func text(_ value: PropertyValue, numbersAsStrings: Bool = false) -> String {
        var writer = JSONWriter()
        value.write(to: &writer, numbersAsStrings: numbersAsStrings)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    @Test("Sizes: UTF-8, data, 8 for numbers and dates, 1 for a Bool; inside a value each member and key at least 8")
    func sizes() {
        let sizes: [(PropertyValue, Int)] = [
            (.string("häß"), 5), (.data([1, 2, 3]), 3), (.int64(.max), 8), (.double(0), 8), (.date(-1), 8),
            (.bool(true), 1),
            (.array([]), 0), (.array([.bool(true), .int64(1), .array([.string("ab")])]), 8 + 8 + 8 + 8),
            (.array([.string(""), .data([]), .array([]), .dictionary([])]), 32), (.array([filler(9)]), 9),
            (.dictionary([.init(key: "ä", value: .bool(true)), .init(key: "é", value: .data([1]))]), 32),
            (.dictionary([.init(key: "", value: .array([.dictionary([])]))]), 8 + 8 + 8),
            (.dictionary([.init(key: "a key of 14 b.", value: filler(20))]), 34),
        ]
        for (value, size) in sizes { #expect(value.sizeBytes == size, "\(value)") }
    }

    @Test("Every value comes back from bytes and from JSON")
    func roundTrips() throws {
        var random = SplitMix64(seed: 11)
        for _ in 0..<300 {
            let value = random.value()
            #expect(try PropertyValue(decoding: value.encoded()) == value)
            for asStrings in [false, true] {
                let text = text(value, numbersAsStrings: asStrings)
                #expect(try PropertyValue(json: try json(text), path: "value") == value, "\(text)")
            }
        }
    }

    @Test("Commands and outcomes come back from bytes")
    func messages() throws {
        var random = SplitMix64(seed: 12)
        let tag = ChangeTag(incarnation: 3, sequence: .max)
        let command = KeyValueCommand(
            store: .one, time: -5,
            writes: [delete("a"), set("b", random.value()), .init(key: "c", value: nil, expectedVersion: tag)],
            idempotencyKey: [0, 1], device: "phone")
        #expect(try KeyValueCommand(decoding: command.encoded()) == command)
        let outcomes: [KeyValueOutcome] = [
            .applied(versions: [nil, tag, nil], usage: KeyValueUsage(keys: 2, bytes: 9)),
            .applied(versions: [], usage: KeyValueUsage()),
            .refused(KeyValueRefusal(.keyBytes, key: "", actual: 0, max: 64)),
            .conflict([
                KeyValueConflict(key: "a", value: nil, version: nil),
                KeyValueConflict(key: "b", value: .bool(false), version: tag),
            ]),
        ]
        for outcome in outcomes { #expect(try KeyValueOutcome(decoding: outcome.encoded()) == outcome) }
        for rule in KeyValueRefusal.Rule.allCases { #expect(!KeyValueRefusal(rule, key: "k").description.isEmpty) }
    }

    @Test("Damaged bytes are refused or read, and never trap")
    func fuzz() throws {
        var random = SplitMix64(seed: 13)
        var refused = 0
        for _ in 0..<3000 {
            let writes = [set("a", random.value()), set("b", random.value())]
            var bytes = KeyValueCommand(store: .one, time: 1, writes: writes, idempotencyKey: [1]).encoded()
            for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
                let position = Int.random(in: 0..<bytes.count, using: &random)
                if random.chance(70) {
                    bytes[position] = UInt8.random(in: 0...255, using: &random)
                } else {
                    bytes.removeSubrange(position...)
                }
            }
            do throws(WireError) {
                let command = try KeyValueCommand(decoding: bytes)
                #expect(try KeyValueCommand(decoding: command.encoded()).writes.count == command.writes.count)
            } catch { refused += 1 }
        }
        #expect(refused > 100)
    }

    @Test("Too deep, and a dictionary out of order, are refused in bytes")
    func canonical() throws {
        var deep = PropertyValue.bool(true)
        for _ in 0..<PropertyValue.depthMax { deep = .array([deep]) }
        #expect(try PropertyValue(decoding: deep.encoded()) == deep)
        #expect(throws: WireError.self) { try PropertyValue(decoding: PropertyValue.array([deep]).encoded()) }
        let entries = [PropertyValue.Entry(key: "b", value: .bool(true)), .init(key: "a", value: .bool(true))]
        #expect(throws: WireError.self) { try PropertyValue(decoding: PropertyValue.dictionary(entries).encoded()) }
        #expect(PropertyValue(sorting: entries) == .dictionary(entries.reversed()))
        #expect(PropertyValue(sorting: entries + entries) == nil)
    }

    @Test("JSON without a type where the value shows it")
    func untyped() throws {
        let cases: [(String, PropertyValue)] = [
            ("\"a\"", .string("a")), ("7", .int64(7)), ("7.5", .double(7.5)), ("true", .bool(true)),
            ("{\"value\":7}", .int64(7)), ("{\"value\":7,\"type\":\"DOUBLE\"}", .double(7)),
            ("{\"type\":\"TIMESTAMP\",\"value\":-7}", .date(-7)),
            ("{\"type\":\"BYTES\",\"value\":\"AQI=\"}", .data([1, 2])),
            ("[1,\"a\",{\"value\":\"AQI=\",\"type\":\"BYTES\"}]", .array([.int64(1), .string("a"), .data([1, 2])])),
            (
                "{\"value\":{\"b\":1,\"a\":[]}}",
                .dictionary([.init(key: "a", value: .array([])), .init(key: "b", value: .int64(1))])
            ),
        ]
        for (text, value) in cases { #expect(try PropertyValue(json: try json(text), path: "v") == value, "\(text)") }
        #expect(text(.date(5)) == "{\"value\":5,\"type\":\"TIMESTAMP\"}")
    }

    @Test("Numbers and dates are strings where that is asked for, at any depth, and are read from strings")
    func numbersAsStrings() throws {
        let large = PropertyValue.int64(9_007_199_254_740_993)
        let cases: [(PropertyValue, String)] = [
            (large, #"{"value":"9007199254740993","type":"INT64"}"#),
            (.date(.min), #"{"value":"-9223372036854775808","type":"TIMESTAMP"}"#),
            (.double(0.5), #"{"value":"0.5","type":"DOUBLE"}"#),
            (.double(-.infinity), #"{"value":"-inf","type":"DOUBLE"}"#),
            (.bool(true), #"{"value":true,"type":"BOOL"}"#), (.string("7"), #"{"value":"7","type":"STRING"}"#),
            (
                .array([.dictionary([.init(key: "id", value: large)])]),
                #"{"value":[{"value":{"id":{"value":"9007199254740993","type":"INT64"}},"type":"DICTIONARY"}],"#
                    + #""type":"ARRAY"}"#
            ),
        ]
        for (value, expected) in cases {
            #expect(text(value, numbersAsStrings: true) == expected)
            #expect(try PropertyValue(json: try json(expected), path: "v") == value, "\(expected)")
        }
    }

    @Test("JSON that is no value is refused with the place")
    func refused() throws {
        let cases = [
            ("null", "v is null"), ("{}", "v has no 'value'"), ("{\"value\":null}", "v has no 'value'"),
            ("{\"value\":1,\"x\":2}", "v has the member 'x'"),
            ("{\"value\":1,\"type\":\"STRING\"}", "v is a number; STRING"),
            ("{\"value\":1.5,\"type\":\"INT64\"}", "whole number"),
            ("{\"value\":\"5.5\",\"type\":\"TIMESTAMP\"}", "whole number"),
            ("{\"value\":\"9223372036854775808\",\"type\":\"INT64\"}", "whole number"),
            ("{\"value\":\"five\",\"type\":\"INT64\"}", "v is a text that is not a number"),
            ("{\"value\":\"\",\"type\":\"DOUBLE\"}", "not a number"),
            ("{\"value\":\"?\",\"type\":\"BYTES\"}", "base64"),
            ("{\"value\":1,\"type\":\"REFERENCE\"}", "v.type is 'REFERENCE'"),
            ("{\"value\":1,\"type\":2}", "v.type is a number"), ("[1,[null]]", "v[1][0] is null"),
            ("{\"value\":{\"a\":{\"a\":1}}}", "v.a has the member 'a'"),
            ("{\"value\":1,\"type\":\"BOOL\"}", "true or false"),
            (String(repeating: "[", count: 13) + String(repeating: "]", count: 13), "nested deeper than 12"),
        ]
        for (text, reason) in cases {
            let error = #expect(throws: ServiceError.self) { try PropertyValue(json: try json(text), path: "v") }
            #expect(error?.code == .badRequest)
            #expect(error?.reason.contains(reason) == true, "\(text): \(error?.reason ?? "")")
        }
    }

    @Test("The deepest value fits in a JSON document with its envelope")
    func depth() throws {
        var deep = PropertyValue.bool(true)
        for _ in 0..<PropertyValue.depthMax { deep = .dictionary([.init(key: "k", value: deep)]) }
        let envelope = try json("{\"writes\":[{\"value\":\(text(deep))}]}")
        let value = try #require(envelope["writes"]?.array?.first?["value"])
        #expect(try PropertyValue(json: value, path: "v") == deep)
    }
}
