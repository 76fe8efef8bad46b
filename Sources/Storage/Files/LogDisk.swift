import Glibc

/// The calls that the log and the assets make on the disk, so that tests can count them and make them fail.
///
/// Every requirement has the real call as its default.
package protocol LogDisk: Sendable {
    /// Opens a file for reading and writing.
    func open(_ path: String, creating: Bool) throws(DiskError) -> DiskFile
    /// One write, which may be short.
    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int
    /// Reads up to the buffer's size; fewer bytes only at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, of file: DiskFile, at offset: Int) throws(DiskError) -> Int
    /// Sets the time of the file's last use and makes it and the content durable.
    /// - Parameter time: milliseconds since 1970.
    func stamp(_ file: DiskFile, _ time: Int64) throws(DiskError)
    /// Has the system begin to bring a part of the file to the disk. That makes nothing durable.
    func beginSync(_ file: DiskFile, _ range: Range<Int>)
    /// Makes the file's content durable.
    func sync(_ file: DiskFile) throws(DiskError)
    func rename(_ path: String, to newPath: String) throws(DiskError)
    func remove(_ path: String) throws(DiskError)
    /// Makes the folder's names durable.
    func syncFolder(_ path: String) throws(DiskError)
    /// How many bytes this user may still write to the disk that holds the folder.
    func freeBytes(at folder: String) throws(DiskError) -> Int
}

extension LogDisk {
    /// Opens a file.
    package func open(_ path: String, creating: Bool) throws(DiskError) -> DiskFile {
        try DiskFile(path: path, flags: O_RDWR | (creating ? O_CREAT | O_TRUNC : 0))
    }
    /// Writes with `pwrite`.
    package func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        try file.write(bytes, at: offset)
    }
    /// Reads with `pread`.
    package func read(
        into buffer: UnsafeMutableRawBufferPointer, of file: DiskFile, at offset: Int
    ) throws(DiskError) -> Int {
        try file.read(into: buffer, at: offset)
    }
    /// Sets the time with `futimens` and syncs with `fsync`.
    package func stamp(_ file: DiskFile, _ time: Int64) throws(DiskError) { try file.stamp(time) }
    /// Asks the system.
    package func beginSync(_ file: DiskFile, _ range: Range<Int>) { file.beginSync(range) }
    /// Syncs with `fdatasync`.
    package func sync(_ file: DiskFile) throws(DiskError) { try file.syncData() }
    /// Renames a file.
    package func rename(_ path: String, to newPath: String) throws(DiskError) { try renameFile(at: path, to: newPath) }
    /// Removes a file.
    package func remove(_ path: String) throws(DiskError) { try removeFile(at: path) }
    /// Syncs a folder with `fsync`.
    package func syncFolder(_ path: String) throws(DiskError) { try fsyncFolder(at: path) }
    /// The free space, in bytes.
    package func freeBytes(at folder: String) throws(DiskError) -> Int { Int(clamping: try diskSpace(at: folder).free) }
}

/// The real disk.
package struct PosixDisk: LogDisk {
    package init() {}
}

extension LogDisk {
    /// Writes all of `bytes`, going on after short writes.
    package func writeAll(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) {
        var done = 0
        while done < bytes.count {
            let count = try write(UnsafeRawBufferPointer(rebasing: bytes[done...]), to: file, at: offset + done)
            guard count > 0 else { throw DiskError(operation: "pwrite", path: file.path, code: EIO) }
            done += count
        }
    }

    /// Writes all of an array.
    package func writeAll(_ bytes: [UInt8], to file: DiskFile, at offset: Int) throws(DiskError) {
        var failure: DiskError?
        bytes.withUnsafeBytes { raw in
            do throws(DiskError) { try writeAll(raw, to: file, at: offset) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Up to `count` bytes at `offset`; fewer only at the end of the file.
    package func bytes(of file: DiskFile, at offset: Int, count: Int) throws(DiskError) -> [UInt8] {
        var failure: DiskError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            do throws(DiskError) {
                initialized = try read(into: UnsafeMutableRawBufferPointer(buffer), of: file, at: offset)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Whether the disk of a folder has room for a reserve, and as much again for everything else.
    func canSpare(_ bytes: Int, in folder: String) throws(DiskError) -> Bool {
        try freeBytes(at: folder) >= 2 * bytes
    }

    /// Makes a file full of zeros, durably; the folder is not synced.
    func fill(_ path: String, bytes: Int) throws(DiskError) {
        let file = try open(path, creating: true)
        try zero(file, from: 0, to: bytes)
        try sync(file)
    }

    /// Writes zeros over a range, 256 KiB at a time.
    func zero(_ file: DiskFile, from start: Int, to end: Int) throws(DiskError) {
        let zeros = [UInt8](repeating: 0, count: min(262_144, max(0, end - start)))
        var offset = start
        while offset < end {
            let count = min(zeros.count, end - offset)
            try writeAll(count == zeros.count ? zeros : Array(zeros[..<count]), to: file, at: offset)
            offset += count
        }
    }
}
