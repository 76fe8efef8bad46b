package import Directory
package import GRDB
import RaftCore
package import RecordModel
import Synchronization
package import Wire

/// Group 0: applies directory commands and keeps the copy in memory that requests read.
package final class DirectoryMachine: StateMachine {
    private struct State {
        var snapshot = DirectorySnapshot()
        /// Changes of the open transaction.
        var pending: [DirectoryChange] = []
    }

    /// Sessions that are kept in memory: about half a KiB each.
    private static let sessionsMax = 65_536

    private let state = Mutex(State())
    private let sessions = Mutex(SessionCache(countMax: sessionsMax))
    /// Finds accounts by their user record names.
    package let userNames = UserNames()
    private let vault: FieldVault
    private let changed: @Sendable () -> Void

    /// - Parameters:
    ///   - vault: is told the containers' keys.
    ///   - changed: called once `snapshot` says something new.
    package init(vault: FieldVault, changed: @escaping @Sendable () -> Void = {}) {
        self.vault = vault
        self.changed = changed
    }

    /// What this node knows of the directory; other nodes may be a little ahead.
    package var snapshot: DirectorySnapshot { state.withLock(\.snapshot) }

    /// A session that this node has in memory.
    func session(_ key: SessionKey) -> Session? { sessions.withLock { $0.session(key) } }

    /// Reads a session, and keeps it unless it ends meanwhile.
    /// - Parameter reader: one that has read nothing yet: its snapshot begins with its first question.
    func readSession(_ key: SessionKey, _ reader: AccountReader) throws -> Session? {
        let ticket = sessions.withLock { $0.began(key) }
        do {
            let session = try reader.session(key)
            sessions.withLock { $0.ended(key, ticket, session) }
            return session
        } catch {
            sessions.withLock { $0.ended(key, ticket, nil) }
            throw error
        }
    }

    /// Makes the directory's tables, empty.
    package func createTables(in db: Database) throws { try DirectoryTables.create(in: db) }

    /// Makes the index that databases of earlier builds lack.
    package func upgradeTables(in db: Database) throws { try DirectoryTables.upgrade(in: db) }

    /// Applies encoded `DirectoryEntry` values, and collects their changes for `didCommit`.
    /// - Returns: an encoded `DirectoryOutcome` for each; a command that cannot be read is refused.
    /// - Throws: `UnknownCommand`; `StorageMismatch` for a stored value that cannot be read; errors of the database.
    package func apply(
        _ commands: [[UInt8]], at level: FeatureLevel, in db: Database, while goesOn: () -> Bool
    ) throws -> [[UInt8]] {
        var outcomes: [[UInt8]] = []
        for (offset, command) in commands.enumerated() {
            if offset > 0, !goesOn() { break }
            outcomes.append(try apply(command, offset: offset, at: level, in: db))
        }
        return outcomes
    }

    private func apply(_ command: [UInt8], offset: Int, at level: FeatureLevel, in db: Database) throws -> [UInt8] {
        let decoded: DirectoryEntry
        do throws(WireError) {
            decoded = try DirectoryEntry(decodingStrictly: command)
        } catch {
            if error.isOfNewerBuild { throw UnknownCommand(offset: offset, error: error) }
            return DirectoryOutcome.refused(ServiceError(.internalError, "unreadable directory command: \(error)"))
                .encoded()
        }
        let (outcome, changes) = try StoredValues.read { try DirectoryTables.apply(decoded, at: level, in: db) }
        if !changes.isEmpty { state.withLock { $0.pending += changes } }
        return outcome.encoded()
    }

    /// The part of an encoded `DirectoryEntry` that only a newer build can know, as `StateMachine` says.
    package func unknownPart(of command: [UInt8]) -> WireError? { unknownPart(of: command, as: DirectoryEntry.self) }

    /// Brings `snapshot` up to the committed transaction. The vault learns new keys first, and sessions that ended are
    /// forgotten. On the apply thread only.
    package func didCommit() {
        // Only the apply thread changes the snapshot. The vault knows a key before any request sees that there is one.
        let (pending, old) = state.withLock { ($0.pending, $0.snapshot) }
        if pending.isEmpty { return }
        var snapshot = old
        for change in pending { snapshot.take(change) }
        snapshot.version += 1
        vault.update(snapshot)
        // No request relies on a session that ended once this node says that it has applied its end.
        sessions.withLock { sessions in
            for case .tokenRemoved(let token) in pending { sessions.remove(token) }
        }
        for case .accountAdded(let id) in pending { userNames.didAdd(accountID: id) }
        state.withLock { $0 = State(snapshot: snapshot) }
        changed()
    }

    /// Forgets the changes of the failed transaction; `snapshot` stays as it is.
    package func didRollBack() { state.withLock { $0.pending = [] } }

    /// Reads `snapshot` from the database, and forgets the sessions and user names in memory.
    /// - Throws: `StorageMismatch` for a stored value that cannot be read; errors of the database.
    package func didReplace(_ db: Database) throws {
        var snapshot = try StoredValues.read { try DirectoryTables.snapshot(of: db) }
        snapshot.version = self.snapshot.version + 1
        vault.update(snapshot)
        sessions.withLock { $0.removeAll() }
        userNames.removeAll()
        state.withLock { $0 = State(snapshot: snapshot) }
        changed()
    }

    /// Answers a `DirectoryRead`. That of the position, which no bytes at all ask for, says that everything committed
    /// before it was applied here.
    package func read(_ request: [UInt8], in db: Database) throws -> [UInt8] {
        switch try DirectoryRead(decoding: request) {
        case .position: try AppliedRow.position(of: db).encoded()
        case .audit(let log, let after, let limit):
            try StoredValues.read { try AuditRows(of: log, in: db).page(after: after, limit: limit) }
                .encoded()
        case .search(let search): try StoredValues.read { try search.findings(in: db) }.encoded()
        }
    }

    /// A command that makes the cluster's secret, if there is none and the feature level allows it. Otherwise one that
    /// purges expired tokens and old audit records, once there is enough to purge.
    package func maintenance(now: Int64, at level: FeatureLevel, random: () -> UInt64) -> [UInt8]? {
        let snapshot = snapshot
        if snapshot.secret == nil, level >= .containerDeletion {
            let key = (0..<ClusterSecret.keyBytes / 8).flatMap { _ in withUnsafeBytes(of: random()) { Array($0) } }
            return DirectoryEntry(.makeSecret(key: key, time: now)).encoded()
        }
        guard snapshot.needsPurge(now: now) else { return nil }
        return DirectoryEntry(.purge(time: now)).encoded()
    }

    /// An audit log counts by its last record, whose hash holds all before it; that of requests once it has any.
    package func hashState(in db: Database, into fold: (UnsafeRawBufferPointer) -> Void) throws {
        try TableHash.fold(DirectoryTables.all, of: db, into: fold)
        for log in AuditLog.allCases {
            let tip = try AuditRows(of: log, in: db).tip
            if log == .requests, tip.sequence == 0 { continue }
            var writer = WireWriter()
            writer.field(1, tip.sequence)
            writer.field(2, tip.hash)
            writer.bytes.withUnsafeBytes { fold($0) }
        }
    }
}

/// Hashes whole tables in the order of their primary keys.
enum TableHash {
    static func fold(_ tables: [String], of db: Database, into fold: (UnsafeRawBufferPointer) -> Void) throws {
        for table in tables {
            let columns = try db.columns(in: table).count
            let order = (1...columns).map(String.init).joined(separator: ", ")
            let rows = try Row.fetchCursor(
                try db.cachedStatement(sql: "SELECT * FROM \(table) ORDER BY \(order)"))
            while let row = try rows.next() {
                var writer = WireWriter()
                for (position, value) in row.databaseValues.enumerated() {
                    switch value.storage {
                    case .null: break
                    case .int64(let number): writer.field(position, signed: number)
                    case .double(let number): writer.field(position, double: number)
                    case .string(let text): writer.field(position, text)
                    case .blob(let data): writer.field(position, data)
                    }
                }
                writer.bytes.withUnsafeBytes { fold($0) }
            }
        }
    }
}
