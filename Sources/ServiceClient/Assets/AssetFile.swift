import Crypto
import Foundation
import NIOCore
import NIOPosix
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What went wrong with a file of this machine. A retry helps once the cause is gone.
package enum AssetFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file to send is not there, cannot be read or is no file.
    case notFound(path: String, reason: String)
    /// The file to send was written to while it was sent.
    case modified(path: String)
    /// The file that arrives cannot be written; `code` is the system's `errno`.
    case notWritten(path: String, code: Int32)

    /// What was wrong and what to do about it.
    package var description: String {
        switch self {
        case .notFound(let path, let reason): "\(path) cannot be sent: \(reason)"
        case .modified(let path): "\(path) was changed while it was sent: send it once nothing writes to it"
        case .notWritten(let path, let code): "\(path) cannot be written: \(String(cString: strerror(code)))"
        }
    }
}

/// A local file on its way to a cluster: opened once, and read in chunks.
///
/// What is sent is the file that was opened, whatever has its name later. A file that is written to meanwhile fails
/// with `modified` before its last chunk is sent, so that no mixture of two versions is taken for the file.
package final class AssetSource: Sendable {
    /// Where the file is.
    package let path: String
    /// Its bytes when it was opened.
    package let size: Int64
    private let descriptor: Int32
    private let stamp: Stamp
    /// What made a read fail: the HTTP client does not always tell the error of a body.
    private let failure = Mutex<AssetFileError?>(nil)

    private static let chunkBytes = 256 << 10

    /// What changes when somebody writes to a file.
    private struct Stamp: Hashable, Sendable {
        var size: Int64
        var modified: [Int]

        init(_ status: stat) {
            size = Int64(status.st_size)
            #if canImport(Darwin)
                let (written, changed) = (status.st_mtimespec, status.st_ctimespec)
            #else
                let (written, changed) = (status.st_mtim, status.st_ctim)
            #endif
            modified = [Int(written.tv_sec), Int(written.tv_nsec), Int(changed.tv_sec), Int(changed.tv_nsec)]
        }
    }

    /// Opens a file.
    /// - Throws: `notFound`.
    package init(path: String) throws(AssetFileError) {
        // Not to wait for the other end of a pipe, which is refused below.
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw .notFound(path: path, reason: String(cString: strerror(errno)))
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw .notFound(path: path, reason: "it is no regular file")
        }
        self.path = path
        stamp = Stamp(status)
        size = stamp.size
    }

    deinit { close(descriptor) }

    func takeFailure() -> AssetFileError? {
        failure.withLock { failure in
            defer { failure = nil }
            return failure
        }
    }

    /// Reads the next chunk, off the event loops.
    fileprivate func chunk(at offset: Int64) async throws -> ByteBuffer {
        do {
            return try await NIOThreadPool.singleton.runIfActive { try self.read(at: offset) }
        } catch let error as AssetFileError {
            failure.withLock { $0 = error }
            throw error
        }
    }

    private func read(at offset: Int64) throws(AssetFileError) -> ByteBuffer {
        let wanted = Int(min(Int64(Self.chunkBytes), size - offset))
        var buffer = ByteBufferAllocator().buffer(capacity: wanted)
        while buffer.readableBytes < wanted {
            let rest = wanted - buffer.readableBytes
            let place = offset + Int64(buffer.readableBytes)
            var code: Int32 = 0
            let count = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: rest) { bytes in
                let count = pread(descriptor, bytes.baseAddress, rest, off_t(place))
                if count < 0 { code = errno }
                return max(0, count)
            }
            if code == EINTR { continue }
            guard code == 0 else { throw .notFound(path: path, reason: String(cString: strerror(code))) }
            // The file became shorter.
            guard count > 0 else { throw .modified(path: path) }
        }
        if offset + Int64(wanted) == size { try checkUnchanged() }
        return buffer
    }

    private func checkUnchanged() throws(AssetFileError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0, Stamp(status) == stamp else { throw .modified(path: path) }
    }
}

/// The bytes of a file, as the body of a request: read as the connection takes them.
struct AssetBytes: AsyncSequence, Sendable {
    let source: AssetSource
    /// Hears how many bytes were handed to the connection.
    let sent: @Sendable (Int64) -> Void

    func makeAsyncIterator() -> Iterator { Iterator(bytes: self) }

    struct Iterator: AsyncIteratorProtocol {
        let bytes: AssetBytes
        private var offset: Int64 = 0

        init(bytes: AssetBytes) { self.bytes = bytes }

        mutating func next() async throws -> ByteBuffer? {
            bytes.sent(offset)
            guard offset < bytes.source.size else { return nil }
            let chunk = try await bytes.source.chunk(at: offset)
            offset += Int64(chunk.readableBytes)
            return chunk
        }
    }
}

/// A file that arrives: written in order, removed unless it was finished.
package final class AssetSink: Sendable {
    private struct State {
        var offset: Int64 = 0
        var hash = SHA256()
        var tag: String?
        var isFinished = false
    }

    /// Where the file is.
    package let path: String
    private let descriptor: Int32
    private let isStream: Bool
    private let state = Mutex(State())

    /// Creates a file, for its owner's eyes.
    /// - Throws: `notWritten` if it exists, or cannot be made.
    package init(creating path: String) throws(AssetFileError) {
        self.path = path
        isStream = false
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .notWritten(path: path, code: errno) }
    }

    /// Writes to something that is open, such as standard output, from which nothing can be taken back.
    /// - Parameter name: what errors call it.
    package init(stream descriptor: Int32, name: String) {
        path = name
        isStream = true
        self.descriptor = descriptor
    }

    deinit {
        guard !isStream else { return }
        close(descriptor)
        if !state.withLock(\.isFinished) { unlink(path) }
    }

    /// How many bytes were written.
    package var offset: Int64 { state.withLock(\.offset) }

    /// Writes what comes next; returns when it is written.
    func write(_ bytes: ByteBuffer) async throws {
        try await NIOThreadPool.singleton.runIfActive { try self.append(bytes) }
    }

    private func append(_ bytes: ByteBuffer) throws(AssetFileError) {
        let code = bytes.withUnsafeReadableBytes { writeAll($0, to: descriptor) }
        guard code == 0 else { throw .notWritten(path: path, code: code) }
        state.withLock { state in
            bytes.withUnsafeReadableBytes { state.hash.update(bufferPointer: $0) }
            state.offset += Int64(bytes.readableBytes)
        }
    }

    /// Forgets what was written, to begin again.
    /// - Throws: `notWritten` where it was handed on already.
    func restart() throws(AssetFileError) {
        guard offset > 0 else { return }
        guard !isStream, ftruncate(descriptor, 0) == 0 else {
            throw .notWritten(path: path, code: isStream ? ESPIPE : errno)
        }
        state.withLock { $0 = State() }
    }

    /// The entity tag of the file that the bytes belong to.
    var tag: String? {
        get { state.withLock(\.tag) }
        set { state.withLock { $0.tag = newValue } }
    }

    var digest: [UInt8] { state.withLock { Array($0.hash.finalize()) } }

    /// Keeps the file.
    package func finish() { state.withLock { $0.isFinished = true } }
}
