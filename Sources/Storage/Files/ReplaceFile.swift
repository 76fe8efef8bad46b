import Glibc

/// Replaces a small file as a whole: after a crash there is the old content or the new, never a mixture.
///
/// Durable when it returns: the new file is synced, renamed over the old one, and the folder is synced.
/// - Throws: `DiskError`; the old content is then still there, or (if only the folder's sync failed) either is.
package func replaceFile(at path: String, with bytes: [UInt8]) throws(DiskError) {
    let temporary = path + ".new"
    let file = try DiskFile(path: temporary, flags: O_WRONLY | O_CREAT | O_TRUNC)
    try writeAll(bytes, to: file)
    guard fsync(file.descriptor) == 0 else { throw DiskError(operation: "fsync", path: temporary, code: errno) }
    try renameFile(at: temporary, to: path)
    let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    try fsyncFolder(at: folder.isEmpty ? "/" : folder)
}

private func writeAll(_ bytes: [UInt8], to file: DiskFile) throws(DiskError) {
    var failure: DiskError?
    bytes.withUnsafeBytes { all in
        var done = 0
        while done < all.count {
            do throws(DiskError) {
                done += try file.write(UnsafeRawBufferPointer(rebasing: all[done...]), at: done)
            } catch {
                failure = error
                return
            }
        }
    }
    if let failure { throw failure }
}

/// A whole small file.
/// - Throws: `DiskError` with `ENOENT` if there is none.
package func readWholeFile(at path: String) throws(DiskError) -> [UInt8] {
    let file = try DiskFile(path: path, flags: O_RDONLY)
    return try file.bytes(at: 0, count: file.size())
}

extension DiskFile {
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
