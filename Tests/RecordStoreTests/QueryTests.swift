import Authorization
import RecordModel
import RecordStore
import Testing

@Suite("records/query: rules")
struct QueryTests {
    let shard: Fixture
    let zone = Fixture.annsDefault
    init() throws { shard = try Fixture() }

    func refusal(_ query: Query, cursor: [UInt8]? = nil) throws -> String? {
        guard case .refused(let error) = try shard.query(zone, query, cursor: cursor) else { return nil }
        #expect(error.code == .badRequest)
        return error.reason
    }

    @Test("fields without the index, or of another type, are refused with the reason clients look for")
    func unindexed() throws {
        func filter(_ field: String, _ comparator: Comparator, _ value: FieldValue) -> Query {
            Query(recordType: "Note", filters: [Filter(field: field, comparator: comparator, value: value)])
        }
        func isRefused(_ query: Query, _ words: String, _ index: String) throws -> Bool {
            guard let reason = try refusal(query) else { return false }
            return reason.hasPrefix(words) && reason.contains("zonekeeper schema add-index app \(index)")
        }
        #expect(
            try isRefused(
                filter("plain", .equals, .string("a")), "Field 'plain' is not marked queryable", "Note plain QUERYABLE")
        )
        #expect(
            try isRefused(
                filter("only", .lessThan, .string("a")), "Field 'only' is not marked sortable", "Note only SORTABLE"))
        #expect(
            try isRefused(
                Query(recordType: "Note", sorts: [Sort(field: "only")]), "Field 'only' is not marked sortable",
                "Note only SORTABLE"))
        #expect(
            try isRefused(
                filter("plain", .containsAllTokens, .string("a")), "Field 'plain' is not marked searchable",
                "Note plain SEARCHABLE"))
        #expect(
            try isRefused(
                Query(recordType: "Bare"), "Field 'recordName' is not marked queryable", "Bare ___recordID QUERYABLE"))
        #expect(try refusal(Query(recordType: "Nothing")) == "record type not found: Nothing")
        for query in [
            filter("rank", .equals, .string("a")), filter("rank", .in, .int64(1)),
            filter("rank", .beginsWith, .int64(1)),
            filter("tags", .equals, .string("a")), filter("rank", .listContains, .int64(1)),
            filter("text", .containsAllTokens, .string("a")), filter("rank", .near, .int64(1)),
            filter("nothing", .equals, .int64(1)), filter("___etag", .lessThan, .string("1.1")),
            Query(recordType: "Note", sorts: [Sort(field: "tags")]),
            Query(recordType: "Note", sorts: Array(repeating: Sort(field: "rank"), count: 9)),
        ] {
            #expect(try refusal(query) != nil, "\(query)")
        }
    }

    @Test("words are searched in up to 255 fields at once, and it is said where a type has more")
    func manySearchable() throws {
        let shard = try Fixture(installs: false)
        func refusal(_ version: UInt64, fields count: Int) throws -> String? {
            let fields = (0..<count).map {
                FieldDefinition(name: "f\($0)", type: FieldType(.string), indexes: .searchable)
            }
            try shard.apply(Fixture.install(version, Schema(types: [RecordType(name: "Note", fields: fields)])))
            let filter = Filter(field: nil, comparator: .containsAnyTokens, value: .string("a"))
            let query = Query(recordType: "Note", filters: [filter])
            guard case .refused(let error) = try shard.query(zone, query, version: version) else { return nil }
            return error.reason
        }
        #expect(try refusal(1, fields: 255) == nil)
        let tooMany = try refusal(2, fields: 256)
        #expect(tooMany?.hasPrefix("record type Note has 256 searchable fields, at most 255") == true)
        #expect(try refusal(3, fields: 0)?.contains("has no searchable field") == true)
    }

    @Test("a record without the field comes first ascending, last descending, and matches what is not said of it")
    func missing() throws {
        for (name, rank) in [("one", 1), ("none", nil), ("two", 2)] as [(String, Int64?)] {
            _ = try shard.one(zone, .make(.create, name, [("rank", rank.map { .int64($0) })]))
        }
        func sorted(_ ascending: Bool) -> Query {
            Query(recordType: "Note", sorts: [Sort(field: "rank", isAscending: ascending)])
        }
        #expect(try shard.names(zone, sorted(true), limit: 1) == ["none", "one", "two"])
        #expect(try shard.names(zone, sorted(false), limit: 1) == ["two", "one", "none"])
        func filtered(_ comparator: Comparator, _ value: FieldValue) throws -> [String] {
            try shard.names(
                zone, Query(recordType: "Note", filters: [Filter(field: "rank", comparator: comparator, value: value)])
            ).sorted()
        }
        #expect(try filtered(.notEquals, .int64(1)) == ["none", "two"])
        #expect(try filtered(.notIn, .list(.int64, [.int64(1), .int64(2)])) == ["none"])
        #expect(try filtered(.lessThan, .int64(2)) == ["one"])
        #expect(try filtered(.in, .list(.int64, [])) == [])
    }

    @Test("tags, creators, names and numbers at their ends can be filtered on")
    func systemFields() throws {
        let saved = try #require(try shard.one(zone, time: 5, .make(.create, "a", [("score", .double(-0.0))]))?.saved)
        _ = try shard.one(zone, time: 6, .make(.create, "b", [("score", .double(.infinity)), ("rank", .int64(.min))]))
        _ = try shard.one(zone, time: 7, .make(.create, "c", [("score", .double(.nan)), ("rank", .int64(.max))]))
        func names(_ field: String, _ comparator: Comparator, _ value: FieldValue) throws -> [String] {
            try shard.names(
                zone, Query(recordType: "Note", filters: [Filter(field: field, comparator: comparator, value: value)]))
        }
        #expect(try names("___etag", .equals, .string(saved.changeTag.description)) == ["a"])
        #expect(try names("___etag", .equals, .string("9.1")) == [])
        #expect(try names("___createdBy", .equals, .reference(Reference(recordName: "_ann"))) == ["a", "b", "c"])
        #expect(try names("___recordID", .equals, .reference(Reference(recordName: "b"))) == ["b"])
        #expect(try names("___createTime", .greaterThanOrEquals, .timestamp(6)) == ["b", "c"])
        #expect(try names("score", .equals, .double(0)) == ["a"])
        #expect(try names("score", .lessThanOrEquals, .double(.infinity)) == ["a", "b"])
        #expect(try names("rank", .greaterThan, .int64(.max)) == [])
        #expect(try names("rank", .greaterThanOrEquals, .int64(.max)) == ["c"])
        #expect(try names("rank", .lessThanOrEquals, .int64(.min)) == ["b"])
    }

    @Test("a cursor of another query, of garbage or of an earlier life of the zone is refused")
    func cursors() throws {
        _ = try shard.zone(.create, Fixture.work)
        for name in ["a", "b", "c"] { _ = try shard.one(Fixture.work, .make(.create, name)) }
        let query = Query(recordType: "Note", sorts: [Sort(field: "rank")])
        guard case .found(let page) = try shard.query(Fixture.work, query, limit: 2) else {
            Issue.record("refused")
            return
        }
        let cursor = try #require(page.next)
        func isRefused(_ zone: ZoneKey, _ query: Query, _ cursor: [UInt8]) throws -> Bool {
            guard case .refused(let error) = try shard.query(zone, query, cursor: cursor) else { return false }
            return error.code == .badRequest
        }
        #expect(try !isRefused(Fixture.work, query, cursor))
        #expect(try isRefused(Fixture.work, Query(recordType: "Note"), cursor))
        #expect(try isRefused(zone, query, cursor))
        var random = Random(1)
        for _ in 0..<200 {
            var damaged = cursor
            damaged[Int.random(in: 0..<damaged.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
            _ = try isRefused(Fixture.work, query, Array(damaged.dropLast(Int.random(in: 0...2, using: &random))))
        }
        _ = try shard.zone(.delete, Fixture.work)
        _ = try shard.zone(.create, Fixture.work)
        #expect(try isRefused(Fixture.work, query, cursor))
    }

    @Test("a cursor of an order that the schema implied is refused once the type has other indexes")
    func otherIndexes() throws {
        for name in ["a", "b", "c"] { _ = try shard.one(zone, .make(.create, name, [("text", .string("t" + name))])) }
        let filter = Filter(field: "text", comparator: .notEquals, value: .string("x"))
        let implied = Query(recordType: "Note", filters: [filter])
        let sorted = Query(recordType: "Note", sorts: [Sort(field: "text")])
        guard case .found(let first) = try shard.query(zone, implied, limit: 1),
            case .found(let other) = try shard.query(zone, sorted, limit: 1)
        else {
            Issue.record("refused")
            return
        }
        var note = Fixture.note
        note.fields.removeAll { $0.name == "___recordID" }
        try shard.apply(Fixture.install(2, Schema(types: [note])))
        #expect(try refusal(implied, cursor: first.next)?.contains("start again") == true)
        guard case .found(let second) = try shard.query(zone, sorted, limit: 1, cursor: other.next) else {
            Issue.record("refused")
            return
        }
        #expect(second.records.map(\.name) == ["b"])
    }

    @Test("a cursor of a sort is refused once the field's values compare in another way")
    func otherKind() throws {
        let shard = try Fixture(installs: false)
        func install(_ version: UInt64, _ type: FieldType) throws {
            let note = RecordType(name: "Note", fields: [Fixture.indexed("count", type)])
            try shard.apply(Fixture.install(version, Schema(types: [note])))
        }
        try install(1, FieldType(.number))
        for (name, count) in [("a", 1), ("b", 2)] as [(String, Int64)] {
            _ = try shard.one(zone, .make(.create, name, [("count", .int64(count))]))
        }
        let query = Query(recordType: "Note", sorts: [Sort(field: "count")])
        guard case .found(let first) = try shard.query(zone, query, limit: 1) else {
            Issue.record("refused")
            return
        }
        #expect(first.records.map(\.name) == ["a"])
        // From here on 1 is 1, and no more what a double of it is.
        try install(2, FieldType(.number, preferred: .int64))
        guard case .refused(let error) = try shard.query(zone, query, limit: 1, cursor: first.next) else {
            Issue.record("the page leaves out b, or has it by chance")
            return
        }
        #expect(error.code == .badRequest && error.reason.contains("start again"))
        #expect(try shard.names(zone, query, limit: 1) == ["a", "b"])
    }

    @Test("a cursor without a sort goes on when a field gets an index that the query does not name")
    func otherIndex() throws {
        let shard = try Fixture(installs: false)
        func install(_ version: UInt64, _ fields: [String]) throws {
            let note = RecordType(name: "Note", fields: fields.map { Fixture.indexed($0, FieldType(.int64)) })
            try shard.apply(Fixture.install(version, Schema(types: [note])))
        }
        try install(1, ["count"])
        for name in ["a", "b"] { _ = try shard.one(zone, .make(.create, name, [("count", .int64(1))])) }
        let filter = Filter(field: "count", comparator: .greaterThan, value: .int64(0))
        let query = Query(recordType: "Note", filters: [filter])
        guard case .found(let first) = try shard.query(zone, query, limit: 1) else {
            Issue.record("refused")
            return
        }
        try install(2, ["count", "rank"])
        guard case .found(let second) = try shard.query(zone, query, limit: 1, cursor: first.next) else {
            Issue.record("refused")
            return
        }
        #expect((first.records + second.records).map(\.name) == ["a", "b"])
    }

    @Test("the last page has no cursor, and a full last page neither")
    func lastPage() throws {
        for name in ["a", "b", "c"] { _ = try shard.one(zone, .make(.create, name)) }
        guard case .found(let page) = try shard.query(zone, Query(recordType: "Note"), limit: 3) else { return }
        #expect(page.records.map(\.name) == ["a", "b", "c"] && page.next == nil)
    }
}
