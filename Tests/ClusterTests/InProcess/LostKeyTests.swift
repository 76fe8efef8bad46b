import Authorization
import Directory
import GRDB
import KeyValueStore
import RecordModel
import RecordStore
import TestSupport
import Testing
import Wire

@testable import Cluster

@Suite("A record whose key is not here")
struct LostKeyTests {
    private static let zone = ZoneKey(database: Commands.database, name: "z")
    private static let owner = Caller(user: "_me")
    private static let rendering = ShardRead.Rendering(desiredKeys: nil, numbersAsStrings: false)
    private static let query = Query(recordType: "Note")
    private static let clusterKey = [UInt8](1...32)

    private static let reads: [(name: String, read: ShardRead)] = [
        (
            "lookup",
            .lookup(
                .init(
                    zone: zone, schemaVersion: 1, caller: owner,
                    items: ["a", "b", "c"].map { ($0, rendering) }))
        ),
        (
            "query",
            .query(RecordQuery(zone: zone, schemaVersion: 1, caller: owner, query: query, limit: 200), rendering)
        ),
        (
            "changes",
            .zoneChanges(
                ZoneChangesRequest(zone: zone, schemaVersion: 1, caller: owner, token: nil, limit: 200), rendering)
        ),
        (
            "query of a database",
            .databaseQuery(
                DatabaseQuery(
                    database: zone.database, schemaVersion: 1, caller: owner, query: query, limit: 200), rendering)
        ),
    ]

    /// Three records; the second one is sealed by a key that the vault of the machine does not know.
    private func world() throws -> (machine: ShardMachine, vault: FieldVault, queue: DatabaseQueue) {
        let full = FieldVault(clusterKey: Self.clusterKey)
        var snapshot = DirectorySnapshot()
        let container = Self.zone.database.container
        snapshot.take(.containerKey(container: container, try full.newContainerKey(number: 1, container: container)))
        let vault = FieldVault(clusterKey: Self.clusterKey)
        full.update(snapshot)
        vault.update(snapshot)
        let machine = ShardMachine(vault: vault)
        let queue = try DatabaseQueue()
        var schema = Commands.schema
        schema.types[0].fields.append(FieldDefinition(name: "secret", type: FieldType(.string, isEncrypted: true)))
        let install = InstallSchema(
            container: container, environment: Self.zone.database.environment, version: 1, schema: schema)
        var commands = [
            ShardCommand.record(.installSchema(install)),
            .record(.modifyZone(ModifyZone(.create, zone: Self.zone, caller: Self.owner, time: 1_000))),
        ]
        for name in ["a", "b", "c"] {
            if name == "b" {
                snapshot.take(
                    .containerKey(container: container, try full.newContainerKey(number: 2, container: container)))
                full.update(snapshot)
            }
            let place = FieldPlace(zone: Self.zone, recordName: name, field: "secret")
            let sealed = try full.seal(.encrypted(.string("hidden")), container: container, place: place)
            let change = RecordChange(
                .create, name, type: "Note",
                fields: name == "c" ? [] : [RecordChange.FieldChange(name: "secret", value: sealed)])
            commands.append(
                .record(
                    .modifyRecords(
                        ModifyRecords(
                            zone: Self.zone, schemaVersion: 1, caller: Self.owner, time: 1_000, operations: [change]))))
        }
        try queue.write { db in
            try machine.createTables(in: db)
            _ = try machine.apply(
                commands.map { $0.encoded() }, at: FeatureLevel.supported.upperBound, in: db, while: { true })
        }
        return (machine, vault, queue)
    }

    @Test(
        "keeps nobody from the others, in lookups, queries and changes: it is that record's error",
        arguments: LostKeyTests.reads.indices)
    func oneRecord(_ number: Int) throws {
        let (machine, _, queue) = try world()
        let read = Self.reads[number]
        do {
            _ = try queue.read { try machine.read(read.read.encoded(), in: $0) }
            Issue.record("\(read.name) did not say that it lacks a key")
        } catch let behind as DirectoryBehind {
            // Where the directory cannot be asked, the key may be on its way: then nothing is told.
            guard case .refused(let error) = try ReadAnswer(decoding: behind.refusal) else {
                throw TestFailure("\(read.name) is not refused")
            }
            #expect(error.code == .tryAgainLater)
            guard case .found(let answer) = try ReadAnswer(decoding: behind.answer) else {
                throw TestFailure("\(read.name) has no answer")
            }
            let texts: [String] =
                number == 3
                ? try ShardList<RankedRecord>(decoding: answer.bytes).elements.map {
                    String(decoding: $0.json, as: UTF8.self)
                }
                : try #require(try JSONParser.parse(answer.bytes).array).map {
                    String(decoding: $0.serialized(), as: UTF8.self)
                }
            #expect(texts.count == 3, "\(read.name)")
            for (place, text) in texts.enumerated() {
                #expect(text.contains(ErrorCode.internalError.rawValue) == (place == 1), "\(read.name): \(text)")
                #expect(text.contains("hidden") == (place == 0), "\(read.name): \(text)")
                // Of a name there may be a record in each zone.
                #expect(text.contains(#""zoneName":"z""#) == (number == 3), "\(read.name): \(text)")
            }
        }
    }

    @Test("is told at once where no record of the answer needs the key")
    func others() throws {
        let (machine, _, queue) = try world()
        let read = ShardRead.lookup(
            .init(
                zone: Self.zone, schemaVersion: 1, caller: Self.owner,
                items: [("a", Self.rendering), ("b", .init(desiredKeys: ["number"], numbersAsStrings: false))]))
        let bytes = try queue.read { try machine.read(read.encoded(), in: $0) }
        guard case .found(let answer) = try ReadAnswer(decoding: bytes) else { throw TestFailure("no answer") }
        #expect(!String(decoding: answer.bytes, as: UTF8.self).contains("serverErrorCode"))
    }

    @Test(
        "a node that has not heard of the cluster's secret hands out no token in clear before the cluster was asked",
        arguments: [true, false])
    func unknownSecret(_ isPreferences: Bool) throws {
        let (machine, vault, queue) = try world()
        let read: ShardRead =
            isPreferences
            ? .keyValue(StoreKey(home: Self.zone.database), .changes(since: nil, limit: 1))
            : .notifications(.init(subscriber: Self.zone.database, token: nil, client: nil, limit: 1))
        func answer() throws -> [UInt8] { try queue.read { try machine.read(read.encoded(), in: $0) } }
        let behind = try #require(throws: DirectoryBehind.self) { _ = try answer() }
        guard case .refused(let error) = try ReadAnswer(decoding: behind.refusal),
            case .found(let clear) = try ReadAnswer(decoding: behind.answer)
        else { throw TestFailure("\(behind)") }
        #expect(error.code == .tryAgainLater)
        let secret = ClusterSecret(key: Self.clusterKey, clearUntil: 0)
        func position(_ answer: ShardAnswer) -> [UInt8]? {
            let text = String(decoding: answer.cursor ?? [], as: UTF8.self)
            let purpose = isPreferences ? "preferences token" : "notifications token"
            return Base64.decode(text).flatMap { secret.open($0, purpose: purpose) }
        }
        #expect(position(clear) == nil)
        var snapshot = DirectorySnapshot()
        snapshot.take(.secret(secret))
        vault.update(snapshot)
        guard case .found(let sealed) = try ReadAnswer(decoding: try answer()) else { throw TestFailure("no answer") }
        #expect(position(sealed) != nil)
    }
}
