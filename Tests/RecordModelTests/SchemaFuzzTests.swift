import Testing

@testable import RecordModel

@Suite("Schema language: random and mutated text")
struct SchemaFuzzTests {
    private static let words = [
        "DEFINE", "SCHEMA", "CREATE", "ROLE", "RECORD", "TYPE", "GRANT", "READ", "WRITE", "TO", "LIST", "<", ">", "(",
        ")", ",",
        ";", "STRING", "ENCRYPTED", "NUMBER", "PREFERRED", "AS", "QUERYABLE", "\"_world\"", "\"", "//", "--", "/*",
        "*/", "\n",
        "a", "b", "\"___recordID\"", "REFERENCE", "\\", "ä", "\u{0}", "T",
    ]

    /// Changes bytes here and there: flips, cuts, doubles, and words put in.
    static func mutate(_ text: inout [UInt8], using random: inout SchemaRandom) {
        for _ in 0..<Int.random(in: 1...4, using: &random) where !text.isEmpty {
            let position = Int.random(in: 0..<text.count, using: &random)
            let end = min(text.count, position + Int.random(in: 1...20, using: &random))
            switch Int.random(in: 0..<5, using: &random) {
            case 0: text[position] = UInt8.random(in: .min ... .max, using: &random)
            case 1: text.removeSubrange(position..<end)
            case 2: text.insert(contentsOf: text[position..<end], at: position)
            case 3: text.insert(contentsOf: words[Int.random(in: 0..<words.count, using: &random)].utf8, at: position)
            default: text.removeSubrange(end...)
            }
        }
    }

    /// A schema that is accepted must keep every rule and survive printing, whatever text it came from.
    private func check(_ text: String) throws -> Bool {
        guard let schema = try? SchemaParser.parse(text) else { return false }
        for field in schema.types.flatMap(\.fields) { #expect(SchemaRules.problem(field: field) == nil) }
        #expect(try SchemaParser.parse(SchemaPrinter.print(schema)) == schema)
        return true
    }

    @Test("Random words")
    func randomWords() throws {
        var random = SchemaRandom(seed: 1)
        for _ in 0..<2000 {
            var text = random.chance(80) ? "DEFINE SCHEMA " : ""
            for _ in 0..<Int.random(in: 0..<30, using: &random) {
                text +=
                    Self.words[Int.random(in: 0..<Self.words.count, using: &random)] + (random.chance(80) ? " " : "")
            }
            _ = try check(text)
        }
    }

    @Test("Random bytes")
    func randomBytes() throws {
        var random = SchemaRandom(seed: 2)
        for _ in 0..<500 {
            let bytes = (0..<Int.random(in: 0..<80, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            _ = try check("DEFINE SCHEMA " + String(decoding: bytes, as: UTF8.self))
        }
    }

    @Test("Mutations of printed schemas, of which some are accepted and some refused")
    func mutations() throws {
        var random = SchemaRandom(seed: 3)
        var accepted = 0
        for _ in 0..<400 {
            var text = Array(SchemaPrinter.print(RandomSchema.make(using: &random)).utf8)
            Self.mutate(&text, using: &random)
            if try check(String(decoding: text, as: UTF8.self)) { accepted += 1 }
        }
        #expect((2...395).contains(accepted))
    }
}
