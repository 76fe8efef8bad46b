import Authorization
import Cluster
import Directory
import Foundation
import GRDB
import KeyValueStore
import RaftCore
import RecordModel
import RecordStore
import Storage
import TestSupport
import Testing
import Wire

/// SQLite has no checksums, so what it does not notice must be found by comparing state hashes of replicas, or by its
/// own check of its trees.
@Suite("Flipped bits in a shard's database")
struct ShardDamageTests {
    private static let zone = ZoneKey(database: Commands.database, name: "zone")
    private static let store = StoreKey(container: "iCloud.test", environment: .development, user: "_me")

    /// What is found in a database, and what its readers get.
    private struct Findings: Equatable {
        /// Nil where reading failed.
        var answers: [[UInt8]?]
        /// Nil where hashing failed.
        var hash: [UInt8]?
        var isSound: Bool
        var position: LogPosition?
    }

    private static func commands() -> [ShardCommand] {
        var commands = [Commands.installSchema()]
        commands.append(
            .record(
                .modifyZone(ModifyZone(.create, zone: zone, caller: Caller(user: "_me"), time: 1, schemaVersion: 1))))
        for number in Int64(0)..<80 {
            commands.append(
                Commands.save("record-\(number)", number: number, zone: number % 2 == 0 ? zone : Commands.zone))
        }
        for number in stride(from: Int64(0), to: 80, by: 8) {
            commands.append(
                .record(
                    .modifyRecords(
                        ModifyRecords(
                            zone: zone, schemaVersion: 1, caller: Caller(user: "_me"), time: 2,
                            operations: [RecordChange(.forceDelete, "record-\(number)")]))))
        }
        for number in 0..<20 {
            commands.append(
                .keyValue(
                    KeyValueCommand(
                        store: store, time: 3, writes: [.init(key: "key-\(number)", value: .string("value"))])))
        }
        return commands
    }

    private static func reads() -> [ShardRead] {
        let caller = Caller(user: "_me")
        let rendering = ShardRead.Rendering(desiredKeys: nil, numbersAsStrings: false)
        let names = (0..<80).map { "record-\($0)" }
        var reads = [zone, Commands.zone].map { zone in
            ShardRead.lookup(
                ShardRead.RecordLookup(
                    zone: zone, schemaVersion: 1, caller: caller, items: names.map { ($0, rendering) }))
        }
        reads.append(.zoneChanges(ZoneChangesRequest(zone: zone, schemaVersion: 1, caller: caller), rendering))
        reads.append(.keyValue(store, .list(after: nil)))
        reads.append(.keyValue(store, .changes(since: nil, limit: 100)))
        return reads
    }

    /// A database with records, tombstones, index rows and preferences, all of it in the file.
    private static func make(at path: String) throws {
        let machine = ShardMachine(vault: FieldVault(clusterKey: nil))
        let database = try ShardDatabase.open(path: path) { db in
            try AppliedRow.create(in: db, configuration: RaftCore.Configuration(voters: [ReplicaID(1)]))
            try machine.createTables(in: db)
        }
        let outcomes = try database.write { db in
            try AppliedRow.setPosition(LogPosition(index: LogIndex(100), term: Term(7)), in: db)
            return try machine.apply(
                commands().map { $0.encoded() }, at: FeatureLevel.supported.upperBound, in: db, while: { true })
        }
        machine.didCommit()
        for outcome in outcomes.prefix(92) {
            if case .refused(let error) = try RecordOutcome(decoding: outcome) { Issue.record("\(error)") }
        }
        try #require(try database.truncateWAL())
        try database.close()
    }

    /// With tokens in clear, as in a cluster without a secret: sealed ones differ each time.
    private static func answer(of machine: ShardMachine, to read: ShardRead, in db: Database) -> [UInt8]? {
        do { return try machine.read(read.encoded(), in: db) } catch { return (error as? DirectoryBehind)?.answer }
    }

