import Glibc

/// An open file, closed with the last reference to it.
///
/// Reads and writes name their offset, so any number of threads may use one at a time.
package final class DiskFile: Sendable {
    /// The path by which the file was opened; a later rename does not change it.
    package let path: String
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

    /// Makes the content (and a changed size) durable. After a failure the file must not be written again.
    package func syncData() throws(DiskError) {
        guard fdatasync(descriptor) == 0 else { throw failure("fdatasync") }
    }

    private func failure(_ operation: String) -> DiskError { DiskError(operation: operation, path: path, code: errno) }
}
