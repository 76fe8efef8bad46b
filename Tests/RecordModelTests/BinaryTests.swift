import Testing
import Wire

@testable import RecordModel

@Suite("Binary form of record values")
struct BinaryTests {
    private let database = DatabaseKey(container: "iCloud.a", environment: .production, scope: .private, owner: "_u")

    private func expectRoundTrip<Value: WireCodable & Equatable>(_ value: Value) throws {
        #expect(try Value(decoding: value.encoded()) == value)
    }

    @Test("random fields read back as they were written")
    func fields() throws {
        var numbers = SeededNumbers(state: 1)
        for _ in 0..<300 {
            let fields = numbers.fields()
            #expect(try decodeBody(encodeBody(fields)) == fields)
        }
    }

    @Test(
        "doubles keep every bit, NaN and -0 too", arguments: [-0.0, Double.nan, .infinity, .leastNonzeroMagnitude, 0.1])
    func doubles(number: Double) throws {
        guard case .double(let read) = try FieldValue(decoding: FieldValue.double(number).encoded()) else {
            Issue.record("not a double")
            return
        }
        #expect(read.bitPattern == number.bitPattern)
    }

    @Test("a schema is in order, whatever the order of its bytes")
    func order() throws {
        let types = ["B", "A"].map { RecordType(name: $0) }
        var writer = WireWriter()
        for type in types { type.write(2, to: &writer) }
        for role in ["b", "a"] { writer.field(1, role) }
        #expect(try Schema(decoding: writer.bytes) == Schema(roles: ["a", "b"], types: types))
    }

    @Test("an empty list keeps its type")
    func emptyList() throws {
        try expectRoundTrip(FieldValue.list(.timestamp, []))
        try expectRoundTrip(Fields([.init(name: "a", value: .list(.bytes, []))]))
    }

    @Test("keys, queries, errors, schemas and records read back as they were written")
    func others() throws {
        try expectRoundTrip(database)
        for scope in Scope.allCases {
            for environment in Environment.allCases {
                let key = DatabaseKey(container: "c", environment: environment, scope: scope, owner: "")
                try expectRoundTrip(ZoneKey(database: key, name: "Notes"))
            }
        }
        try expectRoundTrip(ZoneID())
        try expectRoundTrip(ZoneID(name: "", owner: "x"))
        let filters = Comparator.allCases.map { Filter(field: "f", comparator: $0, value: .int64(-1)) }
        try expectRoundTrip(
            Query(recordType: "T", filters: filters, sorts: [Sort(field: "a"), Sort(field: "b", isAscending: false)]))
        for code in ErrorCode.allCases {
            try expectRoundTrip(ServiceError(code, "why", retryAfterSeconds: code == .throttled ? 30 : nil))
        }
        let fields = ScalarType.allCases.map {
            FieldDefinition(
                name: $0.rawValue,
                type: FieldType($0, isList: $0 == .string, isEncrypted: $0 == .bytes, preferred: .int64),
                indexes: $0 == .int64 ? [.queryable, .sortable] : [])
        }
        let grants = [Grant(role: "_icloud", permissions: [.create, .write])]
        try expectRoundTrip(Schema(roles: ["r"], types: [RecordType(name: "T", fields: fields, grants: grants)]))
        let stamp = Stamp(timestamp: -5, user: "_u")
        let tag = ChangeTag(incarnation: .max, sequence: 3)
        var numbers = SeededNumbers(state: 2)
        try expectRoundTrip(
            Record(name: "r", type: "T", changeTag: tag, created: stamp, modified: stamp, fields: numbers.fields()))
    }

    @Test("the codes on disk do not change")
    func codes() {
        #expect(ScalarType.allCases.map(\.wireCode) == [1, 2, 3, 4, 5, 6, 7, 8, 9])
        #expect(Scope.allCases.map(\.wireCode) == [1, 2, 3])
        #expect(Environment.allCases.map(\.wireCode) == [1, 2])
        #expect(Reference.Action.allCases.map(\.wireCode) == [0, 1, 2])
        let body = encodeBody(Fields([.init(name: "a", value: .int64(-2)), .init(name: "b", value: .string("x"))]))
        #expect(body == [8, 1, 18, 1, 97, 144, 1, 3, 18, 1, 98, 138, 1, 1, 120])
    }

