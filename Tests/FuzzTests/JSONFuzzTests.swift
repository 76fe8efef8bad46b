import RecordModel
import Testing

@Suite("Fuzz: JSON")
struct JSONFuzzTests {
    private static let words = [
        "{", "}", "[", "]", ":", ",", "\"", "\\u", "\\ud83d\\ude00", "\\ud800", "null", "true", "fals", "-", "0", "1e",
        ".5",
        "9223372036854775808", "1e400", "\"a\":", " ", "\u{0}", "é", "\u{FEFF}",
    ]

    /// A document equals what was read from what it was written as, and is written as the same bytes.
    private func roundTrip(_ value: JSONValue) throws {
        let bytes = value.serialized()
        let read = try JSONParser.parse(bytes)
        try Fuzz.require(read == value, "\(value) is written as \(bytes) and read as \(read)")
        try Fuzz.require(read.serialized() == bytes, "\(value) is written in two ways")
    }

    @Test("random and mutated documents are read or refused; what is read round-trips")
    func documents() {
        let outcome = Fuzz.run(salt: 1) { random in
            let kind = random.below(10)
            let bytes: [UInt8]
            if kind == 0 {
                bytes = random.bytes(40)
            } else {
                let value = random.json(depth: 3)
                if kind < 4 {
                    try roundTrip(value)
                    return true
                }
                bytes = random.mutated(value.serialized(), words: Self.words)
            }
            let slice = [0x20] + bytes
            guard let value = try? JSONParser.parse(bytes) else {
                try Fuzz.require((try? JSONParser.parse(slice[1...])) == nil, "a slice is taken: \(bytes)")
                return false
            }
            try Fuzz.require(try JSONParser.parse(slice[1...]) == value, "a slice is read differently: \(bytes)")
            try roundTrip(value)
            if case .string(let text) = value, let decoded = Base64.decode(text) {
                try Fuzz.require(Base64.encode(decoded) == text, "base64 has two texts: \(text)")
            }
            return true
        }
        outcome.expectBoth()
    }
}
