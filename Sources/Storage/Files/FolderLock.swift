import Glibc

/// Keeps a folder to one owner, over processes and within one, until the last reference goes or the process ends.
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