    @Test("a field from the future is skipped")
    func unknownField() throws {
        var writer = WireWriter()
        writer.field(900, "new")
        database.encode(to: &writer)
        writer.field(901) { $0.field(1, true) }
        #expect(try DatabaseKey(decoding: writer.bytes) == database)
        var body = WireWriter()
        Fields([.init(name: "a", value: .int64(1))]).encode(to: &body)
        body.field(14, 5)
        #expect(try decodeBody(body.bytes)["a"] == .int64(1))
    }

    @Test("a name without a value, a value without a name, names out of order and a new version are refused")
    func malformedBodies() {
        func bytes(_ body: (inout WireWriter) -> Void) -> [UInt8] {
            var writer = WireWriter()
            body(&writer)
            return writer.bytes
        }
        let nameOnly = bytes {
            $0.field(1, 1)
            $0.field(2, "a")
        }
        let valueOnly = bytes {
            $0.field(1, 1)
            $0.field(18, signed: 1)
        }
        let disordered = bytes { writer in
            writer.field(1, 1)
            for name in ["b", "a"] {
                writer.field(2, name)
                writer.field(18, signed: 1)
            }
        }
        #expect(throws: WireError.missingField(16)) { try decodeBody(nameOnly) }
        #expect(throws: WireError.missingField(2)) { try decodeBody(valueOnly) }
        #expect(throws: WireError.invalidValue(field: 2)) { try decodeBody(disordered) }
        #expect(throws: WireError.unknownValue(field: 1)) { try decodeBody(bytes { $0.field(1, 2) }) }
        #expect(throws: WireError.missingField(1)) { try decodeBody([]) }
    }

    @Test("names sort by their bytes: what looks the same is two names, and every set of names has one order")
    func nameOrder() throws {
        // Found by the fuzzer (input 2081604): Swift's own order knows no order of these.
        let names = [
            "\u{e9}\u{1F}", "e\u{301}", "\u{e9}", "e\u{301}\u{1F}", "e", "", "\u{e9}\u{0}", "\u{1F600}", "\u{FF21}",
        ]
        let sorted = names.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
        var numbers = SeededNumbers(state: 12)
        for _ in 0..<50 {
            let fields = Fields(names.shuffled(using: &numbers).map { .init(name: $0, value: .string($0)) })
            #expect(fields.all.map { Array($0.name.utf8) } == sorted.map { Array($0.utf8) })
            #expect(try decodeBody(encodeBody(fields)) == fields)
            for name in names {
                guard case .string(let found)? = fields[name] else {
                    Issue.record("\(Array(name.utf8)) is not found")
                    continue
                }
                #expect(Array(found.utf8) == Array(name.utf8))
            }
        }
    }

    @Test("a list holds values of its own type only, and no lists")
    func listMembers() {
        var mixed = WireWriter()
        mixed.field(8) {
            $0.field(15, ScalarType.string.wireCode)
            $0.field(2, signed: 1)
        }
        var nested = WireWriter()
        nested.field(8) { outer in
            outer.field(15, ScalarType.string.wireCode)
            outer.field(8) { $0.field(15, 1) }
        }
        // The type would be that of the second, the member one of the first.
        var twoTypes = WireWriter()
        twoTypes.field(8) {
            $0.field(15, ScalarType.int64.wireCode)
            $0.field(2, signed: 1)
            $0.field(15, ScalarType.string.wireCode)
        }
        #expect(throws: WireError.invalidValue(field: 15)) { try FieldValue(decoding: twoTypes.bytes) }
        #expect(throws: WireError.invalidValue(field: 2)) { try FieldValue(decoding: mixed.bytes) }
        #expect(throws: WireError.invalidValue(field: 8)) { try FieldValue(decoding: nested.bytes) }
    }

    @Test("random and mutated bytes throw or read, and never trap")
    func fuzz() {
        var numbers = SeededNumbers(state: 3)
        var refused = 0
        for round in 0..<3000 {
            let good = round % 2 == 0 ? encodeBody(numbers.fields()) : numbers.value().encoded()
            let bytes = round % 3 == 0 ? numbers.bytes(60) : numbers.mutated(good)
            if (try? decodeBody(bytes)) == nil { refused += 1 }
            _ = try? FieldValue(decoding: bytes)
            _ = try? Record(decoding: bytes)
            _ = try? Schema(decoding: bytes)
            _ = try? Query(decoding: bytes)
            _ = try? ZoneKey(decoding: bytes)
            _ = try? ServiceError(decoding: bytes)
        }
        #expect(refused > 1000)
    }
}
