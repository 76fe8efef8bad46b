import RecordModel
import Testing
import Wire

@testable import Service

@Suite("The log of requests")
struct RequestLogTests {
    /// A request that came at a time and was answered as the `number`th.
    private static func entry(
        _ number: UInt64, time: Int64 = 1_000, _ operation: String = "records/query", container: String = "c"
    ) -> RequestEntry {
        var entry = RequestEntry(
            id: UUIDv7(milliseconds: time, random: (0, number)), operation: operation, group: .recordsRead)
        entry.container = container
        entry.status = 200
        return entry
    }

    private static func log(_ entries: [RequestEntry], bytesMax: Int = 1 << 20) -> RequestLog {
        var log = RequestLog(bytesMax: bytesMax)
        for entry in entries { log.append(entry) }
        return log
    }

    @Test("a bound a second lets as many through in each second, also where the clock is set back")
    func perSecond() {
        var bound = PerSecond(max: 2)
        let times: [Int64] = [1_000, 1_500, 1_999, 2_000, 2_000, 2_000, 1_000]
        let passed = times.map { bound.passes(at: $0) }
        #expect(passed == [true, true, false, true, true, false, true])
    }

    @Test("pages come newest first, in the order in which requests came, whatever the order of their answers")
    func pages() {
        let entries = [3, 1, 4, 1, 5, 9, 2, 6].enumerated().map {
            Self.entry(UInt64($0.offset), time: Int64($0.element))
        }
        let log = Self.log(entries)
        let wanted = entries.sorted { $0.id > $1.id }
        var found: [RequestEntry] = []
        while found.count < entries.count {
            let page = log.newest(RequestFilter(), before: found.last?.id, limit: 3)
            #expect(page.count == min(3, entries.count - found.count))
            found += page
        }
        #expect(found == wanted)
        let rest = log.newest(RequestFilter(), before: found.last?.id, limit: 3)
        #expect(rest.isEmpty)
    }

    @Test("the oldest requests go where the bytes are used up, long texts sooner, and one always stays")
    func bounds() {
        let small = Self.entry(0).sizeBytes
        var log = Self.log((0..<100).map { Self.entry($0, time: Int64($0)) }, bytesMax: 10 * small)
        #expect(log.newest(RequestFilter(), before: nil, limit: 100).map(\.time) == (90..<100).reversed())
        var long = Self.entry(100, time: 100)
        long.zone = String(repeating: "z", count: 20 * small)
        log.append(long)
        #expect(log.newest(RequestFilter(), before: nil, limit: 100) == [long])
        #expect(log.count == 101)
    }

    @Test("whoever follows the log gets each request once, and hears of those that are left out or gone")
    func following() {
        let small = Self.entry(0).sizeBytes
        var log = RequestLog(bytesMax: 10 * small)
        var mark: UInt64 = 0
        for round in 0..<5 {
            let new = (0..<3).map { Self.entry(UInt64(3 * round + $0)) }
            for entry in new { log.append(entry) }
            let (entries, skipped) = log.entries(after: mark, RequestFilter(), limit: 200)
            #expect(entries == new && skipped == 0)
            mark = log.count
        }
        #expect(log.entries(after: mark, RequestFilter(), limit: 200).entries.isEmpty)
        let (some, others) = log.entries(after: mark - 4, RequestFilter(), limit: 3)
        #expect(some.map(\.id) == (12..<15).map { Self.entry($0).id } && others == 1)
        let (rest, gone) = log.entries(after: 0, RequestFilter(), limit: 200)
        #expect(rest.count == 10 && gone == 5)
    }

    @Test("a filter lets through what it names, and nobody sees what is not theirs")
    func filters() {
        var failed = Self.entry(1, "records/modify")
        failed.failedItems = 1
        failed.itemCode = .conflict
        var refused = Self.entry(2, "kv/set", container: "d")
        (refused.code, refused.status, refused.microseconds) = (.throttled, 429, 5_000)
        var admin = Self.entry(3, "admin/schema", container: "")
        admin.group = .administration
        let log = Self.log([Self.entry(0), failed, refused, admin])
        func found(_ change: (inout RequestFilter) -> Void) -> [UInt8] {
            var filter = RequestFilter()
            change(&filter)
            return log.newest(filter, before: nil, limit: 10).map { $0.id.bytes[15] }.reversed()
        }
        #expect(found { _ in } == [0, 1, 2, 3])
        #expect(found { $0.isFailed = true } == [1, 2])
        #expect(found { $0.code = .conflict } == [1])
        #expect(found { $0.container = "d" } == [2])
        #expect(found { $0.visible = ["c"] } == [0, 1])
        #expect(found { $0.visible = [] } == [])
        #expect(found { $0.isOfClients = true } == [0, 1, 2])
        #expect(found { $0.operation = "records" } == [0, 1])
        #expect(found { $0.operation = "records/modify" } == [1])
        #expect(found { $0.operation = "record" } == [])
        #expect(found { $0.microsecondsMin = 5_000 } == [2])
        #expect(found { $0.from = 1_001 } == [])
        #expect(found { $0.until = 1_001 } == [0, 1, 2, 3])
    }

    @Test("entries and questions survive their binary forms")
    func wire() throws {
        var entry = Self.entry(7, "records/modify")
        entry.environment = .production
        entry.database = .private
        (entry.zone, entry.recordType, entry.user) = ("z", "T", "_u")
        (entry.credential, entry.address, entry.nodes) = ("id", "::1", [2, 3])
        (entry.code, entry.itemCode, entry.failedItems) = (.quotaExceeded, .conflict, 2)
        (entry.microseconds, entry.records, entry.bytesIn, entry.bytesOut) = (1, 2, 3, 4)
        entry.refusal = RequestRefusal(rule: "userBytes", limit: 10, used: 9)
        entry.refusal?.freeAfterMilliseconds = 5
        entry.refusal?.reason = "full"
        #expect(try RequestEntry(decoding: entry.encoded()) == entry)
        var filter = RequestFilter()
        filter.visible = []
        filter.code = .throttled
        for inquiry in [
            NodeInquiry.requests(filter, before: entry.id, limit: 5), .requests(RequestFilter(), before: nil, limit: 1),
            .request(entry.id), .following(filter, after: .init(start: 1, count: 2), limit: 3),
            .following(filter, after: nil, limit: 3), .telemetry(TelemetryFilter(.month)), .health,
        ] { #expect(try NodeInquiry(decoding: inquiry.encoded()) == inquiry) }
    }

    @Test("a refusal has its rule; reasons are kept of limits only, as others may repeat what the request said")
    func refusals() {
        let limit = RequestRefusal(
            RequestFailure.throttled("slow down", retryAfterSeconds: 0.5).by("requests", limit: 5))
        #expect(limit?.rule == "requests" && limit?.limit == 5 && limit?.freeAfterMilliseconds == 500)
        #expect(limit?.reason == "slow down")
        let denied = RequestRefusal(RequestFailure.accessDenied("record 'secret' may not be read"))
        #expect(denied?.rule == "permission" && denied?.reason == "")
        #expect(RequestRefusal(RequestFailure.badRequest("'secret' is no number")) == nil)
        let value = RequestRefusal(
            RequestFailure.badRequest("too long", details: .limit("valueBytes", actual: 9, max: 8)))
        #expect(value == RequestRefusal(rule: "valueBytes", limit: 8, used: 9))
    }
}
