import Cluster
import Directory
import KeyValueStore
import RecordModel
import Synchronization
import TestSupport
import Testing

@testable import Service
@testable import WebServices

@Suite("Usage by day and by type over HTTP")
struct UsageDayHTTPTests {
    private static let at = "container=\(ConsoleWorld.container)"
    private static let modify = "/database/1/\(ConsoleWorld.container)/development/public/records/modify"
    private static let schema =
        "DEFINE SCHEMA RECORD TYPE Note (text STRING QUERYABLE, GRANT READ TO \"_world\"); RECORD TYPE Place (text STRING);"

    private static func save(_ type: String, _ name: String) -> String {
        #"{"operations": [{"operationType": "create", "record": {"recordType": "\#(type)", "recordName": "\#(name)", "fields": {"text": {"value": "value"}}}}]}"#
    }

    @Test("what was used is kept over restarts, added up, and shown with what there is")
    func kept() async throws {
        let world = try await ConsoleWorld()
        try await world.admin("POST", "schema?\(Self.at)", Self.schema)
        for name in ["a", "b"] { _ = try await world.token("POST", Self.modify, Self.save("Note", name)) }
        _ = try await world.token("POST", Self.modify, Self.save("Place", "c"))
        let history = world.node.history
        // A minute counts when it is over, and the wall's clock is the system's.
        let empty = try await world.admin("GET", "usage/days?\(Self.at)")
        #expect(empty["days"] == .array([]) && empty["bytesPerDay"] == nil)
        for _ in 0..<2 {
            // As a process that was started anew, which adds to what is there.
            let again = UsageHistory(world.node.recordService)
            world.node.recordService.requests.endMinute()
            await again.write()
            _ = try await world.token("POST", Self.modify, Self.save("Note", "d"))
        }
        world.node.recordService.requests.endMinute()
        await history.write()
        let days = try await world.admin("GET", "usage/days?\(Self.at)")
        let all = days["days"]?.array ?? []
        // A test that runs at midnight has two.
        func sum(_ key: String) -> Int64 {
            all.reduce(0) { $0 + ($1[key].flatMap { if case .integer(let n) = $0 { n } else { nil } } ?? 0) }
        }
        #expect(sum("requests") == 5 && sum("errors") == 1)
        #expect(all.last?["records"] == .integer(4) && sum("bytesIn") > 300)
        #expect(all.last?["privateBytes"] == .integer(0))

        let types = try await world.admin("GET", "usage?\(Self.at)&types=true")
        let counted = types["databases"]?.array?.first?["types"]?.array ?? []
        #expect(counted.map { $0["name"] } == [.string("Note"), .string("Place")])
        #expect(counted.map { $0["records"] } == [.integer(3), .integer(1)])
        #expect(try await world.token("GET", "usage/days").status == 400)
        try await world.node.stop()
    }

    /// The history of a world's node, which does something of its own with the first part that it writes.
    private func history(
        of world: ConsoleWorld,
        first: @escaping @Sendable (() async throws(RequestFailure) -> Void) async throws(RequestFailure) -> Void
    ) -> UsageHistory {
        let isFirst = Atomic(true)
        return UsageHistory(world.node.recordService) { preferences, writes, deadline throws(RequestFailure) in
            func write() async throws(RequestFailure) {
                _ = try await preferences.set(writes, idempotencyKey: nil, device: nil, by: deadline)
            }
            if isFirst.exchange(false, ordering: .relaxed) { return try await first(write) }
            try await write()
        }
    }

    private func requests(_ history: UsageHistory) async throws -> UInt64 {
        try await history.days(of: SchemaKey(container: ConsoleWorld.container, environment: .development))
            .reduce(0) { $0 + $1.usage.requests }
    }

    @Test("what was written without anybody knowing is not counted twice")
    func unknownOutcome() async throws {
        let world = try await ConsoleWorld()
        try await world.admin("POST", "schema?\(Self.at)", Self.schema)
        let history = history(of: world) { write throws(RequestFailure) in
            try await write()
            throw RequestFailure(ClusterError.outcomeUnknown("the answer was lost"))
        }
        for name in ["a", "b", "c"] {
            _ = try await world.token("POST", Self.modify, Self.save("Note", name))
            world.node.recordService.requests.endMinute()
            await history.write()
        }
        #expect(try await requests(history) == 3)
        try await world.node.stop()
    }

    @Test("what a round could not write that a stop interrupts is written before the stop is over")
    func interrupted() async throws {
        let world = try await ConsoleWorld()
        try await world.admin("POST", "schema?\(Self.at)", Self.schema)
        let (rounds, begun) = AsyncStream.makeStream(of: Void.self)
        let history = history(of: world) { _ throws(RequestFailure) in
            begun.yield()
            while !Task.isCancelled { await Task.yield() }
            throw RequestFailure(ClusterError.unavailable("given up"))
        }
        _ = try await world.token("POST", Self.modify, Self.save("Note", "a"))
        world.node.recordService.requests.endMinute()
        history.start(everyMilliseconds: 1)
        for await _ in rounds.prefix(1) {}
        await history.stop()
        #expect(try await requests(history) == 1)
        try await world.node.stop()
    }

    @Test("what a page asks by itself is marked in the log, and telemetry does not count it")
    func refreshes() async throws {
        let world = try await ConsoleWorld()
        let secret = [("Authorization", "Bearer \(SingleNode.administratorToken)")]
        func count() async throws -> JSONValue? {
            try await world.send("GET", "/admin/1/telemetry", headers: secret + [("X-Zonekeeper-Refresh", "1")])
                .json["total"]?["requests"]
        }
        let before = try await count()
        let asked = try await world.send(
            "GET", "/admin/1/cluster/health", headers: secret + [("X-Zonekeeper-Refresh", "1")])
        #expect(asked.status == 200)
        #expect(try await count() == before)
        let log = try await world.admin("GET", "requests?operation=admin/cluster/health")
        #expect(log["requests"]?.array?.first?["refresh"] == .bool(true))
        // What changes something is never marked.
        _ = try await world.send(
            "PATCH", "/admin/1/containers", #"{"name": "\#(ConsoleWorld.container)", "note": "n"}"#,
            headers: secret + [("X-Zonekeeper-Refresh", "1")])
        let changes = try await world.admin("GET", "requests?operation=admin/containers&limit=1")
        #expect(changes["requests"]?.array?.first?["refresh"] == nil)
        #expect(try await count() != before)
        try await world.node.stop()
    }
}
