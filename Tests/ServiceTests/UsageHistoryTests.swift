import Directory
import RecordModel
import Testing
import Wire

@testable import Service

@Suite("Usage by day")
struct UsageHistoryTests {
    private static func entry(
        _ group: OperationGroup = .recordsWrite, container: String = "c", user: String = "", status: Int = 200
    ) -> RequestEntry {
        var entry = RequestEntry(id: UUIDv7(milliseconds: 0, random: (0, 0)), operation: "x", group: group)
        (entry.container, entry.environment, entry.user) = (container, .development, user)
        (entry.status, entry.bytesIn, entry.bytesOut) = (status, 10, 20)
        return entry
    }

    private static func key(_ container: String, _ day: Int64) -> DayCounts.Key {
        DayCounts.Key(schema: SchemaKey(container: container, environment: .development), day: day)
    }

    @Test("requests are counted for the day of their minute once that is over; administrators' are not")
    func counting() throws {
        var series = TelemetrySeries()
        let midnight = 20_000 * DayUsage.milliseconds
        series.count(Self.entry(user: "a"), at: midnight - 1)
        series.count(Self.entry(.recordsRead, user: "b", status: 500), at: midnight - 2)
        series.count(Self.entry(.administration), at: midnight - 3)
        series.count(Self.entry(.signIn, container: ""), at: midnight - 3)
        #expect(series.days.counts.isEmpty, "the minute goes on")
        series.count(Self.entry(user: "a"), at: midnight)
        series.endMinute(at: midnight + 59_999)
        #expect(series.days.counts.keys.map(\.day) == [19_999])
        series.endMinute(at: midnight + 60_000)
        let taken = series.days.takeAll()
        #expect(taken.map(\.key) == [Self.key("c", 19_999), Self.key("c", 20_000)])
        let first = taken[0].usage
        #expect(first.requests == 2 && first.errors == 1 && first.users.count == 2)
        #expect(first.bytesIn == 20 && first.bytesOut == 40)
        #expect(series.days.counts.isEmpty)
        #expect(try DayUsage(decoding: first.encoded()) == first)
        // What could not be kept comes again, and nothing that was counted meanwhile is lost.
        series.days.add(first, to: Self.key("c", 19_999))
        series.days.add(first, to: Self.key("c", 19_999))
        #expect(series.days.counts[Self.key("c", 19_999)]?.requests == 4)
        #expect(series.days.counts[Self.key("c", 19_999)]?.users.count == 2)
    }

    @Test("of what nodes saw of the storage, the last look counts")
    func storage() {
        func usage(_ time: Int64) -> DayUsage {
            var usage = DayUsage()
            usage.storage = DayUsage.Storage(
                time: time, publicBytes: time, privateBytes: 0, assetBytes: 0, records: 0)
            return usage
        }
        for (one, other) in [(3, 7), (7, 3)] as [(Int64, Int64)] {
            var sum = usage(one)
            sum.add(usage(other))
            sum.add(DayUsage())
            #expect(sum.storage?.publicBytes == 7)
        }
    }

    @Test("days go when they are 90 days old, or when there is no room for all nodes' parts of them")
    func retention() {
        let days = (19_900...20_000).map { (name: "\($0).1", bytes: 100) }
        #expect(UsageHistory.tooMany(days, today: 20_000).sorted() == (19_900...19_910).map { "\($0).1" })
        #expect(UsageHistory.tooMany([(name: "what else", bytes: 1)], today: 20_000) == ["what else"])
        let large = days.suffix(10).map { (name: $0.name, bytes: UsageHistory.bytesMax / 4) }
        #expect(UsageHistory.tooMany(large, today: 20_000).count == 6)
        let many = (0..<20).flatMap { node in (19_950...20_000).map { (name: "\($0).\(node)", bytes: 1) } }
        let gone = UsageHistory.tooMany(many, today: 20_000)
        #expect(many.count - gone.count == UsageHistory.entriesMax && gone.allSatisfy { $0 < "19960" })
    }

    @Test("public data are full after what is left, at the rate of the last 30 days")
    func forecast() {
        func days(_ bytes: [Int64?]) -> [(day: Int64, usage: DayUsage)] {
            bytes.enumerated().map { offset, bytes in
                var usage = DayUsage()
                usage.storage = bytes.map {
                    DayUsage.Storage(
                        time: Int64(offset) * DayUsage.milliseconds, publicBytes: $0, privateBytes: 9_999,
                        assetBytes: 0, records: 0)
                }
                return (Int64(offset), usage)
            }
        }
        #expect(StorageForecast(days([100]), limit: 1_000) == nil)
        #expect(StorageForecast(days([nil, nil]), limit: 1_000) == nil)
        let growing = StorageForecast(days([100, nil, 300]), limit: 1_000)
        #expect(growing?.bytesPerDay == 100 && growing?.daysUntilFull == 7)
        #expect(StorageForecast(days([100, nil, 300]), limit: ContainerLimit.unlimited)?.daysUntilFull == nil)
        #expect(StorageForecast(days([300, 100]), limit: 1_000)?.bytesPerDay == -200)
        #expect(StorageForecast(days([300, 100]), limit: 1_000)?.daysUntilFull == nil)
        #expect(StorageForecast(days([100, 300]), limit: 200)?.daysUntilFull == 0)
        #expect(StorageForecast(days([0, 1]), limit: .max - 1)?.daysUntilFull == nil, "too far away to tell")
        let long = [0] + [Int64](repeating: 500, count: 29) + [500]
        #expect(StorageForecast(days(long), limit: 1_000)?.bytesPerDay == 0, "what was before does not count")
    }
}
