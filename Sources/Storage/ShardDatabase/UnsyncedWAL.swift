import GRDB
import GRDBSQLite
import Glibc
import Synchronization

/// A write-ahead log of which a sync failed: the system may have in memory, and call written, what is not on the disk.
///
/// The next process moves all of it into the database again. A power cut while it does would leave pages of frames that
/// the disk never had. So the log is first written again where it is, which the system then has to bring to the disk.
enum UnsyncedWAL {
    private static let chunkBytes = 1 << 20

    /// Notes that it is so. The note need not be durable: a power cut makes the system forget what it had in memory,
    /// too.
    static func note(_ database: String) { _ = try? DiskFile(path: notePath(database), flags: O_WRONLY | O_CREAT) }

    /// Writes a log again that was noted, before its database is opened.
    static func rewrite(_ database: String) throws(DiskError) {
        guard access(notePath(database), F_OK) == 0 else { return }
        if access(database + "-wal", F_OK) == 0 {
            let file = try DiskFile(path: database + "-wal", flags: O_RDWR)
            let disk = PosixDisk()
            let size = try file.size()
            for offset in stride(from: 0, to: size, by: chunkBytes) {
                let bytes = try disk.bytes(of: file, at: offset, count: min(chunkBytes, size - offset))
                try disk.writeAll(bytes, to: file, at: offset)
            }
            try file.syncData()
        }
        try removeFile(at: notePath(database))
    }

    private static func notePath(_ database: String) -> String { database + "-unsynced" }
}

/// Counts the frames in a WAL through SQLite's commit hook: the file's size says nothing, since a WAL that starts over
/// is written from its beginning.
final class WALFrames: Sendable {
    /// Bytes that SQLite puts before each page in the WAL.
    static let headerBytes = 24
    private let frames = Atomic<Int>(0)

    var count: Int { frames.load(ordering: .relaxed) }

    /// Follows the commits of a connection that must not live longer than this object.
    func observe(_ db: Database) {
        // Retained for good, because the hook may run as long as the connection lives: a few bytes a database.
        let context = Unmanaged.passRetained(self).toOpaque()
        sqlite3_wal_hook(
            db.sqliteConnection,
            { context, _, _, frames in
                guard let context else { return SQLITE_OK }
                Unmanaged<WALFrames>.fromOpaque(context).takeUnretainedValue()
                    .frames.store(Int(frames), ordering: .relaxed)
                return SQLITE_OK
            }, context)
    }

    /// Sets the count to zero, unless a commit changed it since it was `expected`.
    func reset(from expected: Int) {
        _ = frames.compareExchange(expected: expected, desired: 0, ordering: .relaxed)
    }
}
