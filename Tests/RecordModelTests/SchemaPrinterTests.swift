import Testing

@testable import RecordModel

@Suite("Schema language: what is printed")
struct SchemaPrinterTests {
    @Test("The exporter's order and layout, byte for byte")
    func layout() throws {
        let text = """
            define schema
            RECORD TYPE note ( title STRING SORTABLE SEARCHABLE QUERYABLE, "grant" INT64,
                CD_x LIST<ENCRYPTED BYTES>, n NUMBER PREFERRED AS INT64, "___recordID" REFERENCE QUERYABLE,
                GRANT WRITE, READ TO moderator, GRANT READ TO "_world", GRANT CREATE TO "_icloud",
                GRANT READ TO "_creator", GRANT WRITE TO "_creator", );
            RECORD TYPE "cloudkit.share" ( "cloudkit.title" STRING );
            RECORD TYPE Zoo ();
            CREATE ROLE moderator; CREATE ROLE Admin;
            """
        let wanted = """
            DEFINE SCHEMA

                CREATE ROLE Admin;
                CREATE ROLE moderator;

                RECORD TYPE Zoo (
                    "___createTime" TIMESTAMP,
                    "___createdBy"  REFERENCE,
                    "___etag"       STRING,
                    "___modTime"    TIMESTAMP,
                    "___modifiedBy" REFERENCE,
                    "___recordID"   REFERENCE
                );

                RECORD TYPE "cloudkit.share" (
                    "___createTime"  TIMESTAMP,
                    "___createdBy"   REFERENCE,
                    "___etag"        STRING,
                    "___modTime"     TIMESTAMP,
                    "___modifiedBy"  REFERENCE,
                    "___recordID"    REFERENCE,
                    "cloudkit.title" STRING
                );

                RECORD TYPE note (
                    CD_x            LIST<ENCRYPTED BYTES>,
                    "___createTime" TIMESTAMP,
                    "___createdBy"  REFERENCE,
                    "___etag"       STRING,
                    "___modTime"    TIMESTAMP,
                    "___modifiedBy" REFERENCE,
                    "___recordID"   REFERENCE QUERYABLE,
                    "grant"         INT64,
                    n               NUMBER PREFERRED AS INT64,
                    title           STRING QUERYABLE SEARCHABLE SORTABLE,
                    GRANT READ, WRITE TO "_creator",
                    GRANT CREATE TO "_icloud",
                    GRANT READ TO "_world",
                    GRANT READ, WRITE TO moderator
                );

            """
        #expect(SchemaPrinter.print(try SchemaParser.parse(text)) == wanted)
    }

    @Test("An empty schema is its first line")
    func empty() {
        #expect(SchemaPrinter.print(Schema()) == "DEFINE SCHEMA\n")
    }

    @Test("Whatever is printed reads back as the same schema, and prints as the same bytes")
    func roundTrip() throws {
        for seed in 0..<300 {
            var random = SchemaRandom(seed: UInt64(seed))
            let schema = RandomSchema.make(using: &random)
            let text = SchemaPrinter.print(schema)
            let parsed = try SchemaParser.parse(text)
            #expect(parsed == schema.normalized, "seed \(seed)")
            #expect(SchemaPrinter.print(parsed) == text, "seed \(seed)")
        }
    }

    @Test("The order of a schema's parts does not show")
    func order() throws {
        for seed in 0..<50 {
            var random = SchemaRandom(seed: UInt64(seed))
            let schema = RandomSchema.make(using: &random)
            var shuffled = schema
            shuffled.roles.shuffle(using: &random)
            shuffled.types.shuffle(using: &random)
            for index in shuffled.types.indices {
                shuffled.types[index].fields.shuffle(using: &random)
                shuffled.types[index].grants.shuffle(using: &random)
            }
            #expect(SchemaPrinter.print(shuffled) == SchemaPrinter.print(schema), "seed \(seed)")
        }
    }
}
