import RecordModel
import Testing
import Wire

@testable import Service

@Suite("Jobs: what is decided, and how exports are written")
struct JobTests {
    private static let begin: Int64 = 1_790_000_000_000

    private static func job(
        _ number: UInt64, container: String = "c", exports: Bool = false, at time: Int64 = begin
    ) -> Job {
        var job = Job(
            id: JobID(node: 2, uuid: UUIDv7(milliseconds: time, random: (0, number))),
            kind: exports ? .export : .count, container: container, environment: .development, database: .public,
            zone: "_defaultZone", recordType: "Note", filters: 1, by: "administrator maria")
        if exports { job.format = .csv }
        return job
    }

    private static func end(_ job: Job, in table: inout JobTable, at time: Int64 = begin) {
        table.change(job.id) { job in
            job.phase = .done
            job.ended = time
        }
    }

    @Test("an id says which node has the job and when it began, and other texts are no ids")
    func ids() {
        let id = Self.job(7).id
        #expect(JobID(id.text) == id && id.text.hasPrefix("2-"))
        for text in ["", "2", "2-", "x-\(id.uuid.text)", "0-\(id.uuid.text)", id.uuid.text, "2-\(id.uuid.text)0"] {
            #expect(JobID(text) == nil, "\(text)")
        }
    }

    @Test("jobs and questions about them survive their bytes")
    func wire() throws {
        var job = Self.job(1, exports: true)
        job.user = "_u"
        job.phase = .failed
        job.ended = Self.begin + 1
        (job.records, job.left, job.bytes, job.waiting) = (3, 1, 99, "w")
        job.problem = Job.Problem(code: .conflict, reason: "r")
        #expect(try Job(decoding: job.encoded()) == job)
        for inquiry: JobInquiry in [
            .list(container: nil, environment: nil), .list(container: "c", environment: .production), .state(job.id),
            .cancel(job.id), .result(job.id, offset: 7, count: 9),
        ] {
            #expect(try JobInquiry(decoding: inquiry.encoded()) == inquiry)
            #expect(try NodeInquiry(decoding: NodeInquiry.jobs(inquiry).encoded()) == .jobs(inquiry))
        }
        let answer = JobAnswer(started: 5, jobs: [job, Self.job(2)], bytes: [1, 2], problem: job.problem)
        #expect(try JobAnswer(decoding: answer.encoded()) == answer)
    }

    @Test("a container runs two jobs on a node, and a node four; what ends makes room")
    func running() throws {
        var table = JobTable()
        try table.begin(Self.job(1))
        try table.begin(Self.job(2))
        #expect(throws: RequestFailure.self) { try table.begin(Self.job(3)) }
        try table.begin(Self.job(3, container: "d"))
        try table.begin(Self.job(4, container: "d"))
        let failure = #expect(throws: RequestFailure.self) { try table.begin(Self.job(5, container: "e")) }
        #expect(failure?.error.code == .tryAgainLater)
        Self.end(Self.job(1), in: &table)
        try table.begin(Self.job(5, container: "e"))
        #expect(table.jobs.count == 5)
    }

    @Test("four results are kept, each for an hour; a fifth takes the oldest's place; other jobs are kept for a day")
    func results() throws {
        var table = JobTable()
        for number in 0..<4 {
            try table.begin(Self.job(UInt64(number), exports: true))
            Self.end(Self.job(UInt64(number), exports: true), in: &table)
        }
        try table.begin(Self.job(4, exports: true))
        Self.end(Self.job(4, exports: true), in: &table)
        #expect(table[Self.job(0).id] == nil && table[Self.job(1).id] != nil)
        try table.begin(Self.job(9))
        Self.end(Self.job(9), in: &table)
        table.purge(now: Self.begin + JobLimits.resultMilliseconds - 1)
        #expect(table.jobs.count == 5)
        table.purge(now: Self.begin + JobLimits.resultMilliseconds)
        #expect(table.jobs.map(\.kind) == [.count])
        table.purge(now: Self.begin + JobLimits.keptMilliseconds)
        #expect(table.jobs.isEmpty)
    }

    @Test("beyond so many jobs the oldest that has ended is forgotten, and none that runs")
    func kept() throws {
        var table = JobTable()
        try table.begin(Self.job(0))
        for number in 1...UInt64(JobLimits.keptMax) {
            try table.begin(Self.job(number, container: "d"))
            Self.end(Self.job(number, container: "d"), in: &table)
        }
        #expect(table.jobs.count == JobLimits.keptMax)
        #expect(table[Self.job(0).id] != nil && table[Self.job(1, container: "d").id] == nil)
    }

    // MARK: Exports

