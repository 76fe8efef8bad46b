import Authorization
import Directory
import Dispatch
import Foundation
import GRDB
import RaftCore
import RecordModel
import RecordStore
import Storage
import Synchronization
import Testing
import Wire

@testable import Cluster

extension ClusterSuites {
    /// 48 records with long lists, and a query with 31 filters on each.
    @Suite("Reads that nobody waits for any more")
    struct EndedReadTests {
        private static let schema = Schema(types: [
            RecordType(
                name: "Heavy",
                fields: [
                    FieldDefinition(name: "l", type: FieldType(.int64, isList: true), indexes: .queryable),
                    FieldDefinition(name: "n", type: FieldType(.int64), indexes: .queryable),
                ])
        ])
        private static let heavy: ShardRead = {
            let absent = FieldValue.list(.int64, (0..<250).map { .int64(-1 - $0) })
            let query = Query(
                recordType: "Heavy",
                filters: Array(repeating: Filter(field: "l", comparator: .notListContainsAny, value: absent), count: 31)
                    + [Filter(field: "n", comparator: .equals, value: .int64(1))])
            return .query(
                RecordQuery(
                    zone: Commands.zone, schemaVersion: 1, caller: Caller(user: "_me"), query: query, limit: 200),
                ShardRead.Rendering(desiredKeys: [], numbersAsStrings: false))
        }()

        private static func commands() -> [ShardCommand] {
            let members = (0..<2_000).map { FieldValue.int64($0) }
            let install = InstallSchema(
                container: Commands.database.container, environment: Commands.database.environment, version: 1,
                schema: schema)
            return [.record(.installSchema(install))]
                + (0..<48).map { number in
                    .record(
                        .modifyRecords(
                            ModifyRecords(
                                zone: Commands.zone, schemaVersion: 1, caller: Caller(user: "_me"), time: 1_000,
                                operations: [
                                    RecordChange(
                                        .forceReplace, "r\(number)", type: "Heavy",
                                        fields: [
                                            .init(name: "l", value: .list(.int64, members)),
                                            .init(name: "n", value: .int64(1)),
                                        ])
                                ])))
                }
        }

        private func read(
            through node: ClusterNode, milliseconds: UInt64 = 20_000
        ) async -> Result<[UInt8], ClusterError> {
            do throws(ClusterError) {
                let group = node.map.group(of: Commands.zone)
                return .success(
                    try await node.router.read(
                        Self.heavy.encoded(), from: group, of: Self.heavy.container,
                        by: node.deadline(milliseconds: milliseconds)))
            } catch {
                return .failure(error)
            }
        }

        /// Keeps the threads of a node's reads busy until the semaphore was signalled four times.
        private func hold(_ node: ClusterNode) throws -> DispatchSemaphore {
            let gate = DispatchSemaphore(value: 0)
            for owner in ["v", "x", "y", "z"] { try node.pools.reads.submit(for: owner) { _ in gate.wait() } }
            return gate
        }

        @Test("six heavy queries whose clients went away are not worked on, and the next is answered")
        func departed() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            let node = try cluster.node(1)
            for command in Self.commands() { _ = try await Commands.submit(command, to: node) }
            let gate = try hold(node)
            let reads = (0..<6).map { _ in Task { await read(through: node) } }
            while node.pools.reads.load.waiting < 6 { await Task.yield() }
            for read in reads { read.cancel() }
            for _ in 0..<4 { gate.signal() }
            for read in reads { #expect(await read.value == .failure(.readEnded)) }
            guard case .success = await read(through: node) else {
                Issue.record("the next query was not answered")
                return
            }
            await cluster.stop()
        }

        @Test("a read that waits for threads is answered by its deadline, at its leader and through another node")
        func late() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3)
            let first = try cluster.node(1)
            for command in Self.commands().prefix(2) { _ = try await Commands.submit(command, to: first) }
            let gates = try (1...3).map { try hold(cluster.node($0)) }
            for id in UInt64(1)...3 {
                #expect(try await read(through: cluster.node(id), milliseconds: 300) == .failure(.readEnded))
            }
            for gate in gates { for _ in 0..<4 { gate.signal() } }
            for id in UInt64(1)...3 {
                guard case .success = try await read(through: cluster.node(id)) else {
                    Issue.record("node \(id) does not answer")
                    return
                }
            }
            await cluster.stop()
        }
    }
}

@Suite("Tickets of reads")
struct ReadTicketTests {
    /// A clock that goes on by a nanosecond whenever somebody looks.
    private final class LookedAtClock: Sendable {
        private let looks = Mutex<UInt64>(0)
        var count: UInt64 { looks.withLock(\.self) }

        func next() -> MonotonicTime {
            looks.withLock { looks in
                looks += 1
                return MonotonicTime(nanoseconds: looks)
            }
        }
    }

    @Test("a read ends where its ticket does: before it begins, and in the midst of a feed's page")
    func feeds() throws {
        let folder = NSTemporaryDirectory() + "ticket-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let machine = ShardMachine(vault: FieldVault(clusterKey: nil))
        let database = try ShardDatabase.open(path: folder + "/a.sqlite") { try machine.createTables(in: $0) }
        let zone = ZoneKey(database: Commands.database, name: "z")
        let commands: [ShardCommand] =
            [
                Commands.installSchema(),
                .record(.modifyZone(ModifyZone(.create, zone: zone, caller: Caller(user: "_me"), time: 1_000))),
            ] + (0..<400).map { Commands.save("n\($0)", number: $0, zone: zone) }
        try database.write { db in
            _ = try machine.apply(
                commands.map { $0.encoded() }, at: FeatureLevel.supported.upperBound, in: db, while: { true })
        }
        let feed = ShardRead.zoneChanges(
            ZoneChangesRequest(zone: zone, schemaVersion: 1, caller: Caller(user: "_me"), token: nil, limit: 200),
            ShardRead.Rendering(desiredKeys: nil, numbersAsStrings: false)
        ).encoded()
        for looksMax in [UInt64(0), 1, 2] {
            let clock = LookedAtClock()
            let ticket = ReadTicket(
                ReadTerms(container: "c"), until: MonotonicTime(nanoseconds: looksMax + 1), now: clock.next)
            #expect(throws: ShardDatabaseError.readEnded) {
                try database.read(while: { ticket.isWanted }) { try machine.read(feed, in: $0) }
            }
            #expect(clock.count == looksMax + 1)
        }
        let ticket = ReadTicket(
            ReadTerms(container: "c"), until: MonotonicTime(nanoseconds: .max), now: LookedAtClock().next)
        _ = try database.read(while: { ticket.isWanted }) { try machine.read(feed, in: $0) }
        ticket.cancel()
        #expect(!ticket.isWanted)
        try database.close()
    }
}
