import RecordModel
import Testing
import WebServices

@Suite("Lists as files")
struct ListExportTests {
    private static func written(
        _ kind: ListExport.Kind, as format: ListExport.Format = .csv, _ pages: String...
    ) throws -> String {
        var export = ListExport(kind, as: format)
        var bytes = export.head
        for page in pages { bytes += export.page(try JSONParser.parse(Array(page.utf8))) }
        return String(decoding: bytes + export.end(), as: UTF8.self)
    }

    private static let record = """
        {"sequence": 7, "time": 1582979415125, "actor": "=HYPERLINK(1)", "action": "user.create", \
        "subject": "user a, b", "outcome": "done", "requestID": "r", "address": "::1", "count": 1, \
        "previousHash": "00", "hash": "01"}
        """

    @Test("a table has the columns of the list, and no cell that a spreadsheet takes for a formula")
    func audit() throws {
        let page = #"{"records": [\#(Self.record)], "moreComing": true, "cursor": 7}"#
        #expect(
            try Self.written(.audit, page, #"{"records": [], "moreComing": false}"#)
                == "sequence,time,actor,action,subject,outcome,requestID,address,count,previousHash,hash\r\n"
                + #"7,2020-02-29T12:30:15.125Z,'=HYPERLINK(1),user.create,"user a, b",done,r,::1,1,00,01"# + "\r\n")
    }

    @Test("on lines each entry is JSON with the members of the table, and numbers stay numbers")
    func lines() throws {
        let page = #"{"records": [\#(Self.record), \#(Self.record)]}"#
        let lines = try Self.written(.audit, as: .lines, page).split(separator: "\n")
        let record = try JSONParser.parse(Array(Self.record.utf8))
        #expect(try lines.map { try JSONParser.parse(Array($0.utf8)) } == [record, record])
    }

    /// Parts of two users' databases, the first over two pages.
    private static let usage = [
        """
        {"container": "c", "environment": "production", "databases": [{"environment": "production", \
        "scope": "private", "user": "ada", "userRecordName": "_a", "bytes": 30, "records": 3, "assetBytes": 0, \
        "zones": [{"name": "one", "bytes": 10, "records": 1, "assetBytes": 0}], \
        "types": [{"name": "Note", "records": 1, "bytes": 4}]}], "next": "private/_a/one"}
        """,
        """
        {"container": "c", "environment": "production", "databases": [{"environment": "production", \
        "scope": "private", "user": "ada", "userRecordName": "_a", "bytes": 31, "records": 3, "assetBytes": 0, \
        "zones": [{"name": "two", "bytes": 20, "records": 2, "assetBytes": 0}], \
        "types": [{"name": "Task", "records": 1, "bytes": 5}, {"name": "Note", "records": 1, "bytes": 6}]}, \
        {"environment": "production", "scope": "private", "userRecordName": "_b", "bytes": 1, "records": 1, \
        "assetBytes": 0, "zones": [], "types": [{"name": "Note", "records": 1, "bytes": 1}]}]}
        """,
    ]

    @Test("a database that comes in parts is one line, and each of its zones another")
    func databases() throws {
        #expect(
            try Self.written(.databases, Self.usage[0], Self.usage[1]).split(separator: "\r\n").dropFirst() == [
                "production,private,ada,_a,3,30,0,,,,,", "production,private,,_b,1,1,0,,,,,",
            ])
        #expect(
            try Self.written(.zones, Self.usage[0], Self.usage[1]) == "environment,scope,user,userRecordName,name,"
                + "records,bytes,assetBytes\r\nproduction,private,ada,_a,one,1,10,0\r\n"
                + "production,private,ada,_a,two,2,20,0\r\n")
    }

    @Test("types are added up over the parts of a database, by name")
    func types() throws {
        #expect(
            try Self.written(.types, Self.usage[0], Self.usage[1]).split(separator: "\r\n").dropFirst() == [
                "production,private,ada,_a,Note,2,10", "production,private,ada,_a,Task,1,5",
                "production,private,,_b,Note,1,1",
            ])
    }

    @Test("a day has the environment that its answer is of")
    func days() throws {
        let page = #"{"environment": "development", "days": [{"time": 0, "requests": 2, "errors": 1}]}"#
        #expect(
            try Self.written(.days, as: .lines, page)
                == #"{"environment":"development","time":0,"requests":2,"errors":1}"# + "\n")
        #expect(try Self.written(.days, page).hasSuffix("\r\ndevelopment,1970-01-01T00:00:00.000Z,2,1,,,,,,,,\r\n"))
    }
}
