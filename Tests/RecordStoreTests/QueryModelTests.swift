import Foundation
import RecordModel
import RecordStore
import Testing

/// Random records and queries against a twin that looks at every record.
@Suite("records/query: against a naive twin")
struct QueryModelTests {
    /// `ZONEKEEPER_TWIN_QUERIES` random queries in all, by default a quick number.
    static let queries = ProcessInfo.processInfo.environment["ZONEKEEPER_TWIN_QUERIES"].flatMap { Int($0) } ?? 400
    static let worlds = 4

    /// Bounds so low that a few records take every way to read a page.
    static func tuning(_ random: inout Random) -> QueryTuning {
        var tuning = QueryTuning()
        guard Int.random(in: 0..<4, using: &random) > 0 else { return tuning }
        func pick(_ values: [Int]) -> Int { values.randomElement(using: &random) ?? 1 }
        tuning.walkedFirst = pick([1, 8, 64])
        tuning.triedEntries = pick([1, 4, 16])
        tuning.fewRows = pick([0, 2, 10])
        tuning.gatheredRows = pick([0, 3, 30])
        tuning.groupLooked = pick([1, 3])
        tuning.groupMax = tuning.groupLooked + pick([1, 5])
        tuning.ringMin = pick([5, 20])
        tuning.ringMax = pick([12, 40])
        tuning.examinedMax = pick([3, 40, 10_000, 10_000])
        tuning.pageBytesMax = pick([500, 4 << 20, 4 << 20])
        tuning.workMax = pick([0, 400, 4_000, 40_000, 1_000_000, 1_000_000])
        return tuning
    }

    /// A page size at which the answer takes few to a hundred pages.
    private static func size(_ expected: some Collection, _ random: inout Random) -> Int {
        Int.random(in: 1...7, using: &random) * (1 + expected.count / 100)
    }

    @Test(
        "finds the same records in an order that the sorts allow, each once, at every page size", arguments: 1...worlds)
    func model(_ seed: Int) throws {
        var random = Random(UInt64(seed))
        var world = try QueryWorld()
        try world.write(250, &random)
        for number in 0..<Self.queries / Self.worlds {
            if number % 200 == 199 { try world.write(40, &random) }
            let query = QueryInputs.query(&random)
            let tuning = Self.tuning(&random)
            if Int.random(in: 0..<4, using: &random) == 0 {
                let expected = world.expected(query)
                let found = try world.found(query, limit: Self.size(expected, &random), tuning: tuning)
                check(found, try world.found(query, limit: 200), expected, query)
            } else {
                let zone = QueryWorld.zones.randomElement(using: &random) ?? "a"
                let expected = world.expected(query, zone: zone)
                let found = try world.found(query, zone: zone, limit: Self.size(expected, &random), tuning: tuning)
                check(found, try world.found(query, zone: zone, limit: 200), expected, query)
            }
        }
    }

    /// Holds an answer against the twin's, and against the same query in one large page.
    func check(
        _ found: (names: [String], refusal: ServiceError?), _ whole: (names: [String], refusal: ServiceError?),
        _ expected: [TwinRecord], _ query: Query
    ) {
        #expect(found.refusal == nil, "\(query)")
        let names = Set(expected.map { $0.zone + "/" + $0.name })
        let lacks = names.subtracting(found.names).sorted()
        let exceeds = Set(found.names).subtracting(names).sorted()
        let isEach = lacks.isEmpty && exceeds.isEmpty && found.names.count == names.count
        #expect(isEach, "lacks \(lacks), has \(exceeds) too, \(found.names.count) of \(names.count): \(query)")
        let isSameOrder = found.names == whole.names
        #expect(isSameOrder, "the order depends on the pages: \(query)")
        let byName = Dictionary(expected.map { ($0.zone + "/" + $0.name, $0) }, uniquingKeysWith: { first, _ in first })
        for (left, right) in zip(found.names, found.names.dropFirst()) {
            guard let left = byName[left], let right = byName[right] else { continue }
            #expect(
                QueryTwin.allows(left.fields, before: right.fields, query.sorts), "\(left.name) \(right.name) \(query)")
        }
    }

    @Test("while indexes are being built, answers are right or say that they are not ready yet")
    func building() throws {
        var random = Random(77)
        let late: Set<String> = ["rank", "text", "place", "body", "tags", "___createTime"]
        var world = try QueryWorld(
            schema: QueryWorld.schema(
                QueryWorld.fields.map { field in
                    var field = field
                    if late.contains(field.name) { field.indexes = [] }
                    return field
                }))
        try world.write(250, &random)
        // More records than an installation fills at once.
        for number in 0..<3 {
            let many = (0..<200).map { RecordChange(.create, "f\(number)-\($0)", type: "Note") }
            _ = try world.shard.apply(
                .modifyRecords(
                    ModifyRecords(
                        zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1_000_000,
                        operations: many)))
        }
        _ = try world.shard.apply(Fixture.install(2, QueryWorld.schema()))
        var (refused, answered) = (0, 0)
        while true {
            for _ in 0..<6 {
                let query = QueryInputs.query(&random)
                var tuning = Self.tuning(&random)
                // So few that matches of other filters cannot always be sorted instead.
                if Bool.random(using: &random) { tuning.examinedMax = 3 }
                let found = try world.found(query, zone: "a", limit: 3, tuning: tuning)
                if let refusal = found.refusal {
                    #expect(refusal.code == .tryAgainLater && refusal.retryAfterSeconds == 1, "\(query)")
                    refused += 1
                } else {
                    check(found, found, world.expected(query, zone: "a"), query)
                    answered += 1
                }
            }
            let outcome = try world.shard.apply(
                .maintain(Maintain(time: 1_000_001, rowsMax: 100, retention: Retention())))
            if outcome == .maintained(hasMore: false) { break }
        }
        #expect(refused > 0 && answered > 0, "\(refused) \(answered)")
        for _ in 0..<50 {
            let query = QueryInputs.query(&random)
            #expect(try world.found(query, zone: "b", limit: 7).refusal == nil)
        }
    }
}
