import Testing

@testable import RecordModel

@Suite("Schema language: what it accepts")
struct SchemaParserTests {
    /// Parses one type that has these members.
    private func type(_ members: String) throws -> RecordType {
        let schema = try SchemaParser.parse("DEFINE SCHEMA RECORD TYPE T (\(members));")
        return try #require(schema.types.first)
    }

    @Test("A schema may be empty")
    func empty() throws {
        #expect(try SchemaParser.parse("DEFINE SCHEMA") == Schema())
        #expect(try SchemaParser.parse("define schema\r\n") == Schema())
    }

    @Test("Every scalar type, alone and as a list")
    func types() throws {
        for scalar in ScalarType.allCases {
            #expect(try type("f \(scalar.rawValue)").fields == [FieldDefinition(name: "f", type: FieldType(scalar))])
            let list = try type("f LIST<\(scalar.rawValue)>").fields
            #expect(list == [FieldDefinition(name: "f", type: FieldType(scalar, isList: true))])
        }
    }

    @Test("Encrypted types and lists of them")
    func encrypted() throws {
        for scalar in [ScalarType.bytes, .string, .double, .int64, .location, .timestamp] {
            let field = try #require(try type("f ENCRYPTED \(scalar.rawValue)").fields.first)
            #expect(field.type == FieldType(scalar, isEncrypted: true))
        }
        let list = try #require(try type("f LIST < ENCRYPTED STRING >").fields.first)
        #expect(list.type == FieldType(.string, isList: true, isEncrypted: true))
    }

    @Test("A number may prefer a kind")
    func numbers() throws {
        #expect(try type("f NUMBER PREFERRED AS INT64").fields[0].type == FieldType(.number, preferred: .int64))
        #expect(try type("f number preferred as double").fields[0].type == FieldType(.number, preferred: .double))
    }

    @Test("Index options in any order and any case")
    func options() throws {
        for text in ["QUERYABLE SEARCHABLE SORTABLE", "sortable Queryable SEARCHABLE"] {
            #expect(try type("f STRING \(text)").fields[0].indexes == [.queryable, .searchable, .sortable])
        }
        #expect(try type("f LIST<STRING> QUERYABLE SEARCHABLE").fields[0].indexes == [.queryable, .searchable])
        #expect(try type("f BYTES QUERYABLE SORTABLE").fields[0].indexes == [.queryable, .sortable])
        #expect(try type("f LOCATION QUERYABLE SORTABLE").fields[0].indexes == [.queryable, .sortable])
        #expect(try type("f REFERENCE QUERYABLE SORTABLE").fields[0].indexes == [.queryable, .sortable])
    }

    @Test("A quoted name means the same as a bare one, and may be reserved or hold a dot")
    func quoting() throws {
        let bare = try type("title STRING")
        #expect(try type("\"title\" STRING") == bare)
        #expect(try type("\"queryable\" STRING, \"Grant\" INT64").fields.map(\.name) == ["Grant", "queryable"])
        let schema = try SchemaParser.parse("DEFINE SCHEMA RECORD TYPE \"cloudkit.share\" (\"cloudkit.title\" STRING);")
        #expect(schema.type(named: "cloudkit.share")?.field(named: "cloudkit.title") != nil)
    }

    @Test("Keywords that are not reserved may be names")
    func keywordsAsNames() throws {
        let fields = try type("string STRING, list LIST<INT64>, record REFERENCE, TYPE INT64, read INT64, TO STRING")
            .fields
        #expect(fields.map(\.name) == ["TO", "TYPE", "list", "read", "record", "string"])
    }

    @Test("System fields are kept only for their indexes")
    func systemFields() throws {
        let members = "\"___createTime\" TIMESTAMP, \"___recordID\" REFERENCE QUERYABLE, \"___etag\" STRING, a INT64"
        #expect(try type(members).fields.map(\.name) == ["___recordID", "a"])
    }

