import Glibc

/// An open file, closed with the last reference to it.
///
/// Reads and writes name their offset, so any number of threads may use one at a time.
package final class DiskFile: Sendable {
    /// The path by which the file was opened; a later rename does not change it.
    package let path: String
    /// The file descriptor.
    package let descriptor: Int32

    /// - Parameter flags: those of `open(2)`; `O_CLOEXEC` is added. A new file is the user's alone.
    package init(path: String, flags: Int32) throws(DiskError) {
        let descriptor = Glibc.open(path, flags | O_CLOEXEC, mode_t(0o600))
        guard descriptor >= 0 else { throw DiskError(operation: "open", path: path, code: errno) }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { _ = Glibc.close(descriptor) }

    /// The size in bytes.
    package func size() throws(DiskError) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("fstat") }
        return Int(status.st_size)
    }

    /// Reads up to the buffer's size at `offset`; fewer bytes only at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(DiskError) -> Int {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = pread(descriptor, rest.baseAddress, rest.count, off_t(offset + done))
            if count < 0 {
                if errno == EINTR { continue }
                throw failure("pread")
            }
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// One `pwrite`, which may write fewer bytes than asked for.
    /// - Returns: how many bytes were written.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(DiskError) -> Int {
        while true {
            let count = pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(offset))
            if count >= 0 { return count }
            if errno != EINTR { throw failure("pwrite") }
        }
    }

    /// Writes all bytes at `offset`. After an error a part of them may be there.
    package func writeAll(_ bytes: [UInt8], at offset: Int) throws(DiskError) {
        var failure: DiskError?
        bytes.withUnsafeBytes { bytes in
            do throws(DiskError) {
                var done = 0
                while done < bytes.count {
                    done += try write(UnsafeRawBufferPointer(rebasing: bytes[done...]), at: offset + done)
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    /// Makes the content (and a changed size) durable. After a failure the file must not be written again.
    package func syncData() throws(DiskError) {
        guard fdatasync(descriptor) == 0 else { throw failure("fdatasync") }
    }

    /// Has the system begin to write a part to the disk, without waiting for it. Where it cannot, `syncData` does all.
    package func beginSync(_ range: Range<Int>) {
        // `sync_file_range` is not to be had here. Linux begins to write what is said not to be needed, and keeps it.
        _ = posix_fadvise(descriptor, off_t(range.lowerBound), off_t(range.count), POSIX_FADV_DONTNEED)
    }

    /// When the content last changed or was stamped, in milliseconds since 1970.
    package func modified() throws(DiskError) -> Int64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("fstat") }
        return Int64(status.st_mtim.tv_sec) * 1_000 + Int64(status.st_mtim.tv_nsec) / 1_000_000
    }

    /// Sets the time that `modified` gives and makes it durable, with the content. After a failure the file must not be
    /// written again.
    package func stamp(_ milliseconds: Int64) throws(DiskError) {
        let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1_000)
        let time = timespec(tv_sec: Int(max(seconds, 0)), tv_nsec: Int(max(rest, 0)) * 1_000_000)
        guard [time, time].withUnsafeBufferPointer({ futimens(descriptor, $0.baseAddress) }) == 0 else {
            throw failure("futimens")
        }
        guard fsync(descriptor) == 0 else { throw failure("fsync") }
    }

    /// Whether another one is the same file, also under another name.
    package func isSame(as other: DiskFile) throws(DiskError) -> Bool {
        var (own, others) = (stat(), stat())
        guard fstat(descriptor, &own) == 0 else { throw failure("fstat") }
        guard fstat(other.descriptor, &others) == 0 else { throw other.failure("fstat") }
        return own.st_dev == others.st_dev && own.st_ino == others.st_ino
    }

    private func failure(_ operation: String) -> DiskError { DiskError(operation: operation, path: path, code: errno) }

    /// Up to `count` bytes at `offset`; fewer only at the end of the file.
    package func bytes(at offset: Int, count: Int) throws(DiskError) -> [UInt8] {
        var failure: DiskError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            do throws(DiskError) {
                initialized = try read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}

/// A system call on a file that failed.
///
/// Whether a retry helps depends on the code; after a failed sync it never does, because the kernel may have dropped
/// the pages that it could not write.
package struct DiskError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call, such as `pwrite`.
    package var operation: String
    /// The file or folder.
    package var path: String
    /// The value of `errno`.
    package var code: Int32

    package init(operation: String, path: String, code: Int32) {
        self.operation = operation
        self.path = path
        self.code = code
    }

    /// What was wrong and what to do about it.
    package var description: String { "\(operation) of \(path) failed with errno \(code)" }
}

/// Makes the names in a folder durable: files created, renamed and removed.
package func fsyncFolder(at path: String) throws(DiskError) {
    let folder = try DiskFile(path: path, flags: O_RDONLY | O_DIRECTORY)
    guard fsync(folder.descriptor) == 0 else { throw DiskError(operation: "fsync", path: path, code: errno) }
}

/// The names in a folder, sorted, without `.` and `..`: all of them.
/// - Throws: `DiskError`, also where only a part can be read.
package func listFolder(at path: String) throws(DiskError) -> [String] {
    guard let folder = opendir(path) else { throw DiskError(operation: "opendir", path: path, code: errno) }
    defer { closedir(folder) }
    var names: [String] = []
    while true {
        // Nothing else tells the end from a failure.
        errno = 0
        guard let item = readdir(folder) else {
            guard errno == 0 else { throw DiskError(operation: "readdir", path: path, code: errno) }
            return names.sorted()
        }
        let name = withUnsafePointer(to: &item.pointee.d_name) { field in
            field.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != "." && name != ".." { names.append(name) }
    }
}

/// Creates a folder, and those above it, if they are not there.
package func makeFolder(at path: String) throws(DiskError) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
        throw DiskError(operation: "mkdir", path: path, code: errno)
    }
    try makeFolder(at: String(path[..<slash]))
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
        throw DiskError(operation: "mkdir", path: path, code: errno)
    }
}

