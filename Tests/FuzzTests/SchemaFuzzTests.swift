import RecordModel
import Testing
import Wire

@Suite("Fuzz: schema language")
struct SchemaLanguageFuzzTests {
    @Test("random and mutated text is parsed or refused; what is parsed keeps every rule and round-trips")
    func texts() throws {
        var random = FuzzRandom(seed: 1)
        let corpus = try (0..<200).map { _ in
            let schema = random.schema()
            let text = SchemaPrinter.print(schema)
            let parsed = try SchemaParser.parse(text)
            try #require(parsed == schema.normalized)
            return Array(text.utf8)
        }
        let outcome = Fuzz.run(salt: 2) { random in
            let text: String
            switch random.below(10) {
            case 0: text = String(decoding: random.bytes(80), as: UTF8.self)
            case 1...4: text = random.schemaWords()
            default:
                text = String(
                    decoding: random.mutated(random.pick(corpus), words: FuzzRandom.schemaWords), as: UTF8.self)
            }
            return try check(text)
        }
        outcome.expectBoth()
    }

    private func check(_ text: String) throws -> Bool {
        let schema: Schema
        do throws(SchemaError) {
            schema = try SchemaParser.parse(text)
        } catch {
            try Fuzz.require(error.line >= 1 && error.column >= 1 && !error.message.isEmpty, "no place: \(text)")
            return false
        }
        for type in schema.types {
            for field in type.fields {
                try Fuzz.require(SchemaRules.problem(field: field) == nil, "\(field) breaks a rule, from: \(text)")
            }
        }
        let printed = SchemaPrinter.print(schema)
        let again = try SchemaParser.parse(printed)
        try Fuzz.require(again == schema, "not the same schema: \(text)")
        try Fuzz.require(SchemaPrinter.print(again) == printed, "not the same bytes: \(text)")
        try Fuzz.require(SchemaPlan(from: schema, to: again).isEmpty, "a plan between equals: \(text)")
        try Fuzz.require(try Schema(decoding: schema.encoded()) == schema, "not the same binary form: \(text)")
        return true
    }
}
