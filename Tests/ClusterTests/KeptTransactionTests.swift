import Directory
import Foundation
import GRDB
import Logging
import RaftCore
import RecordModel
import Storage
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Cluster

@Suite("A transaction that failed while it was being ended")
struct KeptTransactionTests {
    @Test("what it did is known where the database kept it all the same", arguments: [false, true])
    func directory(isLogged: Bool) throws {
        let folder = NSTemporaryDirectory() + "kept-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (log, _) = try RaftLog.open(directory: folder + "/log", options: RaftLogOptions())
        let directory = DirectoryMachine(vault: FieldVault(clusterKey: nil))
        let machine = KeepingMachine(base: directory)
        let path = folder + "/directory.sqlite"
        let database = try ShardDatabase.open(path: path) { db in
            try AppliedRow.create(in: db, configuration: RaftCore.Configuration(voters: [ReplicaID(1)]))
            try machine.createTables(in: db)
        }
        let applier = try Applier(
            group: .directory, machine: machine, database: database, path: path, options: ShardDatabaseOptions(),
            log: log, settings: ApplySettings(), levels: FeatureLevels(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let command = GroupCommand.machine(DirectoryEntry(.setSignUp(isOpen: true)).encoded()).encoded()
        let entry = Entry(index: LogIndex(1), term: Term(1), payload: .command(command))

        var reports: [Applier.Progress] = []
        if isLogged {
            let written = DispatchSemaphore(value: 0)
            log.submit([LogWrite(group: .directory, entries: [entry])]) { _ in written.signal() }
            written.wait()
        }
        #expect(
            applier.enqueue(
                isLogged ? .logged(from: entry.index, through: entry.index) : .entries([entry], completions: [:])))
        applier.drain { reports.append($0) }
        guard case .failed? = reports.last else { throw TestFailure("the first try did not fail: \(reports)") }
        #expect(!directory.snapshot.isSignUpOpen)
        #expect(machine.rollbackCount == 1)
        #expect(applier.reschedule())
        applier.drain { reports.append($0) }
        guard reports.count == 2, case .applied(let position, nil)? = reports.last else {
            throw TestFailure("the second try did not succeed: \(reports)")
        }
        #expect(position == entry.position)
        #expect(directory.snapshot.isSignUpOpen)
        try database.close()
        log.close()
    }
}

/// Has its first transaction kept, and fails it.
private final class KeepingMachine: StateMachine {
    let base: DirectoryMachine
    private let transactions = Atomic(0)
    private let rollbacks = Atomic(0)

    /// How many transactions it heard of that were rolled back.
    var rollbackCount: Int { rollbacks.load(ordering: .relaxed) }

    init(base: DirectoryMachine) { self.base = base }

    func createTables(in db: Database) throws { try base.createTables(in: db) }

    func apply(
        _ commands: [[UInt8]], at level: FeatureLevel, in db: Database, while goesOn: () -> Bool
    ) throws -> [[UInt8]] {
        let outcomes = try base.apply(commands, at: level, in: db, while: goesOn)
        if transactions.add(1, ordering: .relaxed).newValue == 1 {
            try db.commit()
            throw DatabaseError(resultCode: .SQLITE_IOERR)
        }
        return outcomes
    }

    func unknownPart(of command: [UInt8]) -> WireError? { base.unknownPart(of: command) }
    func didCommit() { base.didCommit() }
    func didRollBack() {
        rollbacks.add(1, ordering: .relaxed)
        base.didRollBack()
    }

    func didReplace(_ db: Database) throws { try base.didReplace(db) }
    func read(_ request: [UInt8], in db: Database) throws -> [UInt8] { try base.read(request, in: db) }
    func hashState(in db: Database, into fold: (UnsafeRawBufferPointer) -> Void) throws {
        try base.hashState(in: db, into: fold)
    }
}
