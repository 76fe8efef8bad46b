import ArgumentParser
import RecordModel
import ServiceClient
import Testing

@testable import zonekeeper

@Suite("Records on the command line")
struct RecordArgumentTests {
    private func json(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8)) }

    @Test(
        "A field is its name, maybe a type, and its value",
        arguments: [
            ("title=Hello", "title", #"{"value":"Hello"}"#),
            ("title=", "title", #"{"value":""}"#),
            ("url=https://a/?b=c", "url", #"{"value":"https://a/?b=c"}"#),
            ("count:INT64=-3", "count", #"{"value":-3,"type":"INT64"}"#),
            ("big:INT64=9223372036854775807", "big", #"{"value":9223372036854775807,"type":"INT64"}"#),
            ("size:double=1", "size", #"{"value":1,"type":"DOUBLE"}"#),
            ("made:TIMESTAMP=1970-01-01T00:00:01Z", "made", #"{"value":1000,"type":"TIMESTAMP"}"#),
            ("made:TIMESTAMP=-5", "made", #"{"value":-5,"type":"TIMESTAMP"}"#),
            ("data:BYTES=AQI=", "data", #"{"value":"AQI=","type":"BYTES"}"#),
            ("at:LOCATION=42.5,-1.25", "at", #"{"value":{"latitude":42.5,"longitude":-1.25},"type":"LOCATION"}"#),
            ("tags:STRING_LIST=a,b", "tags", #"{"value":["a","b"],"type":"STRING_LIST"}"#),
            ("counts:INT64_LIST=", "counts", #"{"value":[],"type":"INT64_LIST"}"#),
            ("of:REFERENCE=other", "of", #"{"value":{"recordName":"other","action":"NONE"},"type":"REFERENCE"}"#),
            ("of:DELETE_SELF=a,b", "of", #"{"value":{"recordName":"a,b","action":"DELETE_SELF"},"type":"REFERENCE"}"#),
            ("of:validate=x", "of", #"{"value":{"recordName":"x","action":"VALIDATE"},"type":"REFERENCE"}"#),
            ("x:JSON=[1,2]", "x", #"{"value":[1,2]}"#),
            (#"x:JSON={"value":1,"type":"DOUBLE"}"#, "x", #"{"value":1,"type":"DOUBLE"}"#),
            ("x:NULL=", "x", "null"),
        ])
    func fields(text: String, name: String, expected: String) throws {
        let field = try FieldArgument(parsing: text)
        #expect(field.name == name)
        #expect(field.json == (try json(expected)))
    }

    @Test("An asset is named by its file, a list of them by several")
    func files() throws {
        let single = try FieldArgument(parsing: "photo:ASSET=@a,b.jpg")
        #expect(single.files == .init(sources: [.file("a,b.jpg")], isList: false))
        let list = try FieldArgument(parsing: "photos:asset_list=@a,record:b/c/photo")
        #expect(list.files == .init(sources: [.file("a"), .record("b/c", field: "photo")], isList: true))
        #expect(list.json == (try json(#"{"type":"ASSETID_LIST"}"#)))
        #expect(try FieldArgument(parsing: "title=@a").files == nil)
    }

    @Test("The bar of a file says how far it is")
    func progress() {
        #expect(AssetProgress.text("a", 0, of: 1_000) == "a  ........................  0%  0 bytes of 1 kB")
        #expect(AssetProgress.text("a", 500, of: 1_000) == "a  ############............  50%  500 bytes of 1 kB")
        #expect(AssetProgress.text("a", 0, of: 0).contains(" 100%"))
    }

    @Test(
        "A field that is none is refused",
        arguments: [
            "title", "=x", ":INT64=1", "count:INT64=1.5", "count:INT64=9223372036854775808", "count:INT=1",
            "at:LOCATION=91,0", "at:LOCATION=1", "made:TIMESTAMP=today", "data:BYTES=A", "x:JSON={", "a:ASSET=x",
            "a:ASSET=@", "a:ASSET=", "a:ASSET_LIST=@x,y", "a:ASSET=record:x", "a:ASSET=record:/x", "a:ASSET=record:x/",
        ])
    func refusedFields(text: String) {
        #expect(throws: ValidationError.self) { try FieldArgument(parsing: text) }
    }

    @Test(
        "A filter is a field, a comparator and a value",
        arguments: [
            ("code = AD", "fieldName", "code", "EQUALS", #""AD""#),
            ("code=AD", "fieldName", "code", "EQUALS", #""AD""#),
            ("code == A D ", "fieldName", "code", "EQUALS", #""A D""#),
            ("n!=3", "fieldName", "n", "NOT_EQUALS", #""3""#),
            ("n <= 3", "fieldName", "n", "LESS_THAN_OR_EQUALS", #""3""#),
            ("n<3", "fieldName", "n", "LESS_THAN", #""3""#),
            ("n >=3", "fieldName", "n", "GREATER_THAN_OR_EQUALS", #""3""#),
            ("n > -3", "fieldName", "n", "GREATER_THAN", #""-3""#),
            ("timeZone begins_with Europe/", "fieldName", "timeZone", "BEGINS_WITH", #""Europe/""#),
            ("code IN AD, FR", "fieldName", "code", "IN", #"["AD","FR"]"#),
            (#"code NOT_IN ["A,B"]"#, "fieldName", "code", "NOT_IN", #"["A,B"]"#),
            (#"code = """#, "fieldName", "code", "EQUALS", #""""#),
            ("recordName = x", "systemFieldName", "recordName", "EQUALS", #""x""#),
            ("parent = x", "systemFieldName", "parent", "EQUALS", #""x""#),
            ("tags LIST_CONTAINS red, blue", "fieldName", "tags", "LIST_CONTAINS", #""red, blue""#),
            ("tags list_contains_all red,blue", "fieldName", "tags", "LIST_CONTAINS_ALL", #"["red","blue"]"#),
            ("tags NOT_LIST_CONTAINS_ANY [1,2]", "fieldName", "tags", "NOT_LIST_CONTAINS_ANY", "[1,2]"),
            ("tags LIST_MEMBER_BEGINS_WITH re", "fieldName", "tags", "LIST_MEMBER_BEGINS_WITH", #""re""#),
            ("text CONTAINS_ALL_TOKENS two words*", "fieldName", "text", "CONTAINS_ALL_TOKENS", #""two words*""#),
            ("___createTime > 5", "fieldName", "___createTime", "GREATER_THAN", #""5""#),
        ])
    func filters(text: String, key: String, field: String, comparator: String, value: String) throws {
        let filter = try FilterArgument(parsing: text).json
        #expect(filter[key] == .string(field))
        #expect(filter["comparator"] == .string(comparator))
        #expect(filter["fieldValue"] == .members(["value": try json(value)]))
    }

    @Test(
        "A filter that is none is refused",
        arguments: [
            "", "code", "= AD", "code =", "code LIKE x", #"code = "x"#, "code ~ 3", "* = 3", "*", "at NEAR 1,2",
            "at NEAR 1,2,0km", "at NEAR 1,2,-5", "at NEAR 91,2,5", "at NEAR 1,2,3,4", "at NEAR 1,2,far", "at NEAR 1",
        ])
    func refusedFilters(text: String) {
        #expect(throws: ValidationError.self) { try FilterArgument(parsing: text) }
    }

    @Test("A sort key with a hyphen is the greatest first")
    func sorts() throws {
        #expect(SortArgument("timeZone").json == (try json(#"{"fieldName":"timeZone","ascending":true}"#)))
        #expect(
            SortArgument("-createdTimestamp").json
                == (try json(#"{"systemFieldName":"createdTimestamp","ascending":false}"#)))
    }

    @Test("A line of an import has plain fields or the protocol's, and maybe a record name")
    func importedLines() throws {
        let line = try json(#"{"recordName":"r","a":"x","b":{"value":1,"type":"DOUBLE"},"c":null,"d":{"latitude":1}}"#)
        let read = try FieldsObject(line)
        #expect(read.recordName == "r" && read.parent == nil)
        #expect(
            read.fields
                == (try json(
                    #"{"a":{"value":"x"},"b":{"value":1,"type":"DOUBLE"},"c":null,"d":{"value":{"latitude":1}}}"#)))
        #expect(throws: CommandFailure.self) { try FieldsObject(.array([])) }
        #expect(throws: CommandFailure.self) { try FieldsObject(.members(["recordName": .integer(1)])) }
    }

    @Test(
        "A preference is written as its type is",
        arguments: [
            (PreferenceType.string, "5", #"{"value":"5","type":"STRING"}"#),
            (.int64, "5", #"{"value":5,"type":"INT64"}"#), (.bool, "true", #"{"value":true,"type":"BOOL"}"#),
            (.timestamp, "7", #"{"value":7,"type":"TIMESTAMP"}"#), (.json, "[5]", #"{"value":[5],"type":"ARRAY"}"#),
            (.json, #"{"a":true}"#, #"{"value":{"a":true},"type":"DICTIONARY"}"#),
        ])
    func preferences(type: PreferenceType, text: String, expected: String) throws {
        #expect(try type.json(text) == json(expected))
    }

    @Test(
        "A lifetime has a unit",
        arguments: [("90s", 90), ("15m", 900), ("12h", 43_200), ("14d", 1_209_600)] as [(String, Int64)])
    func lifetimes(text: String, seconds: Int64) {
        #expect(Lifetime(argument: text)?.seconds == seconds)
        for wrong in ["", "d", "14", "-1d", "0d", "1w", "9223372036854775807d"] {
            #expect(Lifetime(argument: wrong) == nil)
        }
    }
}
