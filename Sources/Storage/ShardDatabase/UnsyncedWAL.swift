import Glibc

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
