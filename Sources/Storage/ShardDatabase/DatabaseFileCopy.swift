import GRDB
import GRDBSQLite

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Copies the file of a database that is open, and that nobody writes to.
///
/// It is read through the connection: a descriptor of our own would, when it is closed, take the locks of all
/// connections of this process with it, and another process would take the database for its own.
enum DatabaseFileCopy {
    private static let chunkBytes = 1 << 20

    /// Copies to a new file, syncs it and checks its header; an unfinished copy is removed.
    /// - Throws: `ShardDatabaseError`; `DatabaseError` where the database cannot be read; `CancellationError` where the
    ///   copy is not wanted any more, which is asked before each piece.
    static func copy(from db: Database, to destination: String, while isWanted: () -> Bool) throws {
        let output = open(destination, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard output >= 0 else { throw failure("open", destination) }
        do {
            defer { _ = close(output) }
            let size = try copyAll(from: db, to: output, destination: destination, while: isWanted)
            guard fsync(output) == 0 else { throw failure("fsync", destination) }
            try check(destination, size: size)
        } catch {
            _ = unlink(destination)
            throw error
        }
    }

    private static func copyAll(
        from db: Database, to output: Int32, destination: String, while isWanted: () -> Bool
    ) throws -> Int {
        var file: UnsafeMutablePointer<sqlite3_file>?
        try check(sqlite3_file_control(db.sqliteConnection, "main", SQLITE_FCNTL_FILE_POINTER, &file))
        guard let file, let calls = file.pointee.pMethods?.pointee else {
            preconditionFailure("the database of \(destination) has no file")
        }
        var size: sqlite3_int64 = 0
        try check(calls.xFileSize(file, &size))
        var buffer = [UInt8](repeating: 0, count: chunkBytes)
        var total = 0
        while total < Int(size) {
            guard isWanted() else { throw CancellationError() }
            let count = min(chunkBytes, Int(size) - total)
            try check(calls.xRead(file, &buffer, CInt(count), sqlite3_int64(total)))
            var written = 0
            while written < count {
                let step = buffer.withUnsafeBytes { bytes in
                    write(output, bytes.baseAddress?.advanced(by: written), count - written)
                }
                if step < 0 && errno == EINTR { continue }
                guard step > 0 else { throw failure("write", destination) }
                written += step
            }
            total += count
        }
        return total
    }

    private static func check(_ code: CInt) throws {
        guard code == SQLITE_OK else {
            throw DatabaseError(resultCode: ResultCode(rawValue: code), message: "reading a database to copy it")
        }
    }

    /// Magic, page size and page count of the header must agree with the size.
    private static func check(_ path: String, size: Int) throws(ShardDatabaseError) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw failure("open", path) }
        defer { _ = close(file) }
        var header = [UInt8](repeating: 0, count: 100)
        guard read(file, &header, header.count) == header.count else { throw .damagedCopy("no header in \(path)") }
        guard header.starts(with: Array("SQLite format 3\0".utf8)) else {
            throw .damagedCopy("no SQLite magic in \(path)")
        }
        func number(_ range: Range<Int>) -> Int { header[range].reduce(0) { $0 << 8 | Int($1) } }
        let pageSize = number(16..<18) == 1 ? 65536 : number(16..<18)
        let pages = number(28..<32)
        guard pages > 0, pages * pageSize == size else {
            throw .damagedCopy("\(path) has \(size) bytes, its header says \(pages) pages of \(pageSize)")
        }
    }

    private static func failure(_ call: String, _ path: String) -> ShardDatabaseError {
        .system(call: call, path: path, errno: errno)
    }
}
