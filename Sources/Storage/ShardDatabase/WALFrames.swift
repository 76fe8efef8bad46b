import GRDB
import GRDBSQLite
import Synchronization

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