    private static func findings(_ path: String) -> Findings {
        let machine = ShardMachine(vault: FieldVault(clusterKey: nil))
        let unreadable = Findings(answers: [], hash: nil, isSound: false, position: nil)
        guard let queue = try? DatabaseQueue(path: path) else { return unreadable }
        defer { try? queue.close() }
        return queue.unsafeRead { db in
            let answers = reads().map { answer(of: machine, to: $0, in: db) }
            var hash: [UInt8]? = []
            do {
                try machine.hashState(in: db) { hash?.append(contentsOf: $0) }
            } catch {
                hash = nil
            }
            let check = try? String.fetchAll(db, sql: "PRAGMA integrity_check")
            return Findings(
                answers: answers, hash: hash, isSound: check == ["ok"],
                position: try? AppliedRow.mark(of: db).position)
        }
    }

    @Test("the row of what was applied is told from a damaged one, and gets checksums where it has none")
    func appliedRow() throws {
        let configuration = RaftCore.Configuration(voters: [ReplicaID(1)])
        try DatabaseQueue().write { db in
            // As it was before it had checksums.
            try db.execute(
                sql: """
                    CREATE TABLE applied (
                        id INTEGER PRIMARY KEY CHECK (id = 1), log_index INTEGER NOT NULL, term INTEGER NOT NULL,
                        configuration BLOB NOT NULL) STRICT
                    """)
            try db.execute(
                sql: "INSERT INTO applied VALUES (1, 7, 3, ?)", arguments: [Data(configuration.encoded())])
            #expect(try !AppliedRow.isCurrent(db))
            try AppliedRow.upgrade(db)
            #expect(try AppliedRow.isCurrent(db))
            #expect(try AppliedRow.level(of: db) == .first)
            let position = LogPosition(index: LogIndex(7), term: Term(3))
            let mark = SnapshotMark(position: position, configuration: configuration)
            #expect(try AppliedRow.mark(of: db) == mark)
            for damage in ["log_index = 1 << 40", "term = 2", "position_sum = 0", "configuration = x'00'"] {
                try db.inSavepoint {
                    try db.execute(sql: "UPDATE applied SET \(damage)")
                    #expect(throws: DatabaseError.self, "\(damage)") { try AppliedRow.mark(of: db) }
                    return .rollback
                }
            }
            #expect(try AppliedRow.mark(of: db) == mark)
            try db.execute(sql: "UPDATE applied SET feature_level = 2")
            #expect(throws: DatabaseError.self) { try AppliedRow.level(of: db) }
        }
    }

    @Test("whatever changes an answer is found by hashing or by SQLite's check")
    func flippedBits() throws {
        let folder = NSTemporaryDirectory() + "shard-damage-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Self.make(at: folder + "/whole.sqlite")
        let bytes = Array(try Data(contentsOf: URL(filePath: folder + "/whole.sqlite")))
        let whole = Self.findings(folder + "/whole.sqlite")
        try #require(whole.isSound && !whole.answers.contains(nil) && whole.hash != nil)
        // All of them take minutes; some of every page do otherwise.
        var counts: [String: Int] = [:]
        let path = folder + "/damaged.sqlite"
        for position in stride(from: 0, to: bytes.count, by: Soak.isOn ? 64 : 64 * 9) {
            var damaged = bytes
            damaged[position + position / 64 % 61] ^= UInt8(1 << (position / 64 % 8))
            try Data(damaged).write(to: URL(filePath: path))
            let found = Self.findings(path)
            for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + end) }
            let isWrong = zip(found.answers, whole.answers).contains { $0 != nil && $0 != $1 }
            let isHashed = found.hash != whole.hash
            // The row by which the log is cut is told from a sound one by itself.
            #expect(found.position == nil || found.position == whole.position, "byte \(position)")
            switch (isWrong, isHashed, !found.isSound) {
            case (false, false, false) where found.position == nil:
                counts["in the row of what is applied", default: 0] += 1
            case (false, false, false) where found.answers.contains(nil): counts["by readers only", default: 0] += 1
            case (false, false, false): counts["harmless", default: 0] += 1
            case (_, true, true): counts["by both", default: 0] += 1
            case (_, true, false): counts["by hashing only", default: 0] += 1
            case (_, false, true): counts["by SQLite's check only", default: 0] += 1
            case (true, false, false): Issue.record("byte \(position): a wrong answer that nothing finds")
            }
        }
        print(
            "shard damage: \(counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", "))"
        )
        #expect(counts["by hashing only", default: 0] > 0)
    }
}
