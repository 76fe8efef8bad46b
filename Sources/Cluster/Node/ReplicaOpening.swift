import Foundation
import GRDB
import KeyValueStore
import Logging
import RaftCore
import RecordStore
package import Storage
import Synchronization
import Wire

/// Opens one replica: its database, and what the log knows of it, brought together.
struct ReplicaOpening {
    var group: GroupID
    /// Who the replica is in its group.
    var id: ReplicaID
    /// The members that the group began with, for a replica that the cluster was made with; no voters for one that
    /// joins.
    var bootstrap: RaftCore.Configuration
    /// Whether this node should lead the group.
    var isPreferred: Bool
    var machine: any StateMachine
    var settings: NodeSettings
    var log: RaftLog
    var recovered: RecoveredGroup
    var levels: FeatureLevels
    var platform: any NodePlatform
    var logger: Logger

    func open(worker: any SerialQueue) async throws -> Replica {
        let path = Self.databasePath(of: group, in: settings.dataPath)
        let options = ShardDatabaseOptions()
        let database = try ShardDatabase.open(path: path, options: options) { [machine, bootstrap] db in
            try AppliedRow.create(in: db, configuration: bootstrap)
            try machine.createTables(in: db)
        }
        let applied = try load(database, path)
        let restored = try await restoredState(applied: applied)
        let now = platform.clock.now
        let applier = try Applier(
            group: group, machine: machine, database: database, path: path, options: options, log: log,
            settings: settings.apply, levels: levels, logger: logger)
        let raft = Raft(
            id: id, settings: raftSettings, seed: platform.random(),
            restored: restored, now: now)
        return Replica(raft: raft, applier: applier, worker: worker, restored: restored, now: now)
    }

    /// Has the machine read what the database holds, and says where that stands. Called before the node does anything
    /// else, so it may block.
    private func load(_ database: ShardDatabase, _ path: String) throws -> SnapshotMark {
        if try database.read({ try !AppliedRow.isCurrent($0) }) {
            try database.write { try AppliedRow.upgrade($0) }
        }
        let level = try database.read { try AppliedRow.level(of: $0) }
        if let refusal = FeatureLevels.refusal(of: level, in: path, supported: levels.supported) {
            throw NodeStartError(refusal)
        }
        // A crash may have come between the two.
        try levels.record(level)
        try database.write { try machine.upgradeTables(in: $0) }
        return try database.read { db in
            try machine.didReplace(db)
            return try AppliedRow.mark(of: db)
        }
    }

    /// The file of a group's database.
    static func databasePath(of group: GroupID, in folder: String) -> String {
        guard let shard = group.shard else { return folder + "/directory.sqlite" }
        let number = String(shard)
        return "\(folder)/shards/\(String(repeating: "0", count: max(0, 4 - number.count)))\(number).sqlite"
    }

    /// The preferred leader of a group without a leader campaigns first, so that leaders spread over the nodes.
    private var raftSettings: RaftSettings {
        var settings = self.settings.raft
        settings.electionTimeoutMilliseconds = self.settings.electionTimeoutMilliseconds
        settings.heartbeatIntervalMilliseconds = self.settings.heartbeatIntervalMilliseconds
        // Mixed, because neighbouring groups have neighbouring leaders.
        var mixer = SplitMix64(seed: group.rawValue)
        settings.firstTurn = mixer.next()
        // The least election timeout of the group: that of the preferred leader, before it is made longer for the
        // others.
        if self.settings.usesLeases {
            settings.lease = LeaseSettings(promiseMilliseconds: self.settings.electionTimeoutMilliseconds)
        }
        if !isPreferred {
            settings.electionTimeoutMilliseconds = settings.electionTimeoutMilliseconds * 3 / 2
        }
        return settings
    }

    /// What the core is restored from. The database may be ahead of the log's snapshot mark: that is what a checkpoint
    /// is for. It is ahead of the log's end, or has another entry than the log, only where a crash came between the
    /// installing of a snapshot and its mark in the log; then the mark is written now.
    private func restoredState(applied: SnapshotMark) async throws -> RestoredState {
        var recovered = recovered
        if applied.position.index > recovered.lastLog.index || contradicts(applied.position) {
            logger.warning(
                """
                group \(group): the database stands at \(applied.position), and the log ends at \(recovered.lastLog). That \
                is as it should be where a snapshot was being installed when the node stopped; otherwise the disk lost \
                what it had said it kept
                """)
            var hardState = recovered.hardState
            if hardState.term < applied.position.term { hardState = HardState(term: applied.position.term) }
            try await write(LogWrite(group: group, hardState: hardState, snapshotMark: applied))
            recovered = RecoveredGroup(hardState: hardState, snapshot: applied)
        }
        let snapshot =
            recovered.snapshot
            ?? SnapshotMark(position: .zero, configuration: bootstrap)
        guard applied.position.index >= snapshot.position.index else {
            throw StorageMismatch(
                "the database of group \(group) stands at \(applied.position), but the log keeps only what comes after "
                    + "\(snapshot.position): the file was replaced by an older one. Put the newest one back")
        }
        var restored = RestoredState(
            hardState: recovered.hardState, snapshot: snapshot, lastLog: recovered.lastLog, terms: recovered.terms,
            configurations: recovered.configurations.map {
                ConfigurationAt(index: $0.index, configuration: $0.configuration)
            })
        restored.applied = applied.position.index
        return restored
    }

