import RecordModel
import Testing
import Wire

@Suite("Fuzz: binary forms")
struct BinaryFuzzTests {
    /// A value equals what is read from what it is written as.
    private func roundTrip<Value: WireCodable & Equatable>(_ value: Value) throws -> [UInt8] {
        let bytes = value.encoded()
        let read = try? Value(decoding: bytes)
        try Fuzz.require(read == value, "\(value) is read as \(String(describing: read))")
        return bytes
    }

    /// Bytes from elsewhere throw, or are read as a value with a form of its own. Values are compared by their bytes:
    /// NaN is not equal to itself.
    private func decode<Value: WireCodable>(_: Value.Type, _ bytes: [UInt8]) throws -> Bool {
        guard let value = try? Value(decoding: bytes) else { return false }
        let once = value.encoded()
        let twice = try? Value(decoding: once).encoded()
        try Fuzz.require(once == twice, "\(value) has two forms or none, from \(bytes)")
        return true
    }

    private func decode(_ kind: Int, _ bytes: [UInt8]) throws -> Bool {
        switch kind {
        case 0: try decode(Fields.self, bytes)
        case 1: try decode(FieldValue.self, bytes)
        case 2: try decode(Record.self, bytes)
        case 3: try decode(Query.self, bytes)
        case 4: try decode(Schema.self, bytes)
        case 5: try decode(ZoneKey.self, bytes)
        case 6: try decode(ServiceError.self, bytes)
        case 7: try decode(ChangeTag.self, bytes)
        case 8: try decode(Location.self, bytes)
        default: try decode(Reference.self, bytes)
        }
    }

    private func original(_ kind: Int, _ random: inout FuzzRandom) throws -> [UInt8] {
        switch kind {
        case 0: return try roundTrip(random.fields())
        case 1: return try roundTrip(random.value())
        case 2: return try roundTrip(random.record())
        case 3: return try roundTrip(random.query())
        case 4: return try roundTrip(random.schema())
        case 5:
            let database = DatabaseKey(
                container: random.text(), environment: random.pick(Environment.allCases),
                scope: random.pick(Scope.allCases), owner: random.text())
            return try roundTrip(ZoneKey(database: database, name: random.text()))
        case 6:
            return try roundTrip(
                ServiceError(
                    random.pick(ErrorCode.allCases), random.text(),
                    retryAfterSeconds: random.chance(50) ? Double(random.integer()) : nil))
        case 7: return try roundTrip(ChangeTag(incarnation: random.next(), sequence: random.next()))
        case 8: return try roundTrip(random.location())
        default:
            let zone =
                random.chance(50) ? ZoneID(name: random.text(), owner: random.chance(50) ? random.text() : nil) : nil
            return try roundTrip(
                Reference(recordName: random.text(), zone: zone, action: random.pick(Reference.Action.allCases)))
        }
    }

    @Test("values round-trip; random and mutated bytes throw or are read as a value that does")
    func bytes() {
        let outcome = Fuzz.run(salt: 3) { random in
            let kind = random.below(10)
            if random.chance(15) { return try decode(kind, random.bytes(60)) }
            let bytes = try original(kind, &random)
            if random.chance(10) { return true }
            // Now and then the bytes are those of another type.
            return try decode(
                random.chance(90) ? kind : random.below(10), random.mutated(bytes, words: ["\u{1}", "\u{8}", "\u{12}"]))
        }
        outcome.expectBoth()
    }

    @Test("change tags are read from no text but their own")
    func changeTags() {
        var random = FuzzRandom(seed: 4)
        for _ in 0..<2000 {
            let tag = ChangeTag(incarnation: random.next() >> UInt64(random.below(64)), sequence: random.next())
            #expect(ChangeTag(tag.description) == tag)
            let text = String(
                decoding: random.mutated(Array(tag.description.utf8), words: [".", "0", "+", "Z"]), as: UTF8.self)
            if let read = ChangeTag(text) { #expect(read.description == text) }
        }
    }
}
