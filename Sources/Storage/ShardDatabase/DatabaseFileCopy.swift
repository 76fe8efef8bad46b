#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Copies a SQLite file that nobody writes to.
enum DatabaseFileCopy {
    private static let chunkBytes = 1 << 20

    /// Copies to a new file, syncs it and checks its header; an unfinished copy is removed.
    static func copy(from source: String, to destination: String) throws(ShardDatabaseError) {
        let input = open(source, O_RDONLY | O_CLOEXEC)
        guard input >= 0 else { throw failure("open", source) }
        defer { _ = close(input) }
        let output = open(destination, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard output >= 0 else { throw failure("open", destination) }
        do throws(ShardDatabaseError) {
            defer { _ = close(output) }
            let size = try copyAll(from: input, to: output, source: source, destination: destination)
            guard fsync(output) == 0 else { throw failure("fsync", destination) }
            try check(destination, size: size)
        } catch {
            _ = unlink(destination)
            throw error
        }
    }

    private static func copyAll(
        from input: Int32, to output: Int32, source: String, destination: String
    ) throws(ShardDatabaseError) -> Int {
        var buffer = [UInt8](repeating: 0, count: chunkBytes)
        var total = 0
        while true {
            let count = read(input, &buffer, chunkBytes)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw failure("read", source) }
            if count == 0 { return total }
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
