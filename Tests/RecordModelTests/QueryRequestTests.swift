import Testing

@testable import RecordModel

@Suite("Requests to records/query")
struct QueryRequestTests {
    private let type = RecordType(
        name: "Note",
        fields: [
            FieldDefinition(name: "title", type: FieldType(.string), indexes: [.queryable, .sortable]),
            FieldDefinition(name: "count", type: FieldType(.int64), indexes: .queryable),
            FieldDefinition(name: "rank", type: FieldType(.double), indexes: .sortable),
            FieldDefinition(name: "due", type: FieldType(.timestamp), indexes: [.queryable, .sortable]),
            FieldDefinition(name: "data", type: FieldType(.bytes), indexes: .queryable),
            FieldDefinition(name: "owner", type: FieldType(.reference), indexes: .queryable),
            FieldDefinition(name: "place", type: FieldType(.location), indexes: [.queryable, .sortable]),
            FieldDefinition(name: "tags", type: FieldType(.string, isList: true), indexes: .queryable),
            FieldDefinition(name: "open", type: FieldType(.number), indexes: .queryable),
            FieldDefinition(name: "places", type: FieldType(.location, isList: true), indexes: .queryable),
            FieldDefinition(name: "files", type: FieldType(.asset, isList: true)),
            FieldDefinition(name: "numbers", type: FieldType(.int64, isList: true), indexes: .queryable),
            FieldDefinition(name: "secret", type: FieldType(.string, isEncrypted: true)),
            FieldDefinition(name: "plain", type: FieldType(.string)),
            FieldDefinition(name: "___recordID", type: FieldType(.reference), indexes: .queryable),
            FieldDefinition(name: "___modTime", type: FieldType(.timestamp), indexes: .sortable),
        ])

    private func request(filters: String = "", sorts: String = "", more: String = "") throws(ServiceError)
        -> QueryRecordsRequest
    {
        let query = "{\"recordType\":\"Note\",\"filterBy\":[\(filters)],\"sortBy\":[\(sorts)]}"
        return try QueryRecordsRequest(body: Array("{\"query\":\(query)\(more)}".utf8))
    }

    private func filter(_ field: String, _ comparator: String, _ value: String) throws(ServiceError) -> Filter? {
        let text = "{\"fieldName\":\"\(field)\",\"comparator\":\"\(comparator)\",\"fieldValue\":\(value)}"
        return try request(filters: text).query.resolve(schema: type, container: "iCloud.a").filters.first
    }

    @Test("a whole request is read")
    func whole() throws {
        let request = try request(
            filters: #"{"fieldName":"title","comparator":"BEGINS_WITH","fieldValue":{"value":"a"}}"#,
            sorts: #"{"fieldName":"rank"},{"systemFieldName":"modifiedTimestamp","ascending":false}"#,
            more:
                #","zoneWide":true,"resultsLimit":500,"continuationMarker":"bQ==","desiredKeys":["title"],"#
                + #""numbersAsStrings":true"#
        )
        #expect(request.isZoneWide && request.resultsLimit == 200 && request.continuationMarker == "bQ==")
        #expect(request.desiredKeys == ["title"] && request.numbersAsStrings && request.zoneID == ZoneID())
        let query = Query(
            recordType: "Note", filters: [Filter(field: "title", comparator: .beginsWith, value: .string("a"))],
            sorts: [Sort(field: "rank"), Sort(field: "___modTime", isAscending: false)])
        #expect(try request.query.resolve(schema: type, container: "iCloud.a") == query)
    }