/// How many bytes the disk that holds a folder has in all, and how many of them this user may still write.
package func diskSpace(at path: String) throws(DiskError) -> (all: UInt64, free: UInt64) {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { throw DiskError(operation: "statvfs", path: path, code: errno) }
    let block = UInt64(status.f_frsize)
    return (UInt64(status.f_blocks) * block, UInt64(status.f_bavail) * block)
}

/// Renames a file; the caller syncs the folder.
package func renameFile(at path: String, to newPath: String) throws(DiskError) {
    guard rename(path, newPath) == 0 else { throw DiskError(operation: "rename", path: path, code: errno) }
}

/// Removes a file if it is there; the caller syncs the folder.
package func removeFile(at path: String) throws(DiskError) {
    guard unlink(path) == 0 || errno == ENOENT else { throw DiskError(operation: "unlink", path: path, code: errno) }
}

/// Whether a path names something other than a regular file: a terminal, a pipe, a folder.
package func isSpecialFile(at path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
}

/// Locks a folder for one owner, across processes and within one, until it is released or the process ends.
package final class FolderLock: Sendable {
    private let file: DiskFile

    /// - Returns: nil if another owner has the folder.
    package init?(path: String) throws(DiskError) {
        file = try DiskFile(path: path, flags: O_RDWR | O_CREAT)
        guard flock(file.descriptor, LOCK_EX | LOCK_NB) != 0 else { return }
        guard errno == EWOULDBLOCK else { throw DiskError(operation: "flock", path: path, code: errno) }
        return nil
    }
}

/// Replaces a small file as a whole: after a crash there is the old content or the new, never a mixture.
///
/// Durable when it returns: the new file is synced, renamed over the old one, and the folder is synced.
/// - Throws: `DiskError`; the old content is then still there, or (if only the folder's sync failed) either is.
package func replaceFile(
    at path: String, with bytes: [UInt8], on disk: any LogDisk = PosixDisk()
) throws(DiskError) {
    let temporary = path + ".new"
    let file = try disk.open(temporary, creating: true)
    try disk.writeAll(bytes, to: file, at: 0)
    try disk.sync(file)
    try disk.rename(temporary, to: path)
    let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    try disk.syncFolder(folder.isEmpty ? "/" : folder)
}

/// A whole small file.
/// - Throws: `DiskError`, with `ENOENT` if it does not exist.
package func readWholeFile(at path: String) throws(DiskError) -> [UInt8] {
    let file = try DiskFile(path: path, flags: O_RDONLY)
    return try file.bytes(at: 0, count: file.size())
}

/// A file of zeros that is removed when the disk is full, so that accepted work can still be done, and something be
/// deleted.
///
/// Room beside the raft log's reserve segment, for everything else in the data folder. Any thread may call any method.
package struct SpaceReserve: Sendable {
    private let path: String
    private let folder: String
    private let bytes: Int
    private let disk: any LogDisk

    package init(folder: String, bytes: Int, disk: any LogDisk) {
        self.folder = folder
        path = folder + "/reserve.free"
        self.bytes = bytes
        self.disk = disk
    }

    /// Gives the room back to the disk; nothing happens if that was done before.
    package func release() { try? disk.remove(path) }

    /// Creates the reserve, if it does not exist and the disk has room for twice its size.
    /// - Returns: whether it exists now; false if the disk has no room.
    /// - Throws: `DiskError` for any other failure.
    package func restore() throws(DiskError) -> Bool {
        if (try? disk.open(path, creating: false).size()) == bytes { return true }
        guard try disk.canSpare(bytes, in: folder) else { return false }
        do throws(DiskError) {
            try disk.fill(path, bytes: bytes)
            return true
        } catch {
            try? disk.remove(path)
            if error.isDiskFull { return false }
            throw error
        }
    }
}
