package import NIOCore
package import RaftCore
package import RecordModel
import Synchronization

/// The files that records name: takes them in, has them held by a group's replicas, and reads them.
package final class AssetExchange: Sendable {
    private let settings: NodeSettings
    private let platform: any NodePlatform
    private let files: AssetFiles
    private let pool: BlockingPool
    private let router: Router
    private let uploads = Mutex(0)

    init(
        settings: NodeSettings, platform: any NodePlatform, files: AssetFiles, pool: BlockingPool, router: Router
    ) {
        self.settings = settings
        self.platform = platform
        self.files = files
        self.pool = pool
        self.router = router
    }

    /// Begins a file that comes in.
    func receive(limit: UInt64) async throws(AssetError) -> AssetUpload {
        let isTaken = uploads.withLock { count in
            guard count < settings.assets.uploadsMax else { return false }
            count += 1
            return true
        }
        guard isTaken else { throw .unavailable("this node takes as many uploads as it may; try again") }
        let ended: @Sendable () -> Void = { [weak self] in self?.uploads.withLock { $0 -= 1 } }
        do {
            let writer = try await pool.run { [files, settings] in
                try files.requireSpace(settings.assets)
                return try files.begin(limit: min(limit, AssetReference.sizeMax))
            }
            return AssetUpload(
                files: files, pool: pool, settings: settings.assets, writer: writer,
                wallMilliseconds: { [platform] in platform.clock.wallMilliseconds }, ended: ended)
        } catch {
            ended()
            throw AssetError(error)
        }
    }

    /// Whether this node has a file, and keeps it for as long as one that was just received.
    private func renew(_ asset: AssetReference) async throws(AssetError) -> Bool {
        do {
            return try await pool.run { [files, settings, platform] in
                try files.renew(
                    asset, time: platform.clock.wallMilliseconds, interval: settings.assets.renewalMilliseconds)
            }
        } catch {
            throw AssetError(error)
        }
    }

    /// Has a majority of a group's voters hold a file durably.
    func hold(_ asset: AssetReference, in group: GroupID, by deadline: Deadline) async throws(AssetError) {
        let configuration: Configuration
        do {
            configuration = try await router.members(of: group, by: deadline).configuration
        } catch {
            throw .unavailable("\(error)")
        }
        let isHere = try await renew(asset)
        guard Quorum.isMajority(configuration, where: { isHere && $0.node == settings.nodeID }) else {
            throw isHere ? .unavailable("too few nodes hold the file") : .missing
        }
    }

    /// The bytes of a range.
    func read(_ asset: AssetReference, range: Range<UInt64>) async throws(AssetError) -> AssetBytes {
        let file: AssetFile?
        do {
            file = try await pool.run { [files] in try files.open(asset) }
        } catch {
            throw AssetError(error)
        }
        guard let file else { throw .missing }
        return AssetBytes(range: range) { [pool] (range) async throws(AssetError) -> [UInt8] in
            do {
                return try await pool.run { try file.bytes(range) }
            } catch {
                throw AssetError(error)
            }
        }
    }
}

/// The bytes of an asset, in order, in pieces of at most 256 KiB. Read once, by one task.
package struct AssetBytes: AsyncSequence, Sendable {
    /// Bytes of a piece.
    static let pieceBytes: UInt64 = 256 << 10

    let range: Range<UInt64>
    let piece: @Sendable (Range<UInt64>) async throws(AssetError) -> [UInt8]

    package func makeAsyncIterator() -> Iterator { Iterator(range: range, piece: piece) }

    /// Reads a piece at each step.
    package struct Iterator: AsyncIteratorProtocol {
        var range: Range<UInt64>
        let piece: @Sendable (Range<UInt64>) async throws(AssetError) -> [UInt8]

        /// - Throws: `AssetError` where the rest cannot be had.
        package mutating func next() async throws -> ByteBuffer? {
            guard !range.isEmpty else { return nil }
            try Task.checkCancellation()
            let end = Swift.min(range.upperBound, range.lowerBound + AssetBytes.pieceBytes)
            let bytes = try await piece(range.lowerBound..<end)
            range = end..<range.upperBound
            return ByteBuffer(bytes: bytes)
        }
    }
}

extension ClusterNode {
    /// Begins a file that comes in.
    /// - Parameter limit: the most bytes that it may have.
    /// - Throws: `AssetError.diskFull`, or `.unavailable` where too many are received already.
    package func receiveAsset(limit: UInt64) async throws(AssetError) -> AssetUpload {
        try await assets.receive(limit: limit)
    }

    /// Has a majority of a group's replicas hold a file durably, and keep it for a day from now at least. To be called
    /// after an upload, before its receipt is given, and before a command is submitted that newly names the file.
    /// - Throws: `AssetError.missing` where no node has it; `.diskFull`, `.unavailable` where too few can hold it.
    package func holdAsset(_ asset: AssetReference, in group: GroupID) async throws(AssetError) {
        try await assets.hold(asset, in: group, by: deadline())
    }

    /// The bytes of a range of a file, which lies within its size: from here, or from another node.
    /// - Throws: `AssetError.missing` where nobody has it; what goes wrong later is thrown by the sequence.
    package func readAsset(
        _ asset: AssetReference, in group: GroupID, range: Range<UInt64>
    ) async throws(AssetError) -> AssetBytes {
        try await assets.read(asset, range: range)
    }
}
