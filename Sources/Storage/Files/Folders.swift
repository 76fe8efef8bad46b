import Glibc

/// Makes the names in a folder durable: files created, renamed and removed.
package func fsyncFolder(at path: String) throws(DiskError) {
    let folder = try DiskFile(path: path, flags: O_RDONLY | O_DIRECTORY)
    guard fsync(folder.descriptor) == 0 else { throw DiskError(operation: "fsync", path: path, code: errno) }
}

/// The names in a folder, sorted, without `.` and `..`.
package func listFolder(at path: String) throws(DiskError) -> [String] {
    guard let folder = opendir(path) else { throw DiskError(operation: "opendir", path: path, code: errno) }
    defer { closedir(folder) }
    var names: [String] = []
    while let item = readdir(folder) {
        let name = withUnsafePointer(to: &item.pointee.d_name) { field in
            field.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
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

/// How many bytes this user may still write to the disk that holds a folder.
func freeSpace(at path: String) throws(DiskError) -> Int {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { throw DiskError(operation: "statvfs", path: path, code: errno) }
    return Int(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize))
}

/// Renames a file; the caller syncs the folder.
package func renameFile(at path: String, to newPath: String) throws(DiskError) {
    guard rename(path, newPath) == 0 else { throw DiskError(operation: "rename", path: path, code: errno) }
}

/// Removes a file if it is there; the caller syncs the folder.
package func removeFile(at path: String) throws(DiskError) {
    guard unlink(path) == 0 || errno == ENOENT else { throw DiskError(operation: "unlink", path: path, code: errno) }
}

/// Whether there is something at a path that is no regular file: a terminal, a pipe, a folder.
package func isSpecialFile(at path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
}
