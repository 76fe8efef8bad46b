package import GRDB
import GRDBSQLite
import Synchronization

/// One SQLite file: the state of one shard.
///
/// WAL with `synchronous=NORMAL`: a commit is not synced, so after a power cut the file is consistent but may be
/// behind, and the raft log replays what is missing. What was applied is durable once a `checkpoint` that began later
/// has returned true. One writer (the apply thread), up to `readersMax` readers on snapshots, and a connection of its
/// own for checkpoints, which never blocks the writer.
package final class ShardDatabase: Sendable {
    /// Where the file is; SQLite keeps its `-wal` and `-shm` files beside it.
    package let path: String
    private let pool: DatabasePool
    /// Checkpoints and copies take turns on this connection's queue, so that no checkpoint runs while a file is copied.
    private let checkpointer: DatabaseQueue
    private let walFrames: WALFrames
    private let syncHasFailed = Atomic(false)
    private let copies = Atomic(0)
    private let uses = Monitor(Uses())

    /// The format of the file as a whole; the tables inside have versions of their own.
    private static let format = "1"

    private init(path: String, pool: DatabasePool, checkpointer: DatabaseQueue, walFrames: WALFrames) {
        self.path = path
        self.pool = pool
        self.checkpointer = checkpointer
        self.walFrames = walFrames
    }

    /// Opens a shard's file, and makes it where it is not there yet or its making was cut short.
    /// - Parameter create: makes the tables of a new file, in the transaction that makes the file's own.
    /// - Throws: `ShardDatabaseError.unknownFormat`, or `DatabaseError` or `DiskError` on an I/O error, or a file that
    ///   is no database.
    package static func open(
        path: String, options: ShardDatabaseOptions = ShardDatabaseOptions(),
        create: @Sendable (Database) throws -> Void
    ) throws -> ShardDatabase {
        try UnsyncedWAL.rewrite(path)
        let pool = try DatabasePool(path: path, configuration: configuration(options, isPool: true))
        let walFrames = WALFrames()
        try pool.writeWithoutTransaction { db in
            // GRDB sets `synchronous` behind one's back when it turns WAL on; say it last, and believe only what is
            // read back.
            try db.execute(sql: "PRAGMA synchronous = NORMAL")
            try db.execute(sql: "PRAGMA journal_size_limit = \(options.walKeptBytes)")
            let synchronous = try Int.fetchOne(db, sql: "PRAGMA synchronous")
            let journal = try String.fetchOne(db, sql: "PRAGMA journal_mode")
            precondition(synchronous == 1 && journal == "wal", "\(path): \(String(describing: (synchronous, journal)))")
            walFrames.observe(db)
        }
        try pool.write { db in
            guard try !db.tableExists("meta") else {
                let format = try String.fetchOne(db, sql: "SELECT value FROM meta WHERE key = 'format'")
                guard format == Self.format else { throw ShardDatabaseError.unknownFormat(format ?? "none") }
                return
            }
            try db.execute(sql: "CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY) WITHOUT ROWID")
            try db.execute(sql: "INSERT INTO meta VALUES ('format', ?)", arguments: [Self.format])
            try create(db)
        }
        let checkpointer = try DatabaseQueue(path: path, configuration: configuration(options, isPool: false))
        return ShardDatabase(path: path, pool: pool, checkpointer: checkpointer, walFrames: walFrames)
    }

    private static func configuration(_ options: ShardDatabaseOptions, isPool: Bool) -> Configuration {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        configuration.maximumReaderCount = options.readersMax
        configuration.persistentReadOnlyConnections = true
        configuration.label = "shard"
        // The writer waits while the WAL is started over; that waits only a moment for readers.
        configuration.busyMode = .timeout(isPool ? 10 : 0.05)
        // Half for the writer, which touches a page of every index on every save.
        let halfKibibytes = options.cacheBytes / 2048
        let readerKibibytes = max(halfKibibytes / options.readersMax, 64)
        let writerKibibytes = isPool ? max(halfKibibytes, 64) : 64
        configuration.prepareDatabase { db in
            if !db.configuration.readonly {
                try db.execute(sql: "PRAGMA page_size = \(ShardDatabaseOptions.pageSizeBytes)")
                try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
                try db.execute(sql: "PRAGMA synchronous = NORMAL")
            }
            let kibibytes = db.configuration.readonly ? readerKibibytes : writerKibibytes
            try db.execute(sql: "PRAGMA cache_size = -\(kibibytes)")
            try db.execute(sql: "PRAGMA temp_store = MEMORY")
        }
        return configuration
    }

    /// Runs `body` in one transaction and commits it; any error rolls back. Called on the shard's apply thread.
    /// - Throws: what `body` throws, or `DatabaseError` on an I/O error. A commit that failed must not be tried again.
    ///   `ShardDatabaseError.failedSync` where a WAL that starts over could not be synced.
    package func write<Result>(_ body: (Database) throws -> Result) throws -> Result {
        do {
            return try use { try pool.write(body) }
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_IOERR_FSYNC {
            throw syncFailed()
        }
    }

    /// Runs `body` on a reader, in a snapshot taken at its first statement; waits while all readers are busy.
    package func read<Result>(_ body: (Database) throws -> Result) throws -> Result {
        try use { try pool.read(body) }
    }

    /// The same, cancellable. SQLite checks every thousand steps or so of a statement, and not between statements.
    /// - Throws: `ShardDatabaseError.readEnded` after cancellation, and what `body` throws.
    package func read<Result>(
        while isWanted: @escaping () -> Bool, _ body: (Database) throws -> Result
    ) throws -> Result {
        try read { db in
            guard isWanted() else { throw ShardDatabaseError.readEnded }
            return try ReadCancellation(isWanted).watch(db) { try body(db) }
        }
    }

    /// Bytes of the WAL that a checkpoint would have to move or has moved since it started over.
    package var walBytes: Int {
        walFrames.count * (ShardDatabaseOptions.pageSizeBytes + WALFrames.headerBytes)
    }

    /// How large the file is, in bytes, once all that a reader sees is in it.
    package static func fileBytes(of db: Database) throws -> UInt64 {
        UInt64(try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0) * UInt64(ShardDatabaseOptions.pageSizeBytes)
    }

    /// Moves what the WAL holds into the file and syncs it, without blocking the writer.
    ///
    /// When the whole WAL was moved, the next write starts it over.
    /// - Returns: true when everything committed before the call is in the file and durable; false when a reader's
    /// snapshot held some of it back, and a later call is needed.
    package func checkpoint() throws -> Bool {
        try onCheckpointer { db in try passiveCheckpoint(db) }
    }

    /// As `checkpoint`, then cuts the WAL file to nothing. Blocks the writer and waits for readers: for idle or huge
    /// ones.
    package func truncateWAL() throws -> Bool {
        try onCheckpointer { db in
            // The writer goes on meanwhile; again until little is left for which it has to wait.
            for _ in 0..<4 {
                let before = walFrames.count
                guard try passiveCheckpoint(db) else { return false }
                if walFrames.count < before || walFrames.count - before < 1_000 { break }
            }
            guard try runCheckpoint(SQLITE_CHECKPOINT_TRUNCATE, on: db) else { return false }
            walFrames.reset(from: walFrames.count)
            return true
        }
    }

    private func passiveCheckpoint(_ db: Database) throws -> Bool {
        let before = walFrames.count
        guard try runCheckpoint(SQLITE_CHECKPOINT_PASSIVE, on: db) else { return false }
        walFrames.reset(from: before)
        return true
    }

    /// - Returns: whether the whole WAL was moved, without a reader holding some of it back.
    private func runCheckpoint(_ mode: CInt, on db: Database) throws -> Bool {
        if syncHasFailed.load(ordering: .acquiring) { throw ShardDatabaseError.failedSync(path: path) }
        var (total, moved): (CInt, CInt) = (-1, -1)
        switch sqlite3_wal_checkpoint_v2(db.sqliteConnection, nil, mode, &total, &moved) {
        case SQLITE_OK: return total == moved
        case SQLITE_BUSY: return false
        case ResultCode.SQLITE_IOERR_FSYNC.rawValue: throw syncFailed()
        case let code: throw DatabaseError(resultCode: ResultCode(rawValue: code), message: "checkpoint of \(path)")
        }
    }

    /// SQLite would take the next sync that succeeds for the one that failed, also when it closes its last connection.
    /// So nothing is checkpointed any more, and the connections stay open until the process ends.
    private func syncFailed() -> ShardDatabaseError {
        if !syncHasFailed.exchange(true, ordering: .acquiringAndReleasing) {
            _ = Unmanaged.passRetained(self)
            UnsyncedWAL.note(path)
        }
        return .failedSync(path: path)
    }

    /// A passive checkpoint that only readers hold back.
    ///
    /// To SQLite the writer reads what was before its transaction until that has ended, which is a moment after others
    /// see the commit. Between two writes there is no such reader; the attempts before leave little to move there.
    private func checkpointBetweenWrites(_ db: Database) throws -> Bool {
        for _ in 0..<2 where try passiveCheckpoint(db) { return true }
        return try pool.writeWithoutTransaction { _ in try passiveCheckpoint(db) }
    }

    /// Writes a consistent copy of the database, as of a commit after the call began, to a new file and syncs it.
    ///
    /// Holds no read transaction, and the writer only for a moment, if at all: the file is complete after a full
    /// checkpoint, and nothing but checkpoints writes to it, which wait until the copy is done. The folder is not
    /// synced.
    /// - Throws: `ShardDatabaseError.heldByReaders`, which a later try may not meet; `.system`, `.damagedCopy` and
    ///   `.failedSync`; `DatabaseError` where the database cannot be read; `CancellationError` once it is not wanted
    ///   any more. Then there is no file.
    package func copy(to destination: String, while isWanted: () -> Bool = { true }) throws {
        copies.add(1, ordering: .relaxed)
        defer { copies.subtract(1, ordering: .relaxed) }
        try onCheckpointer { db in
            guard try checkpointBetweenWrites(db) else { throw ShardDatabaseError.heldByReaders }
            try DatabaseFileCopy.copy(from: db, to: destination, while: isWanted)
        }
    }

    /// Whether a copy is being made, for which a checkpoint would wait: minutes, where the database is large.
    package var isBeingCopied: Bool { copies.load(ordering: .relaxed) > 0 }

    private func onCheckpointer<Result>(_ body: (Database) throws -> Result) throws -> Result {
        try use { try checkpointer.writeWithoutTransaction(body) }
    }

    /// How many use a connection, and whether none may any more.
    private struct Uses {
        var count = 0
        var isClosed = false
    }

    /// Has connections stay open while the body runs: one that is closed meanwhile ends the process.
    private func use<Result>(_ body: () throws -> Result) throws -> Result {
        let isOpen = uses.withLock { uses in
            if !uses.isClosed { uses.count += 1 }
            return !uses.isClosed
        }
        guard isOpen else { throw ShardDatabaseError.closed(path: path) }
        defer { uses.update { $0.count -= 1 } }
        return try body()
    }

    /// Closes all connections, once nothing runs on them; reads and writes afterwards fail.
    /// - Throws: `ShardDatabaseError.failedSync`, and closes nothing; `DatabaseError` where SQLite cannot.
    package func close() throws {
        if syncHasFailed.load(ordering: .acquiring) { throw ShardDatabaseError.failedSync(path: path) }
        uses.update { $0.isClosed = true }
        uses.wait { $0.count == 0 ? () : nil }
        try checkpointer.close()
        try pool.close()
    }
}

/// How a shard database uses memory and files.
package struct ShardDatabaseOptions: Hashable, Sendable {
    /// Connections that read at once; more reads wait. At least 1. As many as a node has threads for clients' reads,
    /// and two for what must not wait for those: upkeep and checkpoints.
    package var readersMax: Int
    /// Page cache of all connections of the database together, in bytes.
    package var cacheBytes: Int
    /// The size that the WAL file is cut to when it starts over, in bytes.
    package var walKeptBytes: Int

    package init(readersMax: Int = 6, cacheBytes: Int = 8 * 1_048_576, walKeptBytes: Int = 16 * 1_048_576) {
        self.readersMax = max(readersMax, 1)
        self.cacheBytes = cacheBytes
        self.walKeptBytes = walKeptBytes
    }

    /// Bytes of a page. Fixed for the life of a file.
    static let pageSizeBytes = 4096
}

/// Why a shard database does not do what was asked. I/O errors come as GRDB's `DatabaseError`.
package enum ShardDatabaseError: Error, Hashable, Sendable {
    /// The file is of another format version than this program knows. A retry does not help.
    case unknownFormat(String)
    /// Long reads kept the WAL from being checkpointed in full; a later try may succeed.
    case heldByReaders
    /// A read was cancelled; it may be repeated.
    case readEnded
    /// The database was closed: its replica was given up, or the node stops.
    case closed(path: String)
    /// A copy is not the database it should be: keep it as evidence and copy again.
    case damagedCopy(String)
    /// A sync of the file or its WAL failed, after which the system may take unwritten pages for clean. Checkpoints
    /// cannot be trusted: the process must end, and the next one moves the whole WAL again.
    case failedSync(path: String)
    /// A call to the operating system failed; a retry does not help while the cause lasts.
    case system(call: String, path: String, errno: Int32)
}

/// Interrupts a connection's statement after cancellation.
final class ReadCancellation {
    private let isWanted: () -> Bool

    /// How many steps of SQLite's virtual machine there are between two questions: some tens of microseconds.
    private static let steps: CInt = 1_000

    init(_ isWanted: @escaping () -> Bool) { self.isWanted = isWanted }

    /// Does something on a connection, of which SQLite ends the statement that is underway when it is not wanted any
    /// more.
    /// - Throws: `ShardDatabaseError.readEnded` for such a statement, and what `body` throws.
    func watch<Result>(_ db: Database, _ body: () throws -> Result) throws -> Result {
        let connection = db.sqliteConnection
        // The connection calls back only until the handler is taken away again, and so long this value lives.
        let context = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_progress_handler(
            connection, Self.steps,
            { context in
                guard let context else { return 0 }
                return Unmanaged<ReadCancellation>.fromOpaque(context).takeUnretainedValue().isWanted() ? 0 : 1
            }, context)
        defer { sqlite3_progress_handler(connection, 0, nil, nil) }
        do {
            return try withExtendedLifetime(self) { try body() }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
            throw ShardDatabaseError.readEnded
        }
    }
}
