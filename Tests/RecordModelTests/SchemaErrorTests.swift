import Testing

@testable import RecordModel

@Suite("Schema language: what it refuses")
struct SchemaErrorTests {
    /// Members of a type, and a part of the message that must come.
    private static let wrongMembers: [(text: String, message: String)] = [
        ("a INT64, a STRING", "the field 'a' twice"),
        ("a INT64, \"a\" STRING", "the field 'a' twice"),
        ("\"___recordID\" STRING", "has the type REFERENCE"),
        ("\"___createTime\" LIST<TIMESTAMP>", "has the type TIMESTAMP"),
        ("\"___custom\" STRING", "begins with an underscore"),
        ("___recordID REFERENCE", "write \"___recordID\""),
        ("\"_a\" STRING", "begins with an underscore"),
        ("a ASSET QUERYABLE", "ASSET cannot have an index"),
        ("a LIST<ASSET> QUERYABLE", "ASSET cannot have an index"),
        ("a ENCRYPTED STRING SORTABLE", "ENCRYPTED field cannot have an index"),
        ("a INT64 SEARCHABLE", "remove SEARCHABLE"),
        ("a LIST<STRING> SORTABLE", "remove SORTABLE"),
        ("a STRING QUERYABLE QUERYABLE", "QUERYABLE twice"),
        ("a ENCRYPTED ASSET", "always encrypted"),
        ("a ENCRYPTED REFERENCE", "remove ENCRYPTED"),
        ("a ENCRYPTED NUMBER", "ENCRYPTED INT64"),
        ("a LIST<LIST<STRING>>", "a list of lists"),
        ("a STRING PREFERRED AS INT64", "only NUMBER"),
        ("a NUMBER PREFERRED AS STRING", "INT64 or DOUBLE"),
        ("a NUMBER PREFERRED INT64", "expected AS"),
        ("a TEXT", "found 'TEXT'"),
        ("a", "expected the type"),
        ("a LIST STRING", "expected '<'"),
        ("a LIST<STRING", "expected '>'"),
        ("a STRING INDEXED", "expected QUERYABLE"),
        ("a STRING b STRING", "expected QUERYABLE"),
        ("queryable STRING", "reserved word"),
        ("grant STRING", "expected READ, CREATE or WRITE"),
        ("\"a b\" STRING", "cannot have"),
        ("\"a\\b\" STRING", "backslash"),
        ("\"\" STRING", "is empty"),
        ("\"ä\" STRING", "does not begin with a letter"),
        ("9a STRING", "does not begin with a letter"),
        ("\"a STRING\n", "closing quotation mark"),
        ("a-b STRING", "'-' has no meaning"),
        ("ä STRING", "'ä' has no meaning"),
        ("GRANT DELETE TO \"_world\"", "expected READ, CREATE or WRITE"),
        ("GRANT READ, TO \"_world\"", "expected READ, CREATE or WRITE"),
        ("GRANT READ \"_world\"", "expected TO"),
        ("GRANT READ TO editors", "no role 'editors'"),
        ("GRANT READ TO _world", "write \"_world\""),
        (", a INT64", "expected the name of a field"),
    ]

    @Test("Wrong members are named, with what to do", arguments: SchemaErrorTests.wrongMembers.indices)
    func members(index: Int) {
        let (text, message) = Self.wrongMembers[index]
        let error = schemaError("DEFINE SCHEMA\nRECORD TYPE T (\(text));")
        #expect(error?.message.contains(message) == true, "\(text): \(String(describing: error))")
        #expect(error?.line == 2)
    }

    private static let wrongTexts: [(text: String, message: String)] = [
        ("", "begins with DEFINE SCHEMA"),
        ("RECORD TYPE T ();", "begins with DEFINE SCHEMA"),
        ("DEFINE RECORD", "expected SCHEMA"),
        ("DEFINE SCHEMA RECORD T ();", "expected TYPE"),
        ("DEFINE SCHEMA RECORD TYPE T (a INT64)", "expected ';' after record type 'T', found the end"),
        ("DEFINE SCHEMA RECORD TYPE T (a INT64", "expected ',' or ')'"),
        ("DEFINE SCHEMA RECORD TYPE T;", "expected '('"),
        ("DEFINE SCHEMA RECORD TYPE T (); RECORD TYPE \"T\" ();", "defined twice"),
        ("DEFINE SCHEMA RECORD TYPE _T ();", "write \"_T\""),
        ("DEFINE SCHEMA RECORD TYPE \"_T\" ();", "begins with an underscore"),
        ("DEFINE SCHEMA CREATE ROLE a; CREATE ROLE a;", "created twice"),
        ("DEFINE SCHEMA CREATE ROLE \"_world\";", "every container has the role"),
        ("DEFINE SCHEMA CREATE ROLE \"a.b\";", "cannot have"),
        ("DEFINE SCHEMA CREATE a;", "expected ROLE"),
        ("DEFINE SCHEMA CREATE ROLE a", "expected ';'"),
        ("DEFINE SCHEMA DROP ROLE a;", "expected CREATE ROLE or RECORD TYPE"),
        ("DEFINE SCHEMA ;", "expected CREATE ROLE or RECORD TYPE"),
        ("DEFINE SCHEMA /* a", "comment has no end"),
        ("DEFINE SCHEMA /* a *", "comment has no end"),
        ("DEFINE SCHEMA \u{0}", "control character 0"),
    ]

    @Test("Wrong texts are named, with what to do", arguments: SchemaErrorTests.wrongTexts.indices)
    func texts(index: Int) {
        let (text, message) = Self.wrongTexts[index]
        let error = schemaError(text)
        #expect(error?.message.contains(message) == true, "\(text): \(String(describing: error))")
    }

    @Test("An error says line and column of what is wrong, counted in scalars")
    func place() {
        let error = schemaError("DEFINE SCHEMA\r\n/* ä\nö */ RECORD TYPE T (\n\ta INT64,\n\tb FLOAT\n);")
        #expect(error?.line == 5)
        #expect(error?.column == 4)
        #expect(error?.description.hasPrefix("line 5, column 4: expected the type of field 'b'") == true)
        let same = schemaError("DEFINE SCHEMA /* äö€😀 */ §")
        #expect(same?.line == 1)
        #expect(same?.column == 26)
    }
}
