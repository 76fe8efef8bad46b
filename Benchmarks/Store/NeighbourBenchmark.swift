import ArgumentParser
import Authorization
import Cluster
import Directory
import Dispatch
import Foundation
import RecordModel
import RecordStore
import Storage
import Synchronization
import Wire

/// `store-benchmarks neighbours`: what a container that asks for as much as it can does to another one on the same
/// shard.
///
/// Both read through the threads and lines that a node has for reads. The heavy one keeps 64 queries of 31 filters over
/// long lists waiting; the light one asks for a page of 50 records, again and again.
struct NeighbourCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "neighbours", abstract: "What a heavy container does to a light one.")

    @Option(help: "Seconds of each measurement.") var seconds = 3.0
    @Option(help: "Queries that the heavy container keeps waiting.") var outstanding = 64

    func run() throws {
        let folder = NSTemporaryDirectory() + "neighbours-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let shard = try NeighbourShard(path: folder + "/shard.sqlite")
        try shard.fill()
        _ = shard.lightReads(seconds: 0.2)
        let alone = shard.lightReads(seconds: seconds)
        for _ in 0..<outstanding { shard.keepHeavy() }
        let beside = shard.lightReads(seconds: seconds)
        shard.end()
        let heavy = shard.heavyReads.load(ordering: .relaxed)
        print("light container alone          \(Int(alone)) pages/s")
        print("beside \(outstanding) heavy queries      \(Int(beside)) pages/s, \(Int(beside / alone * 100)) %")
        print("heavy container                \(Int(Double(heavy) / seconds)) pages/s")
    }
}

/// One shard with two containers, read as a node reads.
private final class NeighbourShard: Sendable {
    let heavyReads = Atomic<Int>(0)
    private let database: ShardDatabase
    private let machine = ShardMachine(vault: FieldVault(clusterKey: nil))
    private let pool = BlockingPool(SystemThreads(BlockingPool.Bounds.reads.threads), .reads)
    private let isEnding = Atomic(false)
    private let heavy = NeighbourShard.read(
        "heavy",
        filters: Array(
            repeating: Filter(
                field: "list", comparator: .notListContainsAny,
                value: .list(.int64, (0..<250).map { .int64(-1 - $0) })), count: 31))
    private let light = NeighbourShard.read("light", filters: [])

    private static let caller = Caller(user: "_ann")

    private static func zone(_ container: String) -> ZoneKey {
        let database = DatabaseKey(container: container, environment: .production, scope: .private, owner: "_ann")
        return ZoneKey(database: database, name: ZoneKey.defaultZoneName)
    }

    private static func read(_ container: String, filters: [Filter]) -> [UInt8] {
        let query = Query(
            recordType: "Item",
            filters: filters + [Filter(field: "one", comparator: .equals, value: .int64(1))],
            sorts: [Sort(field: "rank")])
        return ShardRead.query(
            RecordQuery(zone: zone(container), schemaVersion: 1, caller: caller, query: query, limit: 50),
            ShardRead.Rendering(desiredKeys: ["rank"], numbersAsStrings: false)
        ).encoded()
    }

    init(path: String) throws {
        database = try ShardDatabase.open(path: path) { [machine] in try machine.createTables(in: $0) }
    }

    func fill() throws {
        let fields = [
            FieldDefinition(name: "list", type: FieldType(.int64, isList: true), indexes: .queryable),
            FieldDefinition(name: "one", type: FieldType(.int64), indexes: .queryable),
            FieldDefinition(name: "rank", type: FieldType(.int64), indexes: .sortable),
        ]
        for (container, count, members) in [("heavy", 48, 10_000), ("light", 2_000, 3)] {
            let install = InstallSchema(
                container: container, environment: .production, version: 1,
                schema: Schema(types: [RecordType(name: "Item", fields: fields)]))
            var commands = [ShardCommand.record(.installSchema(install))]
            for number in 0..<count {
                let list = (0..<members).map { FieldValue.int64(Int64($0)) }
                let change = RecordChange(
                    .create, "r\(number)", type: "Item",
                    fields: [
                        .init(name: "list", value: .list(.int64, list)), .init(name: "one", value: .int64(1)),
                        .init(name: "rank", value: .int64(Int64(number))),
                    ])
                commands.append(
                    .record(
                        .modifyRecords(
                            ModifyRecords(
                                zone: Self.zone(container), schemaVersion: 1, caller: Self.caller, time: 1_000,
                                operations: [change]))))
            }
            try database.write { db in
                _ = try machine.apply(
                    commands.map { $0.encoded() }, at: FeatureLevel.supported.upperBound, in: db, while: { true })
            }
            machine.didCommit()
        }
    }

    /// Pages a second that the light container gets, one after another.
    func lightReads(seconds: Double) -> Double {
        let answered = DispatchSemaphore(value: 0)
        let begin = DispatchTime.now().uptimeNanoseconds
        var count = 0
        while true {
            let elapsed = Double(DispatchTime.now().uptimeNanoseconds - begin) / 1e9
            if elapsed >= seconds { return Double(count) / elapsed }
            try? pool.submit(for: "light") { [self] _ in
                answer(light)
                answered.signal()
            }
            answered.wait()
            count += 1
        }
    }

    /// Has the heavy container ask again whenever it was answered.
    func keepHeavy() {
        try? pool.submit(for: "heavy") { [self] _ in
            answer(heavy)
            heavyReads.add(1, ordering: .relaxed)
            if !isEnding.load(ordering: .relaxed) { keepHeavy() }
        }
    }

    func end() {
        isEnding.store(true, ordering: .relaxed)
        while pool.load != (0, 0) { usleep(1_000) }
    }

    private func answer(_ read: [UInt8]) {
        let answer = try? database.read(while: { true }) { try machine.read(read, in: $0) }
        guard let answer, case .found? = try? ReadAnswer(decoding: answer) else { fatalError("a read was refused") }
    }
}