    @Test("Grants stand anywhere among the fields and add up")
    func grants() throws {
        let members = """
            GRANT READ TO "_world", a INT64, GRANT WRITE TO "_creator", GRANT READ, CREATE TO "_creator", b INT64,
            GRANT READ, READ TO "_creator"
            """
        let parsed = try type(members)
        #expect(parsed.fields.map(\.name) == ["a", "b"])
        #expect(
            parsed.grants == [
                Grant(role: "_creator", permissions: [.read, .create, .write]),
                Grant(role: "_world", permissions: .read),
            ])
    }

    @Test("A role may be created after the type that grants to it")
    func roles() throws {
        let text = "DEFINE SCHEMA RECORD TYPE T (GRANT READ TO moderator, GRANT WRITE TO \"Editor\");"
        let schema = try SchemaParser.parse(text + " CREATE ROLE moderator; CREATE ROLE Editor;")
        #expect(schema.roles == ["Editor", "moderator"])
        #expect(schema.types[0].permissions(of: "Editor") == .write)
    }

    @Test("Comments of all three forms, tabs, CRLF, a byte order mark, a comma too many, no last line feed")
    func layout() throws {
        let text =
            "\u{FEFF}// höher ; \" (\r\n-- two\r\n/* three * / \n \" ** */DEFINE/**/SCHEMA\r\n\r\n"
            + "\tRECORD\tTYPE T (\r\n"
            + "\t\ta INT64, // trailing, with a comma,\r\n\t\tb STRING--)\r\n\t\tQUERYABLE,\r\n\t)/**/;"
        let schema = try SchemaParser.parse(text)
        #expect(schema.types[0].fields.map(\.name) == ["a", "b"])
        #expect(schema.types[0].fields[1].indexes == .queryable)
    }

    @Test("A type without members is a type")
    func noMembers() throws {
        #expect(try type("") == RecordType(name: "T"))
    }

    @Test("Names of 255 characters are the longest")
    func longNames() throws {
        let name = String(repeating: "a", count: 255)
        #expect(try type("\(name) INT64").fields[0].name == name)
        #expect(schemaError("DEFINE SCHEMA RECORD TYPE T (\(name)a INT64);")?.message.contains("256") == true)
        #expect(schemaError("DEFINE SCHEMA RECORD TYPE \(name)a ();")?.message.contains("256") == true)
        #expect(schemaError("DEFINE SCHEMA CREATE ROLE \(name)a;")?.message.contains("256") == true)
    }

    @Test("500 record types and 1,000 fields are taken, one more is not, and its place is said")
    func limits() throws {
        func types(_ count: Int) -> String {
            "DEFINE SCHEMA\n" + (0..<count).map { "RECORD TYPE T\($0) ();\n" }.joined()
        }
        func fields(_ count: Int) -> String {
            let members = ["\"___recordID\" REFERENCE QUERYABLE"] + (0..<count).map { "f\($0) INT64" }
            return "DEFINE SCHEMA RECORD TYPE T (\n\(members.joined(separator: ",\n")));"
        }
        #expect(try SchemaParser.parse(types(499)).types.count == 499)
        #expect(try SchemaParser.parse(types(500)).types.count == 500)
        let manyTypes = schemaError(types(501))
        #expect(manyTypes?.description.hasPrefix("line 502, column 13: a schema has at most 500 record types") == true)
        #expect(try SchemaParser.parse(fields(999)).types[0].fields.count == 1000)
        #expect(try SchemaParser.parse(fields(1000)).types[0].fields.count == 1001)
        let manyFields = schemaError(fields(1001))
        #expect(manyFields?.description.hasPrefix("line 1003, column 1: a record type has at most 1000 fields") == true)
    }

    @Test("A carriage return alone ends a line, also one with a comment")
    func carriageReturns() throws {
        let text = "DEFINE SCHEMA // first\rRECORD TYPE T (\r\ta INT64, -- second\r\tb STRING\r);\r"
        #expect(try SchemaParser.parse(text).types[0].fields.map(\.name) == ["a", "b"])
        let error = schemaError("DEFINE SCHEMA\r\nRECORD TYPE T (\ra WHAT)")
        #expect(error?.line == 3 && error?.column == 3)
    }

    @Test("Dots are for what CloudKit brings, such as cloudkit.share")
    func dots() throws {
        let share = """
            DEFINE SCHEMA RECORD TYPE "cloudkit.share" ("cloudkit.title" STRING, "cloudkit.type" STRING QUERYABLE,
                "cloudkit.thumbnailImageData" BYTES, title STRING, GRANT READ, WRITE TO "_creator");
            """
        let schema = try SchemaParser.parse(share)
        #expect(schema.types[0].fields.count == 4)
        #expect(try SchemaParser.parse(SchemaPrinter.print(schema)) == schema)
        for name in ["a.b", "cloudkit", "cloudkit.", "cloudkit.a-b", ".a"] {
            let isTaken = (try? SchemaParser.parse("DEFINE SCHEMA RECORD TYPE \"\(name)\" ();")) != nil
            #expect(isTaken == (name == "cloudkit"))
        }
    }

    @Test("References may be lists, lists may be encrypted, a reserved word in quotation marks is a name of everything")
    func rareForms() throws {
        let text = """
            DEFINE SCHEMA CREATE ROLE "preferred"; RECORD TYPE "Sortable" ("Grant" LIST<REFERENCE> QUERYABLE,
                "searchable" LIST<ENCRYPTED TIMESTAMP>, n LIST<NUMBER PREFERRED AS DOUBLE>, "___parent" REFERENCE QUERYABLE,
                GRANT CREATE TO "preferred");
            """
        let schema = try SchemaParser.parse(text)
        let type = try #require(schema.type(named: "Sortable"))
        #expect(type.field(named: "Grant")?.type == FieldType(.reference, isList: true))
        #expect(type.field(named: "searchable")?.type == FieldType(.timestamp, isList: true, isEncrypted: true))
        #expect(type.field(named: "n")?.type == FieldType(.number, isList: true, preferred: .double))
        #expect(type.field(named: "___parent")?.indexes == .queryable)
        #expect(type.permissions(of: "preferred") == .create)
        #expect(try SchemaParser.parse(SchemaPrinter.print(schema)) == schema)
    }
}
