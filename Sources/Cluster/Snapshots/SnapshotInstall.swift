import Foundation
import GRDB
import RaftCore
import RecordModel
import Storage

/// Puts a received database in the place of a group's own.
enum SnapshotInstall {
    /// Closes the old database, renames the new file over it and opens that. Once the rename is durable the old state
    /// is gone; the log's mark follows, and a crash between the two is made good at the next start, which trusts the
    /// database.
    ///
    /// Calling it again after a failure half-way is safe.
    static func replaceDatabase(
        at path: String, by newPath: String, mark: SnapshotMark, old: ShardDatabase, options: ShardDatabaseOptions
    ) throws -> ShardDatabase {
        let files = FileManager.default
        if files.fileExists(atPath: newPath) {
            // With its write-ahead log emptied the old file is whole by itself, should this end here.
            do {
                _ = try old.truncateWAL()
            } catch ShardDatabaseError.failedSync(let path) {
                // The WAL is needed by the next process.
                throw ShardDatabaseError.failedSync(path: path)
            } catch {
                // Held by readers, or damaged: it is replaced all the same.
            }
            try? old.close()
            let folder = URL(filePath: path).deletingLastPathComponent().path
            for suffix in ["-wal", "-shm"] where files.fileExists(atPath: path + suffix) {
                try files.removeItem(atPath: path + suffix)
            }
            try fsyncFolder(at: folder)
            try renameFile(at: newPath, to: path)
            try fsyncFolder(at: folder)
        }
        let new = try ShardDatabase.open(path: path, options: options) { _ in
            throw StorageMismatch("the installed snapshot at \(path) is an empty database")
        }
        let found = try new.read { try AppliedRow.mark(of: $0) }
        guard found == mark else {
            throw StorageMismatch("the database at \(path) stands at \(found.position), installed was \(mark.position)")
        }
        return new
    }

    /// Reads where a database file stands.
    static func mark(ofFileAt path: String) throws -> SnapshotMark {
        try read(path) { try AppliedRow.mark(of: $0) }
    }

    /// Reads the feature level of a database file.
    static func level(ofFileAt path: String) throws -> FeatureLevel {
        try read(path) { try AppliedRow.level(of: $0) }
    }

    private static func read<Value>(_ path: String, _ body: (Database) throws -> Value) throws -> Value {
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? queue.close() }
        return try queue.read(body)
    }
}
