import Foundation
import GRDB
import Logging
import RaftCore
import RecordModel
import Storage
import Synchronization
import Testing

@testable import Cluster
@testable import Directory

/// An applier over a database in a folder of its own.
final class ApplierBench {
    /// The levels that a folder was told.
    final class Record: Sendable {
        let levels = Mutex<[FeatureLevel]>([])
    }

    let folder = NSTemporaryDirectory() + "too-old-\(UUID().uuidString)"
    let database: ShardDatabase
    let log: RaftLog
    let record = Record()
    let group: GroupID

    init(_ group: GroupID = .shard(0)) throws {
        self.group = group
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        (log, _) = try RaftLog.open(directory: folder + "/log", options: RaftLogOptions())
        let machine = Self.machine(of: group)
        database = try ShardDatabase.open(path: folder + "/group.sqlite") { db in
            try AppliedRow.create(in: db, configuration: RaftCore.Configuration(voters: [ReplicaID(1)]))
            try machine.createTables(in: db)
        }
    }

    private static func machine(of group: GroupID) -> any StateMachine {
        let vault = FieldVault(clusterKey: nil)
        return group == .directory ? DirectoryMachine(vault: vault) : ShardMachine(vault: vault)
    }

    /// As a build of such levels opens it.
    func applier(
        _ levels: ClosedRange<UInt64> = 1...2, _ settings: ApplySettings = ApplySettings()
    ) throws -> Applier {
        let machine = Self.machine(of: group)
        try database.read { try machine.didReplace($0) }
        return try Applier(
            group: group, machine: machine, database: database, path: folder + "/group.sqlite",
            options: ShardDatabaseOptions(), log: log, settings: settings,
            levels: FeatureLevels(
                supported: FeatureLevel(levels.lowerBound)...FeatureLevel(levels.upperBound)
            ) { [record] level in record.levels.withLock { $0.append(level) } },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Applies commands as entries from an index on.
    /// - Returns: the error that apply stopped with, what the callers were told, by the offsets of their commands, and
    ///   where each transaction ended.
    func apply(
        _ commands: [[UInt8]], from first: UInt64, by applier: Applier
    ) -> (error: BuildTooOld?, answers: [Int: Result<[UInt8], ReplicaError>], transactions: [UInt64]) {
        let answers = Mutex<[Int: Result<[UInt8], ReplicaError>]>([:])
        var completions: [Int: Completion] = [:]
        for offset in commands.indices {
            completions[offset] = { result in
                answers.withLock { answers in
                    #expect(answers[offset] == nil, "answered twice")
                    answers[offset] = result
                }
            }
        }
        let entries = commands.enumerated().map { offset, command in
            Entry(index: LogIndex(first + UInt64(offset)), term: Term(1), payload: .command(command))
        }
        _ = applier.enqueue(.entries(entries, completions: completions))
        var error: BuildTooOld?
        var transactions: [UInt64] = []
        applier.drain { progress in
            switch progress {
            case .failed(let failure): error = failure as? BuildTooOld
            case .applied(let position, _): transactions.append(position.index.rawValue)
            }
        }
        return (error, answers.withLock(\.self), transactions)
    }

    var applied: LogIndex {
        get throws { try database.read { try AppliedRow.position(of: $0).index } }
    }

    deinit {
        try? database.close()
        log.close()
        try? FileManager.default.removeItem(atPath: folder)
    }
}
