import Testing
import Wire

@testable import RecordModel

@Suite("Types and fields made by the first save in development")
struct SchemaExtensionTests {
    private func operations(_ records: String..., kind: String = "create") throws -> [RecordOperation] {
        let all = records.map { "{\"operationType\":\"\(kind)\",\"record\":\($0)}" }.joined(separator: ",")
        return try ModifyRecordsRequest(body: Array("{\"operations\":[\(all)]}".utf8)).operations
    }

    private func extended(_ schema: Schema, _ records: String...) throws -> Schema? {
        var all: [RecordOperation] = []
        for record in records { all += try operations(record) }
        return SchemaExtension.extended(schema, by: all)
    }

    private func place(
        _ environment: Environment = .development, _ scope: Scope = .private
    ) -> RecordOperation.Place {
        RecordOperation.Place(container: "iCloud.a", environment: environment, scope: scope, zone: ZoneID())
    }

    private func refusal(_ record: String, in schema: Schema, kind: String = "create", _ environment: Environment)
        throws -> ServiceError?
    {
        let operation = try #require(try operations(record, kind: kind).first)
        do throws(ServiceError) {
            _ = try operation.values(in: schema, at: place(environment))
            return nil
        } catch {
            return error
        }
    }

    @Test("a new type has CloudKit's grants, a recordID that can be queried, and every index that goes with each field")
    func newType() throws {
        let record = #"""
            {"recordType":"Note","recordName":"r","parent":{"recordName":"p"},"fields":{"s":{"value":"x"},"i":{"value":1},
            "b":{"value":true},"d":{"value":1.5},"t":{"value":1,"type":"TIMESTAMP"},"y":{"value":"Zg==","type":"BYTES"},
            "l":{"value":{"latitude":1,"longitude":2}},"r":{"value":{"recordName":"o","action":"DELETE_SELF"}},
            "ss":{"value":["a"]},"e":{"value":[],"type":"INT64_LIST"},"c":{"value":"x","isEncrypted":true},
            "z":{"value":"Zg==","type":"ENCRYPTED_BYTES"},"n":{"value":null}}}
            """#
        let schema = try #require(try extended(.initial, record))
        let text = """
            DEFINE SCHEMA RECORD TYPE Users (roles LIST<INT64>, GRANT WRITE TO "_creator", GRANT READ TO "_world");
            RECORD TYPE Note ("___recordID" REFERENCE QUERYABLE SORTABLE, s STRING QUERYABLE SORTABLE,
                i INT64 QUERYABLE SORTABLE, b INT64 QUERYABLE SORTABLE, d DOUBLE QUERYABLE SORTABLE,
                t TIMESTAMP QUERYABLE SORTABLE, y BYTES QUERYABLE SORTABLE, l LOCATION QUERYABLE SORTABLE,
                r REFERENCE QUERYABLE SORTABLE, ss LIST<STRING> QUERYABLE, e LIST<INT64> QUERYABLE, c ENCRYPTED STRING,
                z ENCRYPTED BYTES, GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world");
            """
        #expect(schema == (try SchemaParser.parse(text)))
        #expect(try extended(schema, record) == nil)
    }

    @Test("a type made by an import gets new fields and keeps what it states")
    func newFields() throws {
        let schema = try SchemaParser.parse("DEFINE SCHEMA RECORD TYPE T (a STRING);")
        #expect(try extended(schema, #"{"recordType":"T","fields":{"a":{"value":"x"}}}"#) == nil)
        let wanted = try SchemaParser.parse("DEFINE SCHEMA RECORD TYPE T (a STRING, b INT64 QUERYABLE SORTABLE);")
        let record = #"{"recordType":"T","recordName":"r","recordChangeTag":"1.1","fields":{"b":{"value":1}}}"#
        for kind in ["create", "update", "replace", "forceUpdate"] {
            #expect(SchemaExtension.extended(schema, by: try operations(record, kind: kind)) == wanted)
        }
        #expect(SchemaExtension.extended(schema, by: try operations(record, kind: "delete")) == nil)
    }

    @Test("operations that cannot be understood add nothing, the others of the request do")
    func faults() throws {
        let schema = try SchemaParser.parse("DEFINE SCHEMA RECORD TYPE T (a STRING);")
        let faults = [
            #"{"recordType":"T","fields":{"a":{"value":1},"b":{"value":1}}}"#,
            #"{"recordType":"T","fields":{"b":{"value":[]}}}"#, #"{"recordType":"T","fields":{"b":{"value":{}}}}"#,
            #"{"recordType":"T","fields":{"b":{"value":{"receipt":"x"},"isEncrypted":true}}}"#,
            #"{"recordType":"T","fields":{"b":{"value":{"recordName":"r"},"isEncrypted":true}}}"#,
            #"{"recordType":"U","fields":{"b":{"value":1,"type":"STRING"}}}"#,
            #"{"recordType":"T","fields":{"c":null}}"#,
        ]
        for fault in faults {
            #expect(try extended(schema, fault) == nil, "\(fault)")
            let both = try #require(try extended(schema, fault, #"{"recordType":"T","fields":{"z":{"value":"x"}}}"#))
            #expect(both.types.map(\.name) == ["T"] && both.types[0].fields.map(\.name) == ["a", "z"], "\(fault)")
        }
        #expect(
            SchemaExtension.extended(
                schema,
                by: try operations(
                    #"{"recordType":"U","recordName":"r","recordChangeTag":"1.1"}"#, kind: "update")) == nil)
    }

    @Test("the public database adds no encrypted fields and says why")
    func encryptedInPublic() throws {
        let all = try operations(#"{"recordType":"T","fields":{"a":{"value":"x","isEncrypted":true},"b":{"value":1}}}"#)
        #expect(SchemaExtension.extended(Schema(), by: all, scope: .public) == nil)
        #expect(SchemaExtension.extended(Schema(), by: all, scope: .private) != nil)
        let error = #expect(throws: ServiceError.self) {
            try all[0].values(in: Schema(), at: place(.development, .public))
        }
        #expect(
            error?.code == .badRequest && error?.reason.hasPrefix("fields.a: encrypted fields are for private") == true)
    }

    @Test("of two values of different types the first settles a field's")
    func twoTypes() throws {
        let one = #"{"recordType":"T","fields":{"a":{"value":1}}}"#
        let other = #"{"recordType":"T","fields":{"a":{"value":"x"},"b":{"value":1}}}"#
        let schema = try #require(try extended(Schema(), one, other))
        #expect(schema.types[0].field(named: "a")?.type == FieldType(.int64) && schema.types[0].fields.count == 2)
        #expect(
            try refusal(other, in: schema, .development)?.reason.hasPrefix("Invalid value, expected type INT64") == true
        )
    }

    @Test("Users is made as every container has it, and its fields have no index")
    func users() throws {
        let record = #"{"recordType":"Users","recordName":"_u","fields":{"nick":{"value":"x"}}}"#
        let users = try #require(try extended(Schema(), record)?.type(named: "Users"))
        #expect(users.grants == RecordType.users.grants && users.field(named: "roles") != nil)
        #expect(users.field(named: "nick") == FieldDefinition(name: "nick", type: FieldType(.string)))
    }

    @Test("at 500 types and 1,000 fields nothing is added, and the error says so")
    func limits() throws {
        func schema(types: Int, fields: Int) -> Schema {
            let all = (0..<fields).map { FieldDefinition(name: "f\($0)", type: FieldType(.int64)) }
            return Schema(types: (1..<types).map { RecordType(name: "T\($0)") } + [RecordType(name: "T", fields: all)])
        }
        let type = #"{"recordType":"New"}"#
        #expect(try extended(schema(types: 499, fields: 0), type)?.types.count == 500)
        #expect(try extended(schema(types: 500, fields: 0), type) == nil)
        let manyTypes = try refusal(type, in: schema(types: 500, fields: 0), .development)
        #expect(manyTypes?.code == .badRequest && manyTypes?.reason.contains("at most 500") == true)
        let field = #"{"recordType":"T","fields":{"new":{"value":1}}}"#
        #expect(try extended(schema(types: 1, fields: 999), field)?.types[0].fields.count == 1000)
        #expect(try extended(schema(types: 1, fields: 1000), field) == nil)
        let manyFields = try refusal(field, in: schema(types: 1, fields: 1000), .development)
        #expect(manyFields?.code == .badRequest && manyFields?.reason.contains("at most 1000") == true)
    }

    @Test("at 1 MiB of a schema nothing is added, and the error says so")
    func size() throws {
        var schema = Schema()
        for number in 0..<40 {
            let fields = (0..<100).map {
                FieldDefinition(name: "f\($0)" + String(repeating: "x", count: 245), type: FieldType(.int64))
            }
            schema.types.append(RecordType(name: "T\(10 + number)", fields: fields))
        }
        let room = Limits.schemaBytesMax - schema.encodedSize
        // What a new type takes with its grants and its record id.
        let name = "N" + String(repeating: "x", count: 200)
        let record = #"{"recordType":"\#(name)"}"#
        let needed = try #require(try extended(schema, record)).encodedSize - schema.encodedSize
        let filler = String(repeating: "y", count: 1_000)
        // Roles have no limit here, so they fill the schema to the byte: 3 bytes besides their name.
        schema.roles = (0..<((room - needed) / 1_003)).map { _ in filler }
        let rest = Limits.schemaBytesMax - needed - schema.encodedSize
        schema.roles.append(String(repeating: "z", count: rest - 3))
        #expect(schema.encodedSize + needed == Limits.schemaBytesMax)
        #expect(try extended(schema, record)?.encodedSize == Limits.schemaBytesMax)
        schema.roles.append("")
        #expect(try extended(schema, record) == nil)
        let refusal = try refusal(record, in: schema, .development)
        #expect(refusal?.code == .badRequest)
        #expect(refusal?.reason.contains("it would have 1048578 bytes, at most 1048576") == true)
    }

    @Test("operations of one request add together what there is room for, and the rest adds nothing")
    func sizeOfSeveral() throws {
        let field = "f" + String(repeating: "x", count: 250)
        let records = ["A", "B", "C"].map { #"{"recordType":"\#($0)","fields":{"\#(field)":{"value":1}}}"# }
        let two = try #require(try extended(Schema(), records[0], records[1]))
        let room = String(repeating: "z", count: Limits.schemaBytesMax - two.encodedSize - 5)
        let schema = Schema(roles: [room])
        let grown = try #require(try extended(schema, records[0], records[1], records[2]))
        #expect(grown.types == two.types && grown.encodedSize <= Limits.schemaBytesMax)
        #expect(grown.encodedSize > Limits.schemaBytesMax - 5)
        // What one operation adds to a type leaves less for another.
        let more = #"{"recordType":"A","fields":{"more":{"value":1}}}"#
        #expect(try extended(schema, records[0], more, records[1])?.types.map(\.name) == ["A"])
    }

    @Test("where the bytes of a schema are known, they are believed")
    func knownSize() throws {
        let operation = try #require(try operations(#"{"recordType":"New"}"#).first)
        let full = RecordOperation.Place(
            container: "c", environment: .development, scope: .private, zone: ZoneID(),
            schemaBytes: Limits.schemaBytesMax)
        let error = #expect(throws: ServiceError.self) { try operation.values(in: Schema(), at: full) }
        #expect(error?.code == .badRequest && error?.reason.contains("it would have") == true)
    }

    @Test("the size of a schema is that of its encoding")
    func encodedSize() throws {
        var numbers = SeededNumbers(state: 7)
        for _ in 0..<50 {
            let types = (0..<numbers.below(8)).map { _ in
                RecordType(
                    name: numbers.text(),
                    fields: (0..<numbers.below(40)).map { _ in
                        var type = FieldType(ScalarType.allCases[numbers.below(ScalarType.allCases.count)])
                        type.isList = numbers.below(2) == 0
                        type.isEncrypted = numbers.below(2) == 0
                        type.preferred = numbers.below(2) == 0 ? .int64 : nil
                        return FieldDefinition(
                            name: String(repeating: "n", count: numbers.below(300)), type: type,
                            indexes: IndexOptions(rawValue: UInt8(numbers.below(256))))
                    },
                    grants: (0..<numbers.below(4)).map { _ in
                        Grant(role: numbers.text(), permissions: Permissions(rawValue: UInt8(numbers.below(256))))
                    })
            }
            let schema = Schema(roles: (0..<numbers.below(5)).map { _ in numbers.text() }, types: types)
            #expect(schema.encodedSize == schema.encoded().count)
        }
    }

    @Test("what grew is said by name, and where saves may add nothing the refusal says who may")
    func growth() throws {
        let schema = try SchemaParser.parse("DEFINE SCHEMA RECORD TYPE T (a STRING);")
        let record = #"{"recordType":"T","fields":{"b":{"value":1},"a":{"value":"x"}}}"#
        let next = try #require(try extended(schema, record, #"{"recordType":"New","fields":{"x":{"value":1}}}"#))
        #expect(SchemaExtension.additions(to: schema, in: next) == "New, T.b")
        #expect(SchemaExtension.additions(to: next, in: next).isEmpty)
        let operation = try #require(try operations(record).first)
        let closed = RecordOperation.Place(
            container: "c", environment: .development, scope: .private, zone: ZoneID(), schemaGrows: false)
        let error = #expect(throws: ServiceError.self) { try operation.values(in: schema, at: closed) }
        #expect(error?.code == .badRequest)
        #expect(error?.reason.hasPrefix("Cannot create new field 'b' of type T in development schema") == true)
        #expect(error?.reason.contains("schemaGrowthsPerMinute") == true)
    }

    @Test("production refuses with CloudKit's words; development asks for the extension, or says what is wrong")
    func refusals() throws {
        let schema = try SchemaParser.parse("DEFINE SCHEMA RECORD TYPE T (a STRING);")
        let type = #"{"recordType":"New","fields":{"x":{"value":1}}}"#
        let field = #"{"recordType":"T","fields":{"x":{"value":1}}}"#
        let newType = try refusal(type, in: schema, .production)
        #expect(newType?.reason.hasPrefix("Cannot create new type New in production schema") == true)
        #expect(newType?.reason.contains("zonekeeper schema deploy --container iCloud.a") == true)
        let newField = try refusal(field, in: schema, .production)
        #expect(newField?.reason.hasPrefix("Cannot create new field 'x' of type T in production schema") == true)
        #expect(newType?.code == .badRequest && newField?.code == .badRequest)
        #expect(try refusal(type, in: schema, .development)?.code == .tryAgainLater)
        #expect(try refusal(field, in: schema, .development)?.code == .tryAgainLater)
        let bad = try refusal(#"{"recordType":"T","fields":{"x":{"value":{}}}}"#, in: schema, .development)
        #expect(bad?.code == .badRequest && bad?.reason.hasPrefix("fields.x.value: ") == true)
        for environment in Environment.allCases {
            let tagged = #"{"recordType":"New","recordName":"r","recordChangeTag":"1.1"}"#
            let unknown = try refusal(tagged, in: schema, kind: "update", environment)
            #expect(unknown?.code == .badRequest && unknown?.reason.hasPrefix("record type not found: New") == true)
            #expect(try refusal(#"{"recordType":"T","fields":{"x":null,"a":null}}"#, in: schema, environment) == nil)
        }
    }

    @Test("values come in the operation's order, with the parent, what is cleared, and what is encrypted")
    func values() throws {
        let schema = try SchemaParser.parse("DEFINE SCHEMA RECORD TYPE T (a STRING, b INT64, c ENCRYPTED STRING);")
        let record = #"""
            {"recordType":"T","recordName":"r","parent":{"recordName":"p","zoneID":{"zoneName":"_defaultZone"}},
            "fields":{"c":{"value":"x"},"b":{"value":"7"},"a":null,"gone":{"value":null}}}
            """#
        let operation = try #require(try operations(record).first)
        let values = try operation.values(in: schema, at: place())
        #expect(
            values == [
                .init(name: "c", value: .encrypted(.string("x"))), .init(name: "b", value: .int64(7)),
                .init(name: "a", value: nil), .init(name: "___parent", value: .reference(Reference(recordName: "p"))),
            ])
        #expect(throws: ServiceError.self) { try operation.values(in: schema, at: place(.development, .public)) }
        let cleared = #"{"recordType":"T","fields":{"c":null},"parent":null}"#
        let clearing = try #require(try operations(cleared).first)
        #expect(
            try clearing.values(in: schema, at: place(.production, .public)) == [
                .init(name: "c", value: nil), .init(name: "___parent", value: nil),
            ])
    }

    @Test("without a record type only the parent can be set")
    func noType() throws {
        let tagged = #"{"recordName":"r","recordChangeTag":"1.1","parent":{"recordName":"p"}}"#
        let operation = try #require(try operations(tagged, kind: "update").first)
        #expect(try operation.values(in: Schema(), at: place()).map(\.name) == ["___parent"])
        let fields = #"{"recordName":"r","recordChangeTag":"1.1","fields":{"a":{"value":1}}}"#
        #expect(
            try refusal(fields, in: Schema(), kind: "update", .development)?.reason.hasPrefix("recordType is missing")
                == true)
        let elsewhere = #"{"recordType":"T","parent":{"recordName":"p","zoneID":{"zoneName":"Z"}}}"#
        let schema = Schema(types: [RecordType(name: "T")])
        #expect(
            try refusal(elsewhere, in: schema, .production)?.reason.hasPrefix("parent.zoneID: 'Z' is another zone")
                == true)
    }
}
