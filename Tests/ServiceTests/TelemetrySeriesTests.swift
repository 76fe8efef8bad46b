import RecordModel
import Testing
import Wire

@testable import Service

@Suite("The series of requests")
struct TelemetrySeriesTests {
    private static func entry(
        _ group: OperationGroup = .recordsRead, container: String = "c", user: String = "", microseconds: UInt64 = 1_000
    ) -> RequestEntry {
        var entry = RequestEntry(id: UUIDv7(milliseconds: 0, random: (0, 0)), operation: "x", group: group)
        (entry.container, entry.environment, entry.user) = (container, .development, user)
        (entry.microseconds, entry.bytesIn, entry.bytesOut) = (microseconds, 10, 20)
        return entry
    }

    @Test("percentiles are within a quarter of the exact ones, for times from microseconds to a minute")
    func percentiles() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<50 {
            let ceiling = UInt64(1) << UInt64.random(in: 8...25, using: &random)
            let times = (0..<500).map { _ in UInt64.random(in: 64...ceiling, using: &random) }.sorted()
            var histogram = LatencyHistogram()
            for time in times.shuffled() { histogram.count(time) }
            for part in [0.5, 0.95, 0.99] {
                let exact = Double(times[Int((part * 500).rounded(.up)) - 1]) / 1_000
                let found = try #require(histogram.milliseconds(ofPart: part))
                #expect(found >= exact / 1.26 && found <= exact * 1.26, "\(part) of \(ceiling): \(found), not \(exact)")
            }
            #expect(try LatencyHistogram(decoding: histogram.encoded()) == histogram)
        }
        #expect(LatencyHistogram().milliseconds(ofPart: 0.5) == nil)
        var far = LatencyHistogram()
        far.count(.max)
        #expect((far.milliseconds(ofPart: 0.5) ?? 0) > 20_000)
    }

    @Test("users are counted exactly up to 128, and about right beyond; two nodes' users are not counted twice")
    func users() throws {
        var (left, right) = (DistinctUsers(), DistinctUsers())
        for number in 0..<128 {
            for _ in 0..<3 { left.count("_user\(number)") }
            if number >= 64 { right.count("_user\(number)") }
        }
        #expect(left.count == 128 && right.count == 64)
        left.add(right)
        #expect(left.count == 128)
        for number in 0..<20_000 { left.count("_other\(number)") }
        #expect((14_000...28_000).contains(left.count))
        #expect(try DistinctUsers(decoding: left.encoded()) == left)
    }

    @Test("the last minutes are those of clients, by container and environment")
    func recent() {
        var series = TelemetrySeries()
        let begin: Int64 = 1_700_000_400_000
        for minute in 0..<20 {
            series.count(Self.entry(), at: begin + Int64(minute) * 60_000)
            series.count(Self.entry(.preferences, container: "d"), at: begin + Int64(minute) * 60_000)
            series.count(Self.entry(.administration), at: begin + Int64(minute) * 60_000)
        }
        let cells = series.recent(minutes: 10, at: begin + 19 * 60_000 + 59_999)
        #expect(cells.keys.map(\.container).sorted() == ["c", "d"])
        #expect(cells.values.map(\.requests) == [10, 10])
        #expect(series.recent(minutes: 10, at: begin + 40 * 60_000).isEmpty)
    }

    @Test("a request is in its minute, its ten minutes and its hour, and in none that is not asked for")
    func ranges() {
        var series = TelemetrySeries()
        let begin: Int64 = 1_700_000_400_000
        for minute in 0..<90 {
            series.count(Self.entry(user: "_u\(minute)"), at: begin + Int64(minute) * 60_000 + 59_999)
            series.count(Self.entry(.preferences, container: "d"), at: begin + Int64(minute) * 60_000)
        }
        let now = begin + 89 * 60_000 + 59_999
        for (range, requests, points) in [(TelemetryRange.hour, 120, 60), (.day, 180, 9), (.month, 180, 2)] {
            let sums = series.sums(TelemetryFilter(range), at: now)
            #expect(sums.points.reduce(0) { $0 + $1.cell.requests } == requests, "\(range)")
            #expect(abs(sums.points.count - points) <= 1, "\(range): \(sums.points.count)")
            #expect(sums.points.map(\.begin) == sums.points.map(\.begin).sorted())
            #expect(sums.keys.count == 2)
        }
        var filter = TelemetryFilter(.month)
        filter.container = "c"
        let ofC = series.sums(filter, at: now)
        #expect(ofC.keys.map(\.cell.requests) == [90] && ofC.keys.first?.cell.users.count == 90)
        filter.visible = ["d"]
        #expect(series.sums(filter, at: now) == TelemetrySums())
        // Two days later the day is empty, and the month is not.
        series.count(Self.entry(), at: now + 2 * 86_400_000)
        #expect(series.sums(TelemetryFilter(.day), at: now + 2 * 86_400_000).points.map(\.cell.requests) == [1])
        #expect(
            series.sums(TelemetryFilter(.month), at: now + 2 * 86_400_000).points.reduce(0) { $0 + $1.cell.requests }
                == 181)
    }

    @Test("errors are counted by code, those of parts too, and series of two nodes add up")
    func errors() throws {
        var (first, second) = (TelemetrySeries(), TelemetrySeries())
        var refused = Self.entry()
        (refused.code, refused.status) = (.throttled, 429)
        var partly = Self.entry()
        (partly.failedItems, partly.itemCode) = (3, .conflict)
        for entry in [refused, partly, Self.entry(user: "_a")] { first.count(entry, at: 60_000) }
        for entry in [refused, Self.entry(user: "_a")] { second.count(entry, at: 61_000) }
        second.count(notifications: 7, container: "c", .development, at: 61_000)
        var sums = first.sums(TelemetryFilter(.hour), at: 62_000)
        sums.add(second.sums(TelemetryFilter(.hour), at: 62_000))
        let cell = try #require(sums.points.first?.cell)
        #expect(sums.points.count == 1 && cell.requests == 5 && cell.errorCount == 3)
        #expect(cell.errors.map(\.code) == [.conflict, .throttled] && cell.errors.map(\.count) == [1, 2])
        #expect(cell.bytesIn == 50 && cell.bytesOut == 100 && cell.users.count == 1 && cell.notifications == 7)
        #expect(try TelemetrySums(decoding: sums.encoded()) == sums)
    }

    @Test("cells are bounded: further containers count together, and the oldest steps go")
    func bounds() {
        var series = TelemetrySeries()
        for number in 0..<1_000 { series.count(Self.entry(container: "c\(number)"), at: 60_000) }
        let sums = series.sums(TelemetryFilter(.hour), at: 60_000)
        #expect(sums.keys.count == TelemetrySeries.keysMax + 1)
        #expect(sums.keys.first?.key.container == "" && sums.keys.first?.cell.requests == 500)
        for minute in 1..<120 {
            for number in 0..<TelemetrySeries.keysMax {
                series.count(Self.entry(container: "c\(number)"), at: Int64(minute) * 60_000)
            }
        }
        let hour = series.sums(TelemetryFilter(.hour), at: 120 * 60_000 - 1)
        #expect(hour.points.count < 60 && hour.points.last?.begin == 119 * 60_000)
        let cells = TelemetryRange.allCases.map {
            series.sums(TelemetryFilter($0), at: 120 * 60_000 - 1).points.count * TelemetrySeries.keysMax
        }
        #expect(cells.reduce(0, +) <= TelemetrySeries.cellsMax + 3 * (TelemetrySeries.keysMax + 1))
    }

    @Test("a clock that is set back by hours does not leave steps of the future")
    func clock() {
        var series = TelemetrySeries()
        series.count(Self.entry(), at: 100 * 3_600_000)
        series.count(Self.entry(), at: 100 * 3_600_000 + 60_000)
        series.count(Self.entry(), at: 90 * 3_600_000)
        let sums = series.sums(TelemetryFilter(.month), at: 90 * 3_600_000)
        #expect(sums.points.map(\.begin) == [90 * 3_600_000] && sums.points.first?.cell.requests == 1)
    }
}