    private static let type = RecordType(
        name: "Note",
        fields: [
            FieldDefinition(name: "___recordID", type: FieldType(.reference), indexes: .queryable),
            FieldDefinition(name: "at", type: FieldType(.timestamp)),
            FieldDefinition(name: "file", type: FieldType(.asset)),
            FieldDefinition(name: "place", type: FieldType(.location)),
            FieldDefinition(name: "tags", type: FieldType(.string, isList: true)),
            FieldDefinition(name: "text", type: FieldType(.string)),
        ])

    private static func records(_ json: String) throws -> [JSONValue] {
        try #require(try JSONParser.parse(Array(json.utf8)).array)
    }

    private static func written(_ format: Job.Format, _ pages: [String]) throws -> String {
        var text = ExportText(format, of: type)
        var bytes = text.head
        for page in pages { bytes += text.page(try records(page)) }
        return String(decoding: bytes + text.end, as: UTF8.self)
    }

    private static let page = """
        [{"recordName": "a", "recordType": "Note", "fields": {"at": {"value": "1582979415125", "type": "TIMESTAMP"}, \
        "file": {"value": {"fileChecksum": "x", "size": 12, "downloadURL": "https://h/secret"}, "type": "ASSETID"}, \
        "place": {"value": {"latitude": 45.4, "longitude": 12.3}, "type": "LOCATION"}, \
        "tags": {"value": ["wine", "late"], "type": "STRING_LIST"}, \
        "text": {"value": "say \\"hi\\", twice", "type": "STRING"}}}]
        """

    @Test("a table has all columns of the type; cells keep their text")
    func csv() throws {
        let text = try Self.written(.csv, [Self.page, #"[{"recordName": "b", "recordType": "Note", "fields": {}}]"#])
        #expect(
            text == "recordName,at,file,place,tags,text\r\n"
                + #"a,2020-02-29T12:30:15.125Z,12,"45.4,12.3","[""wine"",""late""]","say ""hi"", twice""# + "\r\n"
                + "b,,,,,\r\n")
        #expect(try Self.written(.csv, []) == "recordName,at,file,place,tags,text\r\n")
    }

    @Test(
        "a place or a reference is its JSON object where its short form is not all of it",
        arguments: [
            (#"{"latitude":45.4,"longitude":12.3}"#, "LOCATION", "45.4,12.3"),
            (#"{"latitude":45.4,"longitude":12.3,"altitude":3.5}"#, "LOCATION", nil),
            (#"{"recordName":"a","action":"NONE"}"#, "REFERENCE", "a"),
            (#"{"recordName":"a","action":"DELETE_SELF"}"#, "REFERENCE", nil),
            (#"{"recordName":"{a","action":"NONE"}"#, "REFERENCE", nil),
            (
                #"[{"recordName":"a","action":"NONE"},{"recordName":"b","action":"VALIDATE"}]"#, "REFERENCE_LIST",
                #"["a","{\"recordName\":\"b\",\"action\":\"VALIDATE\"}"]"#
            ),
        ] as [(String, String, String?)])
    func objects(json: String, type: String, cell: String?) throws {
        let value = try JSONParser.parse(Array(json.utf8))
        #expect(ExportText.text(value, type: type) == cell ?? json)
    }

    @Test(
        "no spreadsheet takes a cell for a formula, and each guard can be taken away again",
        arguments: [
            ("=1+1", "'=1+1"), ("'=1", "''=1"), ("@x", "'@x"), ("-x", "'-x"), ("-3", "-3"), ("-3.5", "-3.5"),
            ("+3", "'+3"), ("-3.", "'-3."), ("'a", "'a"), ("plain", "plain"), ("a\nb", "\"a\nb\""), ("", ""),
        ])
    func formulas(text: String, cell: String) { #expect(ExportText.quoted(text) == cell) }

    @Test("times before 1970 have their milliseconds, and those no calendar has stay numbers")
    func times() {
        func text(_ milliseconds: String) -> String { ExportText.text(.string(milliseconds), type: "TIMESTAMP") }
        #expect(text("-1") == "1969-12-31T23:59:59.999Z" && text("0") == "1970-01-01T00:00:00.000Z")
        #expect(text("253402300799999") == "9999-12-31T23:59:59.999Z" && text("253402300800000") == "253402300800000")
    }

    @Test("an array is whole JSON over pages, lines are one record each, and no file's URL is in them")
    func json() throws {
        let pages = [Self.page, "[]", Self.page]
        let array = try Self.records(try Self.written(.json, pages))
        #expect(array.count == 2 && array[0] == array[1])
        #expect(
            array[0]["fields"]?["file"]?["value"]
                == .object([.init("fileChecksum", .string("x")), .init("size", .integer(12))]))
        let lines = try Self.written(.lines, pages).split(separator: "\n")
        #expect(lines.count == 2)
        #expect(try JSONParser.parse(Array(lines[1].utf8)) == array[1])
        #expect(try Self.records(try Self.written(.json, [])) == [])
    }
}
