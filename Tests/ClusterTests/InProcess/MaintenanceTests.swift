import Authorization
import Cluster
import Directory
import Foundation
import GRDB
import RaftCore
import RecordModel
import RecordStore
import TestSupport
import Testing
import Wire

extension ClusterSuites {
    @Suite("A shard's own work, done by its leader")
    struct MaintenanceTests {
        /// Records in batches, each with `number` and, where there is a target, a reference that goes with it.
        private func save(_ count: Int, target: String? = nil, on node: ClusterNode) async throws {
            for start in stride(from: 0, to: count, by: 200) {
                let operations = (start..<min(start + 200, count)).map { number in
                    var fields = [RecordChange.FieldChange(name: "number", value: .int64(Int64(number)))]
                    if let target {
                        let reference = Reference(recordName: target, action: .deleteSelf)
                        fields.append(RecordChange.FieldChange(name: "owner", value: .reference(reference)))
                    }
                    return RecordChange(.forceReplace, "n\(number)", type: "Note", fields: fields)
                }
                let outcome = try await Commands.submit(
                    .record(
                        .modifyRecords(
                            ModifyRecords(
                                zone: Commands.zone, schemaVersion: 1, caller: Caller(user: "_me"), time: 1_000,
                                operations: operations))), to: node)
                guard case .records(let items) = outcome, case .saved? = items.last else {
                    Issue.record("not saved: \(outcome)")
                    return
                }
            }
        }

        @Test(
            "subscriptions are sent again at once after a loss, whatever comes in between",
            arguments: [true, false])
        func resends(inOneTransaction: Bool) throws {
            let machine = ShardMachine(vault: FieldVault(clusterKey: nil))
            let queue = try DatabaseQueue()
            try queue.write { try machine.createTables(in: $0) }
            // The applier calls once more where an entry that concerns the group is between two commands.
            func apply(_ commands: [ShardCommand]) throws {
                try queue.write { db in
                    for command in commands {
                        _ = try machine.apply(
                            [command.encoded()], at: FeatureLevel.supported.upperBound, in: db, while: { true })
                    }
                }
                machine.didCommit()
            }
            func isToMaintain() -> Bool {
                machine.maintenance(now: 1, at: FeatureLevel.supported.upperBound, random: { 0 }) != nil
            }
            #expect(!isToMaintain())
            let commands: [ShardCommand] = [
                .deliver(OutboxDelivery(source: 7, incarnation: 1, first: 1, effects: [.resend])),
                .acknowledge(OutboxAcknowledgement(destination: 7, incarnation: 1, through: 1)),
            ]
            if inOneTransaction { try apply(commands) } else { for command in commands { try apply([command]) } }
            #expect(isToMaintain())
        }

