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

    package var description: String { "\(operation) of \(path) failed with errno \(code)" }
}
