package import RaftCore
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
    /// For peers that copy it meanwhile; nil where none may.
    let feed: UploadFeed?
    /// Nil once it has ended.
    private let writer: Mutex<AssetWriter?>
    /// The most bytes that may come.
    private let limit: UInt64
    /// What came and is not written yet, less than a block; and how much came in all.
    private let gathered = Mutex<(bytes: [UInt8], total: UInt64)>(([], 0))
    /// What becomes of the last block, while the next one comes in.
    private let writing = Mutex(Writing())

    private struct Writing {
        var isUnderway = false
        /// Who waits for its end.
        var waiter: CheckedContinuation<Void, Never>?
        /// Why a block could not be written.
        var failure: AssetError?
    }

    /// A client's bytes come in small parts; a thread is asked to write this many at once.
    private static let blockBytes = 256 << 10

    init(
        files: AssetFiles, pool: BlockingPool, settings: AssetSettings, writer: AssetWriter, feed: UploadFeed?,
        stampMilliseconds: @escaping @Sendable () -> Int64, ended: @escaping @Sendable () -> Void
    ) {
        self.files = files
        self.pool = pool
        self.settings = settings
        self.feed = feed
        self.stampMilliseconds = stampMilliseconds
        self.ended = ended
        limit = writer.limit
        self.writer = Mutex(writer)
    }

    deinit {
        feed?.close()
        guard let writer = writer.withLock({ $0.take() }) else { return }
        let (files, ended) = (files, ended)
        do throws(QueueFull) {
            try pool.submit { _ in files.abandon(writer) }
        } catch {
            files.abandonLater(writer)
        }
        ended()
    }

    /// Appends bytes; returns when all but two blocks of 256 KiB are with the system. One call at a time.
    /// - Throws: `AssetError.tooLarge`, `.diskFull`, `.unavailable`, also for earlier bytes; then nothing of the file
    ///   is left.
    package func write(_ bytes: some Collection<UInt8>) async throws(AssetError) {
        let (blocks, total) = take(bytes)
        guard total <= limit else {
            await abandon()
            throw .tooLarge(limit: limit)
        }
        for block in blocks {
            try await written()
            begin(block)
        }
    }

    /// Has a block written, while the next one comes in. Peers get it from the thread that wrote it.
    private func begin(_ block: [UInt8]) {
        writing.withLock { $0.isUnderway = true }
        do throws(QueueFull) {
            try pool.submit { [self] isActive in
                end(isActive ? Result { try put(block) } : .failure(CancellationError()))
            }
        } catch {
            end(.failure(error))
        }
    }

    private func put(_ block: [UInt8]) throws {
        try withWriter { [files, settings] writer in
            let before = writer.size
            try writer.write(block)
            if before >> 22 != writer.size >> 22 { try files.requireSpace(settings) }
        }
        feed?.wrote(block)
    }

    /// A block was written, or cannot be.
    private func end(_ result: Result<Void, any Error>) {
        let waiter = writing.withLock { writing in
            if case .failure(let error) = result { writing.failure = AssetError(error) }
            writing.isUnderway = false
            return writing.waiter.take()
        }
        waiter?.resume()
    }

    /// Waits for the block that is being written.
    private func written() async throws(AssetError) {
        await withCheckedContinuation { waiter in
            let isOver = writing.withLock { writing in
                if writing.isUnderway { writing.waiter = waiter }
                return !writing.isUnderway
            }
            if isOver { waiter.resume() }
        }
        guard let failure = writing.withLock(\.failure) else { return }
        await drop()
        throw failure
    }

    /// The whole blocks that what was gathered makes with some bytes more. And how much came in all.
    private func take(_ bytes: some Collection<UInt8>) -> (blocks: [[UInt8]], total: UInt64) {
        gathered.withLock { gathered in
            gathered.total += UInt64(bytes.count)
            // What comes from a peer is a block already.
            if gathered.bytes.isEmpty, let block = bytes as? [UInt8], block.count == Self.blockBytes {
                return ([block], gathered.total)
            }
            var blocks: [[UInt8]] = []
            var rest = bytes[...]
            while !rest.isEmpty {
                if gathered.bytes.isEmpty { gathered.bytes.reserveCapacity(Self.blockBytes) }
                let part = rest.prefix(Self.blockBytes - gathered.bytes.count)
                gathered.bytes += part
                rest = rest.dropFirst(part.count)
                guard gathered.bytes.count == Self.blockBytes else { break }
                blocks.append(gathered.bytes)
                gathered.bytes = []
            }
            return (blocks, gathered.total)
        }
    }

    /// Makes the file durable on this node.
    /// - Parameter expected: what it has to be.
    /// - Throws: `AssetError.missing` where it is something else, `.diskFull`, `.unavailable`; then nothing of the file
    ///   is left.
    @discardableResult
    package func finish(as expected: AssetReference? = nil) async throws(AssetError) -> AssetReference {
        try await written()
        let rest = gathered.withLock { gathered in
            defer { gathered.bytes = [] }
            return gathered.bytes
        }
        let reference = try await work { [files, stampMilliseconds] writer in
            try writer.write(rest)
            return try files.keep(&writer, time: stampMilliseconds(), as: expected)
        }
        _ = writer.withLock { $0.take() }
        ended()
        feed?.finish(reference)
        return reference
    }

    /// Leaves nothing.
    package func abandon() async {
        try? await written()
        await drop()
    }

    private func drop() async {
        guard let writer = writer.withLock({ $0.take() }) else { return }
        ended()
        feed?.abandon()
        do {
            try await pool.run { [files] in files.abandon(writer) }
        } catch {
            files.abandonLater(writer)
        }
    }

    private func work<Value: Sendable>(
        _ body: @escaping @Sendable (inout AssetWriter) throws -> Value
    ) async throws(AssetError) -> Value {
        do {
            return try await pool.run { [self] in try withWriter(body) }
        } catch {
            await drop()
            throw AssetError(error)
        }
    }

    private func withWriter<Value>(_ body: (inout AssetWriter) throws -> Value) throws -> Value {
        try writer.withLock { writer in
            guard writer != nil else { throw AssetError.unavailable("the upload has ended") }
            return try body(&writer!)  // nil was excluded above, and the copy would double the buffer
        }
    }
}

extension AssetUpload {
    /// Has a majority of a group's replicas hold what this was, as `ClusterNode.holdAsset` does; those that copied it
    /// while it came in, by that copy. They have longer than a request has: else all bytes would have to come again.
    /// - Throws: `AssetError.diskFull`, `.unavailable`; who sent the bytes may send them again.
    package func hold(
        _ asset: AssetReference, in group: GroupID, of node: ClusterNode
    ) async throws(AssetError) {
        do {
            try await node.assets.hold(
                asset, in: group, hint: node.map.holders(of: group), from: feed,
                by: node.deadline(milliseconds: settings.holdMilliseconds))
        } catch .missing {
            throw .unavailable("the disk of this node damaged the file before others had it: send it again")
        }
    }
}

extension AssetFiles {
    /// - Throws: `AssetError.diskFull` where files would take the room that is kept for everything else.
    func requireSpace(_ settings: AssetSettings) throws {
        guard try freeBytes() > settings.spareBytes else { throw AssetError.diskFull }
    }
}
