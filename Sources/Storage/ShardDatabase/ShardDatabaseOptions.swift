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
    /// A read was ended before its answer was there, because nobody wanted it any more; it may be asked again.
    case readEnded
    /// A copy is not the database it should be: keep it as evidence and copy again.
    case damagedCopy(String)
    /// A sync of the file or its WAL failed, after which the system may call clean what it never wrote. No checkpoint
    /// is believed any more: the process has to end, and the next one moves the whole WAL again.
    case failedSync(path: String)
    /// A call to the operating system failed; a retry does not help while the cause lasts.
    case system(call: String, path: String, errno: Int32)
}
