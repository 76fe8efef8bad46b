package import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Which versions of some files there are: of each the inode, size and time of change. Files that are not there count
/// as a version, too.
struct FileStamps: Hashable, Sendable {
    private struct Stamp: Hashable {
        var inode: UInt64
        var size: Int64
        var seconds: Int
        var nanoseconds: Int
    }

    private var stamps: [Stamp?]

    /// Looks at the files; follows symbolic links.
    init(paths: [String]) {
        stamps = paths.map { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            #if canImport(Darwin)
                let time = status.st_mtimespec
            #else
                let time = status.st_mtim
            #endif
            return Stamp(
                inode: UInt64(status.st_ino), size: Int64(status.st_size), seconds: time.tv_sec,
                nanoseconds: time.tv_nsec)
        }
    }
}

/// A value made of files, and made again when they change, without restart: the certificates of a listener.
///
/// The files are looked at by `refresh` only, and at most once a second, so that who holds the value decides when a few
/// system calls are welcome. What cannot be used changes nothing: the old value stays until the files change again.
package struct FileBacked<Value: Sendable>: Sendable {
    /// What the files said when they were last of use.
    package private(set) var value: Value
    private let paths: [String]
    private let interval: TimeAmount
    private var stamps: FileStamps
    private var nextLook: NIODeadline

    /// What a look at the files brought.
    package enum Outcome: Sendable {
        /// They are as they were, or it is too early to look again.
        case unchanged
        /// The value is a new one.
        case renewed
        /// The files changed, and are of no use for this reason; told once for each change.
        case unusable(String)
    }

    /// Makes the value.
    /// - Parameter interval: how long after a look the files are not looked at again.
    /// - Throws: what `make` throws.
    package init<Failure: Error>(
        paths: [String], interval: TimeAmount = .seconds(1), now: NIODeadline, make: () throws(Failure) -> Value
    ) throws(Failure) {
        self.paths = paths
        self.interval = interval
        // Before they are read: a change in between is found by the next look.
        stamps = FileStamps(paths: paths)
        nextLook = now + interval
        value = try make()
    }

    /// Looks whether the files have changed, and makes the value again if so. Blocks while reading.
    package mutating func refresh(now: NIODeadline, make: () throws -> Value) -> Outcome {
        guard now >= nextLook else { return .unchanged }
        nextLook = now + interval
        let found = FileStamps(paths: paths)
        guard found != stamps else { return .unchanged }
        stamps = found
        do {
            value = try make()
            return .renewed
        } catch {
            return .unusable(String(describing: error))
        }
    }
}
