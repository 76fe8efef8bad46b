import RecordModel
import Testing

@testable import RecordStore
@testable import Service

@Suite("Usage out of the pages of several shards")
struct ContainerUsageTests {
    private static func key(_ owner: String, _ scope: Scope = .private) -> DatabaseKey {
        DatabaseKey(container: "c", environment: .development, scope: scope, owner: owner)
    }

    private static func part(
        _ owner: String, _ bytes: Int64, _ zones: [(name: String, used: Int64, recount: Int64)] = [],
        unattributed: Int64 = 0
    ) -> DatabaseUsage {
        var usage = DatabaseUsage(
            key: key(owner), used: QuotaAmounts(bytes: bytes, records: 1), allotted: QuotaAmounts(bytes: bytes + 5),
            zones: zones.map { name, used, recount in
                ZoneUsage(name: name, used: QuotaAmounts(bytes: used), recount: QuotaAmounts(bytes: recount))
            })
        usage.unattributed = QuotaAmounts(bytes: unattributed)
        return usage
    }

    private static func merged(_ pages: [UsagePage], after: UsagePosition? = nil) -> ContainerUsage {
        ContainerUsage(
            pages, of: UsageRequest(container: "c", environment: .development, after: after, detail: .recount))
    }

    @Test("a database is the sum of its parts, and zones come by name")
    func sums() {
        let usage = Self.merged([
            UsagePage(databases: [Self.part("_a", 3, [("z", 3, 3)]), Self.part("_b", 7)], hasMore: false),
            UsagePage(databases: [Self.part("_a", 4, [("a", 4, 4)])], hasMore: false),
        ])
        #expect(usage.next == nil)
        #expect(usage.databases.map(\.key.owner) == ["_a", "_b"])
        #expect(usage.databases[0].used == QuotaAmounts(bytes: 7, records: 2))
        #expect(usage.databases[0].allotted.bytes == 17)
        #expect(usage.databases[0].zones.map(\.name) == ["a", "z"])
        #expect(usage.databases.allSatisfy { $0.isEqual && $0.recount == $0.used })
    }

    @Test("faults that make up for each other, in zones or between shards, are faults")
    func faults() {
        let zones = Self.merged([
            UsagePage(databases: [Self.part("_a", 20, [("a", 10, 15), ("b", 10, 5)])], hasMore: false)
        ]).databases[0]
        #expect(!zones.isEqual && zones.recount == zones.used)
        let shards = Self.merged([
            UsagePage(databases: [Self.part("_a", 10, [("a", 10, 13)])], hasMore: false),
            UsagePage(databases: [Self.part("_a", 10, [("b", 10, 7)])], hasMore: false),
        ]).databases[0]
        #expect(!shards.isEqual && shards.recount == shards.used)
        let counters = Self.merged([
            UsagePage(databases: [Self.part("_a", 12, [("a", 10, 10)], unattributed: 2)], hasMore: false),
            UsagePage(databases: [Self.part("_a", 8, [("b", 10, 10)], unattributed: -2)], hasMore: false),
        ]).databases[0]
        #expect(!counters.isEqual)
        let one = Self.merged([
            UsagePage(databases: [Self.part("_a", 12, [("a", 10, 10)], unattributed: 2)], hasMore: false)
        ]).databases[0]
        #expect(!one.isEqual && one.recount.bytes == 10)
    }

    @Test("a page ends where the first of the shards' pages ends; what others told of beyond comes again")
    func bounds() {
        let whole = Self.merged([
            UsagePage(databases: [Self.part("_a", 1), Self.part("_b", 1)], hasMore: true),
            UsagePage(databases: [Self.part("_b", 1), Self.part("_c", 1)], hasMore: true),
            UsagePage(databases: [], hasMore: false),
        ])
        #expect(whole.databases.map(\.key.owner) == ["_a", "_b"])
        #expect(whole.databases[1].used.bytes == 2)
        #expect(whole.next == UsagePosition(database: Self.key("_b")))
        let cut = Self.merged([
            UsagePage(
                databases: [Self.part("_a", 1), Self.part("_b", 5, [("a", 1, 1), ("f", 1, 1)])], hasMore: true,
                isLastCut: true),
            UsagePage(
                databases: [Self.part("_b", 5, [("e", 1, 1), ("g", 1, 9)]), Self.part("_c", 1)], hasMore: false),
        ])
        #expect(cut.next == UsagePosition(database: Self.key("_b"), zone: "f"))
        #expect(cut.databases.map(\.key.owner) == ["_a", "_b"])
        #expect(cut.databases[1].zones.map(\.name) == ["a", "e", "f"])
        #expect(cut.databases[1].isEqual)
    }

    @Test("a database that goes on tells of its own counters once, and of the zones that follow")
    func continued() {
        let after = UsagePosition(database: Self.key("_b"), zone: "f")
        let usage = Self.merged(
            [UsagePage(databases: [Self.part("_b", 12, [("g", 1, 9)], unattributed: 2)], hasMore: false)], after: after)
        #expect(usage.databases[0].unattributed.isEmpty)
        #expect(usage.databases[0].recount.bytes == 20 && !usage.databases[0].isEqual)
    }
}
