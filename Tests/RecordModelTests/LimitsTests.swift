import Testing

@testable import RecordModel

/// One below each limit and at it a request is taken, one above it is refused (`docs/limits.md`). Limits of the schema
/// are with the parser, the plan and the extension; that of a record's size is with the store.
@Suite("Limits of requests")
struct LimitsTests {
    /// A limit, and a request with a given count of what it limits.
    struct Case: CustomTestStringConvertible, Sendable {
        var name: String
        var limit: Int
        /// What the error says.
        var words: String
        var decode: @Sendable (Int) throws -> Void

        var testDescription: String { name }
    }

    private static func repeated(_ text: String, _ count: Int) -> String {
        Array(repeating: text, count: count).joined(separator: ",")
    }

    private static func read<Request: WebRequest>(_: Request.Type, _ text: String) throws {
        _ = try Request(body: Array(text.utf8))
    }

    private static func operation(_ record: String) -> String {
        "{\"operations\":[{\"operationType\":\"forceUpdate\",\"record\":\(record)}]}"
    }

    private static let type = RecordType(
        name: "T", fields: [FieldDefinition(name: "s", type: FieldType(.string), indexes: [.queryable, .sortable])])

    private static let counts: [Case] = [
        Case(name: "operations of records/modify", limit: 200, words: "operations: 201 given") { count in
            let operation = #"{"operationType":"create","record":{"recordType":"T"}}"#
            try read(ModifyRecordsRequest.self, "{\"operations\":[\(repeated(operation, count))]}")
        },
        Case(name: "records of records/lookup", limit: 200, words: "records: 201 given") { count in
            try read(LookupRecordsRequest.self, "{\"records\":[\(repeated(#"{"recordName":"r"}"#, count))]}")
        },
        Case(name: "zones of zones/lookup", limit: 200, words: "zones: 201 given") { count in
            try read(ZonesLookupRequest.self, "{\"zones\":[\(repeated("{}", count))]}")
        },
        Case(name: "operations of zones/modify", limit: 200, words: "operations: 201 given") { count in
            let operations = (0..<count).map {
                "{\"operationType\":\"create\",\"zone\":{\"zoneID\":{\"zoneName\":\"z\($0)\"}}}"
            }
            try read(ZonesModifyRequest.self, "{\"operations\":[\(operations.joined(separator: ","))]}")
        },
        Case(name: "users of users/discover", limit: 200, words: "lookupInfos: 201 given") { count in
            try read(UsersDiscoverRequest.self, "{\"lookupInfos\":[\(repeated(#"{"phoneNumber":"1"}"#, count))]}")
        },
        Case(name: "users of users/lookup", limit: 200, words: "users: 201 given") { count in
            try read(UsersLookupRequest.self, "{\"users\":[\(repeated(#"{"emailAddress":"a"}"#, count))]}")
        },
        Case(name: "desired keys", limit: 1000, words: "desiredKeys: 1001 given") { count in
            try read(LookupRecordsRequest.self, "{\"records\":[],\"desiredKeys\":[\(repeated(#""k""#, count))]}")
        },
        Case(name: "desired record types", limit: 500, words: "desiredRecordTypes: 501 given") { count in
            try read(
                ZoneChangesRequestForm.self, "{\"zones\":[],\"desiredRecordTypes\":[\(repeated(#""T""#, count))]}")
        },
        Case(name: "filters", limit: 32, words: "query.filterBy: 33 given") { count in
            let filter = #"{"fieldName":"s","comparator":"EQUALS","fieldValue":{"value":"a"}}"#
            try read(
                QueryRecordsRequest.self,
                "{\"query\":{\"recordType\":\"T\",\"filterBy\":[\(repeated(filter, count))]}}")
        },
        Case(name: "sort keys", limit: 8, words: "query.sortBy: 9 given") { count in
            let sort = #"{"fieldName":"s"}"#
            try read(
                QueryRecordsRequest.self, "{\"query\":{\"recordType\":\"T\",\"sortBy\":[\(repeated(sort, count))]}}")
        },
        Case(name: "members of an IN filter", limit: 250, words: "251 members given, at most 250") { count in
            let value = "{\"value\":[\(repeated(#""a""#, count))]}"
            let filter = "{\"fieldName\":\"s\",\"comparator\":\"IN\",\"fieldValue\":\(value)}"
            let body = "{\"query\":{\"recordType\":\"T\",\"filterBy\":[\(filter)]}}"
            _ = try QueryRecordsRequest(body: Array(body.utf8)).query.resolve(schema: type, container: "iCloud.a")
        },
        Case(name: "members of a list", limit: 10_000, words: "10001 members given, at most 10000") { count in
            let members = JSONValue.array(Array(repeating: .integer(1), count: count))
            _ = try FieldInput(json: members).resolve(field: "f", definition: nil)
        },
        Case(name: "fields of a record", limit: 1000, words: "record.fields: 1001 given") { count in
            let fields = (0..<count).map { "\"f\($0)\":{\"value\":1}" }.joined(separator: ",")
            let body = operation("{\"recordType\":\"T\",\"recordName\":\"r\",\"fields\":{\(fields)}}")
            let operations = try ModifyRecordsRequest(body: Array(body.utf8)).operations
            let schema = try #require(SchemaExtension.extended(Schema(), by: operations))
            let place = RecordOperation.Place(
                container: "c", environment: .production, scope: .private, zone: ZoneID())
            #expect(try operations[0].values(in: schema, at: place).count == count)
        },
        Case(name: "bytes of a body", limit: 4_194_304, words: "4194305 bytes, at most 4194304") { count in
            let body = Array(#"{"operations":[]}"#.utf8)
            _ = try ModifyRecordsRequest(body: body + [UInt8](repeating: 0x20, count: count - body.count))
        },
        Case(name: "nested arrays and objects", limit: 32, words: "at most 32 nested") { count in
            let nested = String(repeating: "[", count: count - 1) + String(repeating: "]", count: count - 1)
            try read(ModifyRecordsRequest.self, "{\"operations\":[],\"more\":\(nested)}")
        },
    ]

    private static let names: [Case] = [
        Case(name: "record name", limit: 255, words: "recordName: has 256 bytes") { count in
            try read(ModifyRecordsRequest.self, operation("{\"recordType\":\"T\",\"recordName\":\"\(name(count))\"}"))
        },
        Case(name: "record type", limit: 255, words: "recordType: has 256 bytes") { count in
            try read(ModifyRecordsRequest.self, operation("{\"recordType\":\"\(name(count))\",\"recordName\":\"r\"}"))
        },
        Case(name: "field name", limit: 255, words: "has 256 bytes") { count in
            let fields = "{\"\(name(count))\":null}"
            try read(
                ModifyRecordsRequest.self,
                operation("{\"recordType\":\"T\",\"recordName\":\"r\",\"fields\":\(fields)}"))
        },
        Case(name: "parent", limit: 255, words: "parent.recordName: has 256 bytes") { count in
            let parent = "{\"recordName\":\"\(name(count))\"}"
            try read(
                ModifyRecordsRequest.self,
                operation("{\"recordType\":\"T\",\"recordName\":\"r\",\"parent\":\(parent)}"))
        },
        Case(name: "reference", limit: 255, words: "recordName: has 256 bytes") { count in
            let value = JSONValue.object([.init("recordName", .string(name(count)))])
            _ = try FieldInput(json: value).resolve(field: "f", definition: nil)
        },
        Case(name: "zone name", limit: 255, words: "zones[0].zoneName: has 256 bytes") { count in
            try read(ZonesLookupRequest.self, "{\"zones\":[{\"zoneName\":\"\(name(count))\"}]}")
        },
        Case(name: "owner name", limit: 255, words: "zones[0].ownerRecordName: has 256 bytes") { count in
            try read(ZonesLookupRequest.self, "{\"zones\":[{\"ownerRecordName\":\"\(name(count))\"}]}")
        },
        Case(name: "queried record type", limit: 255, words: "query.recordType: has 256 bytes") { count in
            try read(QueryRecordsRequest.self, "{\"query\":{\"recordType\":\"\(name(count))\"}}")
        },
        Case(name: "user record name", limit: 255, words: "userRecordName: has 256 bytes") { count in
            try read(UsersLookupRequest.self, "{\"users\":[{\"userRecordName\":\"\(name(count))\"}]}")
        },
        Case(name: "e-mail address", limit: 320, words: "emailAddress: has 321 bytes") { count in
            try read(UsersLookupRequest.self, "{\"users\":[{\"emailAddress\":\"\(name(count))\"}]}")
        },
    ]

    private static func name(_ count: Int) -> String { String(repeating: "a", count: count) }

    @Test("one below and at the limit are taken, one above is refused", arguments: counts + names)
    func limit(of sample: Case) throws {
        try sample.decode(sample.limit - 1)
        try sample.decode(sample.limit)
        let error = #expect(throws: ServiceError.self) { try sample.decode(sample.limit + 1) }
        #expect(error?.code == .badRequest)
        #expect(error?.reason.contains(sample.words) == true, "\(error?.reason ?? "")")
    }

    @Test("names have at least one character", arguments: names.filter { $0.name != "owner name" })
    func emptyNames(sample: Case) {
        let error = #expect(throws: ServiceError.self) { try sample.decode(0) }
        #expect(error?.code == .badRequest)
    }

    @Test("the limits are those of docs/limits.md")
    func values() {
        #expect(Limits.operationsMax == 200 && Limits.recordsPerPageMax == 200)
        #expect(Limits.recordSizeBytesMax == 1_048_576 && Limits.nameLengthMax == 255)
        #expect(Limits.deleteSelfReferencesMax == 750 && Limits.zonesPerDatabaseMax == 10_000)
        #expect(Limits.typesMax == 500 && Limits.fieldsMax == 1000)
    }
}