    /// Whether the log has another entry at the position than the one that was applied.
    private func contradicts(_ applied: LogPosition) -> Bool {
        guard applied.index > recovered.snapshot?.position.index ?? .zero else { return false }
        guard let run = recovered.terms.last(where: { $0.index <= applied.index }) else { return false }
        return run.term != applied.term
    }

    private func write(_ write: LogWrite) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            log.submit([write]) { continuation.resume(with: $0.mapError { $0 }) }
        }
    }
}

/// The file `restored.json` that a restore leaves in a data folder, until every group has begun a new incarnation.
final class RestoreMarker: Sendable {
    private struct Content: Codable {
        var incarnation: UInt64
    }

    private let path: String
    private let isThere: Atomic<Bool>

    static func path(in folder: String) -> String { folder + "/restored.json" }

    init(folder: String) {
        path = Self.path(in: folder)
        isThere = Atomic(FileManager.default.fileExists(atPath: path))
    }

    var isPresent: Bool { isThere.load(ordering: .acquiring) }

    /// The incarnation that a restore begins.
    func incarnation() throws -> UInt64? {
        guard isPresent else { return nil }
        do {
            return try JSONDecoder().decode(Content.self, from: Data(contentsOf: URL(filePath: path))).incarnation
        } catch {
            throw NodeStartError("\(path) cannot be read: \(error). Restore the backup again")
        }
    }

    func remove() throws {
        try removeFile(at: path)
        isThere.store(false, ordering: .releasing)
    }
}

/// What a restore makes every shard begin.
package struct NewIncarnation {
    private let node: ClusterNode

    /// Of the cluster that a node is of.
    package init(of node: ClusterNode) { self.node = node }

    /// How long clients wait until all shards have the copies of subscriptions again.
    private static let copiesMillisecondsMax: UInt64 = 60_000

    /// The greatest incarnation of the data in a node's folder; the node does not run. A database that cannot be read
    /// does not count: it is exchanged, or keeps its node from starting.
    package static func newest(inStopped folder: String) throws(DiskError) -> UInt64 {
        let shards = folder + "/shards"
        guard FileManager.default.fileExists(atPath: shards) else { return 0 }
        var newest: UInt64 = 0
        for name in try listFolder(at: shards) where name.hasSuffix(".sqlite") {
            let found = try? SnapshotInstall.read("\(shards)/\(name)") { db in
                max(try RecordTables.newestIncarnation(in: db), try KeyValueTables.newestIncarnation(in: db))
            }
            newest = max(newest, found ?? 0)
        }
        return newest
    }

    /// Has the node of a folder begin an incarnation as it starts.
    package static func mark(_ folder: String, with incarnation: UInt64) throws(DiskError) {
        try replaceFile(at: RestoreMarker.path(in: folder), with: Array(#"{"incarnation":\#(incarnation)}"#.utf8))
    }

    /// Has every shard begin an incarnation, and waits until homes have sent the copies of subscriptions again: a
    /// client that follows notifications from the start must not miss what is committed before the copies are there.
    package func begin(_ incarnation: UInt64) async throws {
        let shards = node.map.groups.filter { $0 != .directory }
        let command = GroupCommand.machine(ShardCommand.startIncarnation(incarnation).encoded())
        for group in shards {
            while true {
                do {
                    _ = try await node.router.submit(command, to: group, by: node.deadline())
                    break
                } catch {
                    try await node.platform.clock.sleep(milliseconds: 100)
                }
            }
        }
        let end = Deadline(milliseconds: Self.copiesMillisecondsMax, from: node.platform.clock.now)
        for group in shards {
            while await !hasSentCopies(group) {
                guard !end.isOver(at: node.platform.clock.now) else {
                    node.logger.warning(
                        "group \(group): clients are served while copies of subscriptions are still to be sent")
                    break
                }
                try await node.platform.clock.sleep(milliseconds: 50)
            }
        }
    }

    /// Whether nothing that a group has to send to others waits; false where that cannot be found out now.
    private func hasSentCopies(_ group: GroupID) async -> Bool {
        let answer = try? await node.router.read(ShardRead.hasSentCopies.encoded(), from: group, by: node.deadline())
        guard let answer, case .found(let found)? = try? ReadAnswer(decoding: answer) else { return false }
        return found.bytes == [1]
    }
}
