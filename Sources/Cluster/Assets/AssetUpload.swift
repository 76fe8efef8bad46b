package import RecordModel
import Storage
import Synchronization

/// A file that comes in, from a client or a peer. Its owner calls `finish` or `abandon`, once; one that is dropped
/// without either is abandoned.
package final class AssetUpload: Sendable {
    private let files: AssetFiles
    private let pool: BlockingPool
    private let settings: AssetSettings
    private let stampMilliseconds: @Sendable () -> Int64
    private let ended: @Sendable () -> Void
    /// Nil once it has ended.
    private let writer: Mutex<AssetWriter?>

    init(
        files: AssetFiles, pool: BlockingPool, settings: AssetSettings, writer: AssetWriter,
        stampMilliseconds: @escaping @Sendable () -> Int64, ended: @escaping @Sendable () -> Void
    ) {
        self.files = files
        self.pool = pool
        self.settings = settings
        self.stampMilliseconds = stampMilliseconds
        self.ended = ended
        self.writer = Mutex(writer)
    }

    deinit {
        // The file itself goes at the next start, if the pool takes nothing any more.
        guard let writer = writer.withLock({ $0.take() }) else { return }
        let (files, ended) = (files, ended)
        try? pool.submit { _ in files.abandon(writer) }
        ended()
    }

    /// Appends bytes; returns when they are with the system. One call at a time.
    /// - Throws: `AssetError.tooLarge`, `.diskFull`, `.unavailable`; then nothing of the file is left.
    package func write(_ bytes: some Collection<UInt8> & Sendable) async throws(AssetError) {
        try await work { [files, settings] writer in
            let before = writer.size
            try writer.write(bytes)
            if before >> 22 != writer.size >> 22 { try files.requireSpace(settings) }
        }
    }

    /// Makes the file durable on this node.
    /// - Parameter expected: what it has to be.
    /// - Throws: `AssetError.missing` where it is something else, `.diskFull`, `.unavailable`; then nothing of the file
    ///   is left.
    @discardableResult
    package func finish(as expected: AssetReference? = nil) async throws(AssetError) -> AssetReference {
        let reference = try await work { [files, stampMilliseconds] writer in
            try files.keep(&writer, time: stampMilliseconds(), as: expected)
        }
        _ = writer.withLock { $0.take() }
        ended()
        return reference
    }

    /// Leaves nothing.
    package func abandon() async {
        guard let writer = writer.withLock({ $0.take() }) else { return }
        ended()
        _ = try? await pool.run { [files] in files.abandon(writer) }
    }

    private func work<Value: Sendable>(
        _ body: @escaping @Sendable (inout AssetWriter) throws -> Value
    ) async throws(AssetError) -> Value {
        do {
            return try await pool.run { [self] in
                try writer.withLock { writer in
                    guard writer != nil else { throw AssetError.unavailable("the upload has ended") }
                    return try body(&writer!)  // nil was excluded above, and the copy would double the buffer
                }
            }
        } catch {
            await abandon()
            throw AssetError(error)
        }
    }
}

extension AssetFiles {
    /// - Throws: `AssetError.diskFull` where files would take the room that is kept for everything else.
    func requireSpace(_ settings: AssetSettings) throws {
        guard try freeBytes() > settings.spareBytes else { throw AssetError.diskFull }
    }
}
