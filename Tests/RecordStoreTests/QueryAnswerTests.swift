import Authorization
import GRDB
import RecordModel
import Testing

@testable import RecordStore

@Suite("records/query: over databases, explained, and positions")
struct QueryAnswerTests {
    @Test("Users cannot be queried, and only one's own private database over all zones")
    func refusals() throws {
        let world = try QueryWorld()
        _ = try world.shard.apply(Fixture.install(2, Fixture.schemaWithUsers))
        let users = Query(recordType: "Users")
        guard case .refused(let error) = try world.shard.query(Fixture.publicZone, users) else {
            throw Unexpected("Users were queried")
        }
        #expect(error.code == .badRequest)
        func outcome(_ database: DatabaseKey, _ caller: Caller, cursor: [UInt8]? = nil) throws -> ErrorCode? {
            let request = DatabaseQuery(
                database: database, schemaVersion: 1, caller: caller, query: Query(recordType: "Note"), limit: 5,
                cursor: cursor)
            guard
                case .refused(let error) = try world.shard.queue.read({
                    try RecordReads(world.shard.tables, in: $0).query(request)
                })
            else { return nil }
            return error.code
        }
        #expect(try outcome(Fixture.annsData, Fixture.ann) == nil)
        #expect(try outcome(Fixture.annsData, Fixture.bob) != nil)
        #expect(try outcome(Fixture.publicData, Fixture.ann) == .badRequest)
        #expect(try outcome(Fixture.annsData, Fixture.ann, cursor: [9, 9]) == .badRequest)
    }

    @Test("an explanation names the driver, the tested filters and what was looked at")
    func explanation() throws {
        var random = Random(3)
        var world = try QueryWorld()
        try world.write(100, &random)
        let query = Query(
            recordType: "Note",
            filters: [
                Filter(field: "half", comparator: .equals, value: .int64(1)),
                Filter(field: "rank", comparator: .notIn, value: .list(.int64, [.int64(1), .int64(2)])),
            ])
        let request = RecordQuery(
            zone: QueryWorld.key("a"), schemaVersion: 1, caller: Fixture.ann, query: query, limit: 200, explains: true)
        let outcome = try world.shard.queue.read { try RecordReads(world.shard.tables, in: $0).query(request) }
        guard case .found(let page) = outcome, let explanation = page.explanation else {
            throw Unexpected("no explanation")
        }
        #expect(explanation.driver.contains("half") && explanation.direction == "ascending")
        #expect(explanation.testedOnRecords == ["rank NOT_IN"])
        #expect(explanation.recordsReturned == page.records.count && explanation.recordsRead >= page.records.count)
        #expect(explanation.indexes.map(\.field).contains("half") && explanation.indexes.allSatisfy(\.isReady))
        var writer = JSONWriter()
        explanation.write(to: &writer)
        #expect(String(decoding: writer.bytes, as: UTF8.self).hasPrefix("{\"driver\":\"index on half"))
    }

    @Test("positions as bytes are in the order of positions, and decode to what they were")
    func positions() throws {
        var random = Random(11)
        let type =
            IndexDesign.all(of: FieldDefinition(name: "n", type: FieldType(.int64), indexes: .sortable))
            + IndexDesign.all(of: FieldDefinition(name: "s", type: FieldType(.string), indexes: .sortable))
        let indexes = type.enumerated().map { InstalledIndex(id: Int64($0), design: $1, isReady: true) }
        for flags in 0..<8 {
            let keys = indexes.enumerated().map { offset, index in
                let isAscending = flags >> offset & 1 == 0
                return QueryOrder.Key(kind: .values(index), isAscending: isAscending, missingFirst: isAscending)
            }
            let bytes = PositionBytes(order: QueryOrder(keys: keys), zoneFirst: flags & 4 != 0)
            func place() -> PositionBytes.Place {
                let number: IndexKey? =
                    [nil, .number(.min), .number(-1), .number(0), .number(.max)]
                    .randomElement(using: &random) ?? nil
                let text: IndexKey? =
                    [nil, .bytes([]), .bytes([0]), .bytes([0, 0]), .bytes([0xFF]), .bytes([1, 0])]
                    .randomElement(using: &random) ?? nil
                return PositionBytes.Place(
                    zone: ["a", "ab", "\u{E9}"].randomElement(using: &random),
                    position: QueryPosition(keys: [number, text], recordID: .random(in: -3...3, using: &random)))
            }
            for _ in 0..<300 {
                let (left, right) = (place(), place())
                #expect(bytes.decode(bytes.encode(left)) == left)
                if left.zone == right.zone, left != right, let id = right.position.recordID {
                    let isBefore = bytes.order.isAfter(left.position, keys: right.position.keys, id: id)
                    #expect(isBefore == bytes.encode(left).lexicographicallyPrecedes(bytes.encode(right)))
                }
                var part = left
                part.position = QueryPosition(keys: [left.position.keys[0]], recordID: nil)
                #expect(bytes.encode(left).lexicographicallyPrecedes(bytes.encode(part)))
                _ = bytes.decode(Array(bytes.encode(left).dropLast()))
            }
        }
    }

    @Test("large groups of a sort key, and words and places among many records, keep the bounds of a page")
    func bounds() throws {
        let world = try QueryWorld()
        let tables = world.shard.tables
        try world.shard.queue.write { db in
            let transaction = try tables.begin(in: db)
            for batch in 0..<15 {
                let operations = (0..<200).map { offset in
                    let number = batch * 200 + offset
                    return RecordChange.make(
                        .create, "n\(number)",
                        [
                            ("half", .int64(1)), ("rank", .int64(Int64(number * 7 % 3_000))),
                            ("body", .string("all w\(number % 9)")),
                        ])
                }
                let command = ModifyRecords(
                    zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 9_000,
                    operations: operations)
                _ = try transaction.apply(.modifyRecords(command))
            }
            try transaction.finish()
        }
        let query = Query(recordType: "Note", sorts: [Sort(field: "half"), Sort(field: "rank", isAscending: false)])
        let request = RecordQuery(
            zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, query: query, limit: 3, explains: true)
        let outcome = try world.shard.queue.read { try RecordReads(tables, in: $0).query(request) }
        guard case .found(let page) = outcome, let explanation = page.explanation else { throw Unexpected("refused") }
        #expect(page.records.map { $0.fields["rank"] } == [.int64(2_999), .int64(2_998), .int64(2_997)])
        #expect(explanation.entriesExamined < 200 && explanation.recordsRead < 100)
        let all = try world.found(query, zone: ZoneKey.defaultZoneName, limit: 200).names
        #expect(all.count == 3_000 && Set(all).count == 3_000)
    }

    @Test("an explanation, whose counts are over all records, is for those only who may read them all")
    func explanationOfOthersRecords() throws {
        let shard = try Fixture()
        _ = try shard.one(Fixture.publicZone, RecordChange(.create, "a", type: "Secret"))
        let query = Query(recordType: "Secret")
        for (explains, isRefused) in [(false, false), (true, true)] {
            let request = RecordQuery(
                zone: Fixture.publicZone, schemaVersion: 1, caller: Fixture.bob, query: query, limit: 3,
                explains: explains)
            let outcome = try shard.queue.read { try RecordReads(shard.tables, in: $0).query(request) }
            if case .refused(let error) = outcome { #expect(error.code == .accessDenied && isRefused) }
            if case .found(let page) = outcome { #expect(page.records.isEmpty && !isRefused) }
        }
    }
}
