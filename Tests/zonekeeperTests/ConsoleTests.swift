import RecordModel
import Testing

@testable import zonekeeper

@Suite("What commands print")
struct ConsoleTests {
    @Test("Columns are as wide as their widest cell, and lines do not end in spaces")
    func tables() {
        var table = Table("A", "LONG", "C")
        table.add(["xx", "y", "z"])
        table.add(["", "yyyyy\nq", ""])
        #expect(table.text == "A   LONG     C\nxx  y        z\n    yyyyy q")
    }

    @Test("Records of different fields share one table")
    func records() throws {
        let records = try JSONParser.parse(
            Array(
                """
                [{"recordName":"a","fields":{"at":{"value":{"latitude":1.5,"longitude":2},"type":"LOCATION"}}},
                 {"recordName":"b","fields":{"when":{"value":1000,"type":"TIMESTAMP"},"tags":{"value":["x","y"]}}}]
                """.utf8)
        ).array
        #expect(
            RecordTable.table(records ?? []) == """
                RECORD NAME  at     tags  when
                a            1.5,2
                b                   x, y  1970-01-01T00:00:01Z
                """)
    }

    @Test("Property lists are shown without the types of their members")
    func preferences() throws {
        let json = try JSONParser.parse(
            Array(
                #"[{"value":1,"type":"INT64"},{"value":{"a":{"value":"x","type":"STRING"}},"type":"DICTIONARY"}]"#.utf8)
        )
        #expect(json.simplified.plainText == #"[1,{"a":"x"}]"#)
    }

    @Test("Times are read as milliseconds or ISO 8601")
    func times() {
        #expect(Times.milliseconds("1500") == 1_500)
        #expect(Times.milliseconds("1970-01-01T00:00:01.5Z") == 1_500)
        #expect(Times.milliseconds("1970-01-01T01:00:00+01:00") == 0)
        #expect(Times.milliseconds("yesterday") == nil)
        #expect(Times.text(1_000) == "1970-01-01T00:00:01Z")
    }

    @Test("A node's state follows from its answer, its process and where it is")
    func states() {
        #expect(NodeStatus.state(health: .ready, isRunning: false, isLocal: true) == .ready)
        #expect(NodeStatus.state(health: .notReady, isRunning: true, isLocal: true) == .starting)
        #expect(NodeStatus.state(health: .refused, isRunning: true, isLocal: true) == .starting)
        #expect(NodeStatus.state(health: .refused, isRunning: false, isLocal: true) == .stopped)
        #expect(NodeStatus.state(health: .refused, isRunning: false, isLocal: false) == .unreachable)
        #expect(NodeStatus.state(health: .silent, isRunning: true, isLocal: true) == .unreachable)
    }
}