        @Test("changes that wait to be matched with subscriptions are counted, and urgent until they are matched")
        func matches() throws {
            let machine = ShardMachine(vault: FieldVault(clusterKey: nil))
            let queue = try DatabaseQueue()
            try queue.write { try machine.createTables(in: $0) }
            func apply(_ command: [UInt8]) throws {
                _ = try queue.write {
                    try machine.apply([command], at: FeatureLevel.supported.upperBound, in: $0, while: { true })
                }
                machine.didCommit()
            }
            let database = DatabaseKey(
                container: "app", environment: .production, scope: .public, owner: DatabaseKey.publicOwner)
            let type = RecordType(
                name: "Note",
                grants: [Grant(role: "_world", permissions: .read), Grant(role: "_icloud", permissions: .create)])
            let install = InstallSchema(
                container: "app", environment: .production, version: 1, schema: Schema(types: [type]))
            try apply(ShardCommand.record(.installSchema(install)).encoded())
            let effects = (0..<1_001).map { number in
                var subscription = Subscription(id: "s", scope: .public, kind: .query)
                subscription.recordType = "Note"
                subscription.query = Query(recordType: "Note")
                subscription.firing = .all
                var user = database
                (user.scope, user.owner) = (.private, "_u\(number)")
                return Effect.watch(Watcher(subscriber: user, home: 1, subscription: subscription))
            }
            try apply(
                ShardCommand.deliver(OutboxDelivery(source: 7, incarnation: 1, first: 1, effects: effects)).encoded())
            #expect(machine.waitingMatches == 0 && !machine.isUrgent)
            let save = ModifyRecords(
                zone: ZoneKey(database: database, name: ZoneKey.defaultZoneName), schemaVersion: 1,
                caller: Caller(user: "_me"), time: 1_000, operations: [RecordChange(.create, "a", type: "Note")])
            try apply(ShardCommand.record(.modifyRecords(save)).encoded())
            #expect(machine.waitingMatches == 1 && machine.isUrgent)
            try apply(
                try #require(machine.maintenance(now: 1, at: FeatureLevel.supported.upperBound, random: { 0 })))
            #expect(machine.waitingMatches == 0 && !machine.isUrgent)
        }

        private func schema(indexes: RecordModel.IndexOptions) -> Schema {
            Schema(types: [
                RecordType(
                    name: "Note",
                    fields: [
                        FieldDefinition(name: "number", type: FieldType(.int64), indexes: indexes),
                        FieldDefinition(name: "owner", type: FieldType(.reference)),
                    ])
            ])
        }

        private func install(_ schema: Schema, version: UInt64, on node: ClusterNode) async throws {
            let outcome = try await Commands.submit(
                .record(
                    .installSchema(
                        InstallSchema(
                            container: Commands.database.container, environment: Commands.database.environment,
                            version: version, schema: schema))), to: node)
            #expect(outcome == .schemaInstalled)
        }

        /// Asks until the answer is another than "try again later"; each question goes through a round of the cluster.
        private func query(_ query: Query, on node: ClusterNode) async throws -> (records: Int, refusals: Int) {
            var refusals = 0
            while true {
                let read = ShardRead.query(
                    RecordQuery(
                        zone: Commands.zone, schemaVersion: 2, caller: Caller(user: "_me"), query: query, limit: 200),
                    ShardRead.Rendering(desiredKeys: [], numbersAsStrings: false))
                let bytes = try await node.router.read(
                    read.encoded(), from: node.map.group(of: Commands.zone), by: node.deadline())
                switch try ReadAnswer(decoding: bytes) {
                case .found(let answer): return (try JSONParser.parse(answer.bytes).array?.count ?? -1, refusals)
                case .refused(let error):
                    try #require(error.code == .tryAgainLater, "\(error)")
                    refusals += 1
                case .needsSchema(let installed): Issue.record("schema \(installed)")
                }
            }
        }

        @Test(
            "an index over records that were there is built while requests go on, and only then read",
            .timeLimit(.minutes(10)))
        func indexBuilding() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3)
            let node = try cluster.node(1)
            try await install(schema(indexes: []), version: 1, on: node)
            try await save(3_000, on: node)
            try await install(schema(indexes: [.queryable, .sortable]), version: 2, on: node)
            let few = Query(
                recordType: "Note",
                filters: [Filter(field: "number", comparator: .lessThan, value: .int64(120))],
                sorts: [Sort(field: "number", isAscending: false)])
            let found = try await query(few, on: node)
            #expect(found.records == 120)
            #expect(found.refusals > 0, "3,000 records were indexed in one command")
            await cluster.stop()
        }

        @Test(
            "what a deletion in a default zone takes with it goes by and by, without another request",
            .timeLimit(.minutes(10)))
        func cascade() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3)
            let node = try cluster.node(2)
            try await install(schema(indexes: []), version: 1, on: node)
            _ = try await Commands.submit(Commands.save("list", number: 0), to: node)
            try await save(700, target: "list", on: node)
            let outcome = try await Commands.submit(
                .record(
                    .modifyRecords(
                        ModifyRecords(
                            zone: Commands.zone, schemaVersion: 1, caller: Caller(user: "_me"), time: 2_000,
                            operations: [RecordChange(.forceDelete, "list")]))), to: node)
            #expect(outcome == .records([.deleted]))
            for name in ["n0", "n350", "n699"] {
                while try await !Commands.lookup(name, on: node).contains("NOT_FOUND") {}
            }
            await cluster.stop()
        }
    }
}