    @Test("what is left out has its default, and a named zone beats zoneWide")
    func defaults() throws {
        let plain = try QueryRecordsRequest(
            body: Array(#"{"query":{"recordType":"Note"},"continuationMarker":""}"#.utf8))
        #expect(
            plain.resultsLimit == 200 && plain.continuationMarker == nil && !plain.isZoneWide
                && plain.desiredKeys == nil)
        #expect(try plain.query.resolve(schema: type, container: "iCloud.a") == Query(recordType: "Note"))
        let zone = try request(more: #","zoneWide":true,"zoneID":{"zoneName":"Notes"}"#)
        #expect(!zone.isZoneWide && zone.zoneID == ZoneID(name: "Notes"))
    }

    @Test(
        "faults are named by their path",
        arguments: [
            (#"{}"#, "query: is missing"), (#"{"query":{}}"#, "query.recordType: is missing"),
            (#"{"query":{"recordType":"a b"}}"#, "query.recordType: 'a b' is no name here"),
            (#"{"query":{"recordType":"T"},"resultsLimit":0}"#, "resultsLimit: expected 1 to 200, found 0"),
            (#"{"query":{"recordType":"T"},"resultsLimit":1.5}"#, "resultsLimit: expected a whole number"),
            (
                #"{"query":{"recordType":"T","filterBy":[{"comparator":"LIKE"}]}}"#,
                "query.filterBy[0].comparator: expected a comparator"
            ),
            (
                #"{"query":{"recordType":"T","filterBy":[{"comparator":"EQUALS"}]}}"#,
                "query.filterBy[0].fieldName: is missing"
            ),
            (
                #"{"query":{"recordType":"T","filterBy":[{"comparator":"EQUALS","fieldName":"a"}]}}"#,
                "query.filterBy[0].fieldValue: is missing"
            ),
            (
                #"{"query":{"recordType":"T","sortBy":[{"fieldName":"a","systemFieldName":"share"}]}}"#,
                "query.sortBy[0].fieldName: is given"
            ),
            (
                #"{"query":{"recordType":"T","sortBy":[{"systemFieldName":"x"}]}}"#,
                "query.sortBy[0].systemFieldName: expected one of"
            ),
            (
                #"{"query":{"recordType":"T","sortBy":[{"fieldName":"a","relativeLocation":{"value":{}}}]}}"#,
                "query.sortBy[0].relativeLocation.value.latitude: is missing"
            ),
        ])
    func paths(body: String, expected: String) {
        #expect(reason { try QueryRecordsRequest(body: Array(body.utf8)) }?.hasPrefix(expected) == true)
    }

    @Test("filters and sort keys are bounded")
    func bounds() {
        let sort = #"{"fieldName":"title"}"#
        let sorts = Array(repeating: sort, count: Limits.sortsMax + 1).joined(separator: ",")
        #expect(reason { try request(sorts: sorts) }?.hasPrefix("query.sortBy: 9 given, at most 8") == true)
        let filter = #"{"fieldName":"title","comparator":"EQUALS","fieldValue":{"value":"a"}}"#
        let filters = Array(repeating: filter, count: Limits.filtersMax + 1).joined(separator: ",")
        #expect(reason { try request(filters: filters) }?.hasPrefix("query.filterBy: 33 given, at most 32") == true)
        let names = Array(repeating: #""a""#, count: Limits.inListMax + 1).joined(separator: ",")
        #expect(
            reason { try self.filter("title", "IN", "{\"value\":[\(names)]}") }?.contains(
                "251 members given, at most 250") == true)
    }

    @Test(
        "values take the field's type",
        arguments: [
            ("title", "EQUALS", #"{"value":"a","type":"STRING"}"#, FieldValue.string("a")),
            ("count", "NOT_EQUALS", #"{"value":"5"}"#, .int64(5)), ("rank", "LESS_THAN", #"{"value":5}"#, .double(5)),
            ("due", "GREATER_THAN_OR_EQUALS", #"{"value":7}"#, .timestamp(7)),
            ("data", "EQUALS", #"{"value":"Zg=="}"#, .bytes([102])),
            ("owner", "EQUALS", #"{"value":{"recordName":"o"}}"#, .reference(Reference(recordName: "o"))),
            ("owner", "EQUALS", #"{"value":"o","type":"STRING"}"#, .reference(Reference(recordName: "o"))),
            ("count", "IN", #"{"value":[1,2],"type":"INT64_LIST"}"#, .list(.int64, [.int64(1), .int64(2)])),
            ("count", "NOT_IN", #"{"value":[]}"#, .list(.int64, [])),
            ("open", "EQUALS", #"{"value":1.5}"#, .double(1.5)),
            ("___recordId", "EQUALS", #"{"value":"r","type":"STRING"}"#, .reference(Reference(recordName: "r"))),
            (
                "___recordID", "IN", #"{"value":["r",{"recordName":"s","zoneID":{"zoneName":"Z"}}]}"#,
                .list(.reference, [.reference(Reference(recordName: "r")), .reference(Reference(recordName: "s"))])
            ),
        ])
    func values(field: String, comparator: String, value: String, expected: FieldValue) throws {
        #expect(try filter(field, comparator, value)?.value == expected)
    }

    @Test(
        "comparators are held against the field's type",
        arguments: [
            ("place", "EQUALS"), ("place", "IN"), ("owner", "GREATER_THAN"), ("places", "LIST_CONTAINS"),
            ("files", "LIST_CONTAINS"), ("title", "LIST_CONTAINS"), ("count", "CONTAINS_ALL_TOKENS"),
            ("title", "LIST_MEMBER_BEGINS_WITH"), ("numbers", "LIST_MEMBER_BEGINS_WITH"), ("places", "BEGINS_WITH"),
            ("count", "BEGINS_WITH"),
            ("tags", "EQUALS"), ("tags", "IN"), ("secret", "EQUALS"), ("___etag", "EQUALS"), ("___share", "EQUALS"),
            ("nope", "EQUALS"),
        ])
    func wrongField(field: String, comparator: String) {
        let reason = reason { try filter(field, comparator, #"{"value":"Zg=="}"#) }
        #expect(reason?.hasPrefix("query.filterBy[0]: ") == true)
        #expect(reason?.contains("is not marked") == false)
    }

    @Test(
        "values that do not fit are refused with the filter",
        arguments: [#"{"value":"x"}"#, #"{"value":null}"#, #"{"value":[1]}"#])
    func wrongValue(value: String) {
        #expect(
            reason { try filter("count", "EQUALS", value) }?.contains("query.filterBy[0].fieldValue.value") == true)
    }

    @Test("equality needs a queryable index, ranges and sorting a sortable one")
    func indexes() throws {
        #expect(
            reason { try filter("plain", "EQUALS", #"{"value":"x"}"#) }
                == "Field 'plain' is not marked queryable. query.filterBy[0]: this needs the index QUERYABLE on field "
                + "plain of record type Note; add it with `zonekeeper schema add-index iCloud.a Note plain QUERYABLE`")
        #expect(
            reason { try filter("count", "LESS_THAN", #"{"value":1}"#) }?.contains(
                "Field 'count' is not marked sortable") == true)
        #expect(
            reason { try filter("rank", "IN", #"{"value":[1]}"#) }?.contains("Field 'rank' is not marked queryable")
                == true)
        #expect(
            reason { try filter("___createdBy", "EQUALS", #"{"value":"u"}"#) }?.contains(
                "Field 'createdUserRecordName' is not marked queryable") == true)
        let sort = try request(sorts: #"{"fieldName":"count"}"#).query
        #expect(
            reason { try sort.resolve(schema: type, container: "iCloud.a") }?.hasPrefix(
                "Field 'count' is not marked sortable. query.sortBy[0]: ") == true)
        let unsorted = try request(sorts: #"{"fieldName":"place"}"#).query
        #expect(reason { try unsorted.resolve(schema: type, container: "iCloud.a") }?.contains("has no order") == true)
    }

    @Test("a query for all records needs recordName to be queryable, one with a sort key does not")
    func allRecords() throws {
        let bare = RecordType(
            name: "Note", fields: [FieldDefinition(name: "a", type: FieldType(.string), indexes: .sortable)])
        let all = try request().query
        #expect(
            reason { try all.resolve(schema: bare, container: "iCloud.a") }?.hasPrefix(
                "Field 'recordName' is not marked queryable") == true)
        #expect(
            try request(sorts: #"{"fieldName":"a"}"#).query.resolve(schema: bare, container: "iCloud.a").sorts == [
                Sort(field: "a")
            ])
    }

    @Test("system fields go by either name")
    func systemNames() throws {
        for name in [#""systemFieldName":"recordName""#, #""fieldName":"___recordId""#, #""fieldName":"___recordID""#] {
            let filter = "{\(name),\"comparator\":\"EQUALS\",\"fieldValue\":{\"value\":{\"recordName\":\"r\"}}}"
            let query = try request(filters: filter).query.resolve(schema: type, container: "iCloud.a")
            #expect(
                query.filters == [
                    Filter(field: "___recordID", comparator: .equals, value: .reference(Reference(recordName: "r")))
                ])
        }
    }
}
