import Directory
import Logging
package import NIOCore
import PeerTransport
package import RaftCore
package import RecordModel
import Synchronization
import Wire

/// The files that records name: takes them in, has them held by a group's replicas, and reads them.
///
/// One thing moves bytes between nodes: who is to have a file asks for its pieces (`pull`), from `follow` on where it
/// still comes in. Only downloads at a node without the file read single pieces and keep nothing. Nothing waits for a
/// disk but the threads of `pool`.
package final class AssetExchange: Sendable {
    let settings: NodeSettings
    let platform: any NodePlatform
    let files: AssetFiles
    let pool: BlockingPool
    let router: Router
    let peers: AssetPeers
    private let pulls: AssetPulls<[UInt8]>
    /// Uploads of other nodes that are copied here while they come in.
    let follows: AssetPulls<UploadID>
    /// Those of this node.
    let feeds = UploadFeeds()
    private let uploads = Mutex(0)
    private let served = Mutex(0)
    let counters = AssetCounters()
    /// The time with which files are marked that are to be kept from now on.
    private let stampMilliseconds: @Sendable () -> Int64
    let logger: Logger

    /// Pieces that are read for peers at once: 8 MB.
    private static let servedMax = 32

    init(
        settings: NodeSettings, platform: any NodePlatform, files: AssetFiles, pool: BlockingPool, router: Router,
        transport: any PeerNetwork, clockWatch: ClockWatch, logger: Logger
    ) {
        self.settings = settings
        self.platform = platform
        self.files = files
        self.pool = pool
        self.router = router
        self.logger = logger
        stampMilliseconds = { clockWatch.knownMilliseconds ?? AssetFiles.unknownMilliseconds }
        peers = AssetPeers(transport: transport, settings: settings.assets, clock: platform.clock)
        pulls = AssetPulls(runningMax: settings.assets.pullsMax)
        follows = AssetPulls(runningMax: settings.assets.uploadsMax)
    }

    // MARK: On this node

    /// Begins a file that comes in.
    /// - Parameter group: whose voters may copy it meanwhile; nil for none.
    func receive(limit: UInt64, for group: GroupID?) async throws(AssetError) -> AssetUpload {
        let isTaken = uploads.withLock { count in
            guard count < settings.assets.uploadsMax else { return false }
            count += 1
            return true
        }
        guard isTaken else { throw .unavailable("this node takes as many uploads as it may; try again") }
        let ended: @Sendable () -> Void = { [weak self] in self?.uploads.withLock { $0 -= 1 } }
        do {
            return try await begin(limit: min(limit, AssetReference.sizeMax), for: group, ended)
        } catch {
            ended()
            throw AssetError(error)
        }
    }

    func begin(
        limit: UInt64, for group: GroupID? = nil, _ ended: @escaping @Sendable () -> Void = {}
    ) async throws -> AssetUpload {
        let writer = try await pool.run { [files, settings] in
            files.removeAbandoned()
            try files.requireSpace(settings.assets)
            return try files.begin(limit: limit)
        }
        return AssetUpload(
            files: files, pool: pool, settings: settings.assets, writer: writer,
            feed: group.map { openFeed(of: writer.content, for: $0) }, stampMilliseconds: stampMilliseconds,
            ended: ended)
    }

    /// Whether this node has a file; if so, it keeps it for as long as one that was just received.
    func renew(_ asset: AssetReference) async throws(AssetError) -> Bool {
        try await run { [files, settings, stampMilliseconds] in
            try files.renew(asset, time: stampMilliseconds(), interval: settings.assets.renewalMilliseconds)
        }
    }

    /// Whether this node has a file of the right length.
    func holds(_ asset: AssetReference) async throws(AssetError) -> Bool {
        try await run { [files] in try files.open(asset) != nil }
    }

    private func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(AssetError) -> Value {
        do {
            return try await pool.run(work)
        } catch {
            throw AssetError(error)
        }
    }

    // MARK: From peers

    /// Fetches a file from the first of some nodes that has it; going on with the next where one fails. Durable when it
    /// returns. A file that is being fetched already is waited for.
    /// - Throws: `AssetError.missing` where all of them answer and none has it, whole; `.diskFull`, `.unavailable`.
    func pull(_ asset: AssetReference, from candidates: [NodeID]) async throws(AssetError) {
        guard await pulls.enter(asset.sha256) else {
            throw .unavailable("this node fetches as many files as it may; try again")
        }
        defer { pulls.leave(asset.sha256) }
        // Who fetched it before may have been waited for.
        if try await renew(asset) { return }
        var sources = candidates.filter { $0 != settings.nodeID }
        do {
            repeat {
                if try await fetch(asset, from: sources) {
                    return counters.update { ($0.pulls, $0.pulledBytes) = ($0.pulls + 1, $0.pulledBytes + asset.size) }
                }
                // One of those that gave something gave something else. Fewer are left each time.
                counters.update { $0.failedPulls += 1 }
                logger.warning("asset \(asset): what nodes \(sources) have is something else")
                sources = Array(sources.dropFirst())
            } while !sources.isEmpty
            throw AssetError.missing
        } catch {
            counters.update { $0.failedPulls += 1 }
            throw AssetError(error)
        }
    }

    /// - Returns: whether the file is here; false where what came is something else.
    private func fetch(_ asset: AssetReference, from sources: [NodeID]) async throws -> Bool {
        let file = try await begin(limit: asset.size)
        do {
            try await receive(asset, after: 0, from: sources, in: file)
        } catch {
            await file.abandon()
            throw error
        }
        do {
            try await file.finish(as: asset)
            return true
        } catch AssetError.missing {
            return false
        }
    }

    /// Reads a file behind what is there from the first source, and goes on with the next where one fails.
    func receive(
        _ asset: AssetReference, after start: UInt64, from sources: [NodeID], in file: AssetUpload
    ) async throws {
        let sources = AssetSources(sources)
        var offset = start
        while offset < asset.size {
            guard let source = sources.first else { throw sources.failure }
            do {
                try await peers.pieces(of: asset, from: offset, at: source) { piece in
                    try await file.write(piece)
                    offset += UInt64(piece.count)
                }
            } catch let error as AssetPeers.Failure {
                logger.debug("asset \(asset): node \(source): \(error)")
                sources.drop(source, mayHaveIt: !error.isAbsence)
            }
        }
    }

    /// How long the nodes that copied an upload are waited for before others are asked, too.
    private static let followersMilliseconds: UInt64 = 1_000

    /// Has a majority of a group's voters hold a file durably.
    /// - Parameters:
    ///   - hint: nodes that have it, beside the voters.
    ///   - upload: as what it came in here. Those that copied it meanwhile have all that the answer waits for, and
    ///     little left to do: the others, whose copies would take processors from theirs, are asked after them.
    ///   - deadline: when it is given up; what was asked of nodes goes on, and serves the next try.
    func hold(
        _ asset: AssetReference, in group: GroupID, hint: [NodeID], from upload: UploadFeed? = nil,
        by deadline: Deadline
    ) async throws(AssetError) {
        let configuration: Configuration
        do {
            configuration = try await router.members(of: group, by: deadline).configuration
        } catch {
            throw .unavailable("\(error)")
        }
        let voters = Set((configuration.voters + configuration.outgoing).map(\.node)).sorted()
        let isHere = try await renew(asset)
        let sources = (isHere ? [settings.nodeID] : []) + hint.filter { $0 != settings.nodeID } + voters
        var unique: [NodeID] = []
        for source in sources where !unique.contains(source) { unique.append(source) }
        let tally = AssetTally(configuration)
        if isHere { tally.add(settings.nodeID, nil) }
        let followers = upload?.followers ?? []
        let asked = voters.filter { !(isHere && $0 == settings.nodeID) }
        for isFollowing in [true, false] {
            for voter in asked where followers.contains(voter) == isFollowing {
                if voter == settings.nodeID {
                    hold(asset, from: unique, after: .none) { tally.add(voter, AssetPeers.error(of: $0)) }
                } else {
                    let sources = unique.filter { $0 != voter }
                    let request = NodeRequest.holdAsset(asset, group, from: sources, after: upload?.id ?? .none)
                    peers.hold(request, at: voter) { tally.add(voter, $0) }
                }
            }
            if isFollowing, !followers.isEmpty {
                await tally.firstWord(within: Self.followersMilliseconds, on: platform)
            }
        }
        if let error = await tally.result(by: deadline, on: platform) { throw error }
    }

    /// Serves `hold` for this node: answers once it has the file durably.
    /// - Parameter upload: as what it came in elsewhere; a copy of that which is being made here is waited for.
    func hold(
        _ asset: AssetReference, from sources: [NodeID], after upload: UploadID,
        _ answer: @escaping @Sendable (NodeReply) -> Void
    ) {
        platform.startTask { [self] in
            await follows.awaitEnd(of: upload)
            do throws(AssetError) {
                if try await !renew(asset) { try await pull(asset, from: sources) }
                answer(.done([]))
            } catch {
                answer(AssetPeers.reply(error))
            }
        }
    }

    /// Whether the tables of a group's leader count a file, once they tell of all that its log holds.
    /// - Throws: where no leader answers, or its build does not know the question.
    func leaderCounts(_ sha256: [UInt8], in group: GroupID) async throws(ClusterError) -> Bool {
        let deadline = Deadline(milliseconds: settings.requestDeadlineMilliseconds, from: platform.clock.now)
        let answer = try await router.read(
            ShardRead.countsAsset(sha256).encoded(), from: group, isAfterLog: true, by: deadline)
        guard case .found(let found)? = try? ReadAnswer(decoding: answer) else {
            throw .failed("the leader of group \(group) does not say whether it counts a file")
        }
        return found.bytes != [0]
    }

    /// Serves a piece of a file that is here.
    func read(
        _ asset: AssetReference, _ range: Range<UInt64>, _ answer: @escaping @Sendable (NodeReply) -> Void
    ) {
        serve(answer) { [files] in try files.open(asset)?.bytes(range) ?? [] }
    }

    /// Answers a peer with bytes of a disk, on a thread for that.
    func serve(
        _ answer: @escaping @Sendable (NodeReply) -> Void, _ read: @escaping @Sendable () throws -> [UInt8]
    ) {
        let isTaken = served.withLock { count in
            guard count < Self.servedMax else { return false }
            count += 1
            return true
        }
        guard isTaken else { return answer(.overloaded) }
        let end: @Sendable (NodeReply) -> Void = { [self] reply in
            served.withLock { $0 -= 1 }
            answer(reply)
        }
        do throws(QueueFull) {
            try pool.submit { isActive in
                guard isActive else { return end(.unavailable("the node is stopping")) }
                do {
                    end(.done(try read()))
                } catch {
                    end(AssetPeers.reply(AssetError(error)))
                }
            }
        } catch {
            end(.overloaded)
        }
    }

    /// The bytes of a range: from here, or from a peer, piece by piece.
    func read(
        _ asset: AssetReference, range: Range<UInt64>, from candidates: [NodeID]
    ) async throws(AssetError) -> AssetBytes {
        let sources = AssetSources(candidates.filter { $0 != settings.nodeID })
        let file = try await run { [files] in try files.open(asset) }
        let piece: @Sendable (Range<UInt64>) async throws(AssetError) -> [UInt8] = {
            [self] (piece) async throws(AssetError) -> [UInt8] in
            if let file, let bytes = try? await run({ try file.bytes(piece) }) { return bytes }
            while let source = sources.first {
                if Task.isCancelled { break }
                do {
                    return try await peers.piece(of: asset, piece, at: source)
                } catch {
                    sources.drop(source, mayHaveIt: (error as? AssetPeers.Failure)?.isAbsence != true)
                }
            }
            throw sources.failure
        }
        // Whether anybody has it is known before the answer begins.
        let first = range.lowerBound..<min(range.upperBound, range.lowerBound + AssetBytes.pieceBytes)
        let bytes = first.isEmpty ? [] : try await piece(first)
        return AssetBytes(first: bytes, rest: first.upperBound..<range.upperBound, piece: piece)
    }
}

/// Nodes that may have a file, in the order in which they are asked.
private final class AssetSources: Sendable {
    private struct State {
        var nodes: [NodeID]
        var mayBeAtDropped = false
    }

    private let state: Mutex<State>
    init(_ nodes: [NodeID]) { state = Mutex(State(nodes: nodes)) }

    var first: NodeID? { state.withLock(\.nodes.first) }

    /// Why the file cannot be had once all were asked: one of them may have it, unless all said that they lack it.
    var failure: AssetError {
        state.withLock(\.mayBeAtDropped)
            ? .unavailable("a node that may have the file does not answer; try again") : .missing
    }

    func drop(_ node: NodeID, mayHaveIt: Bool) {
        state.withLock { state in
            state.nodes.removeAll { $0 == node }
            if mayHaveIt { state.mayBeAtDropped = true }
        }
    }
}

/// The bytes of an asset, in order, in pieces of at most 256 KiB. Read once, by one task.
package struct AssetBytes: AsyncSequence, Sendable {
    /// Bytes of a piece.
    static let pieceBytes: UInt64 = 256 << 10

    let first: [UInt8]
    let rest: Range<UInt64>
    let piece: @Sendable (Range<UInt64>) async throws(AssetError) -> [UInt8]

    /// Reads from the first byte of the range on.
    package func makeAsyncIterator() -> Iterator { Iterator(first: first, rest: rest, piece: piece) }

    /// Reads a piece at each step.
    package struct Iterator: AsyncIteratorProtocol {
        var first: [UInt8]
        var rest: Range<UInt64>
        let piece: @Sendable (Range<UInt64>) async throws(AssetError) -> [UInt8]

        /// - Throws: `AssetError` where the rest cannot be had; `CancellationError`.
        package mutating func next() async throws -> ByteBuffer? {
            try Task.checkCancellation()
            if !first.isEmpty {
                defer { first = [] }
                return ByteBuffer(bytes: first)
            }
            guard !rest.isEmpty else { return nil }
            let end = Swift.min(rest.upperBound, rest.lowerBound + AssetBytes.pieceBytes)
            let bytes = try await piece(rest.lowerBound..<end)
            rest = end..<rest.upperBound
            return ByteBuffer(bytes: bytes)
        }
    }
}

extension ClusterNode {
    /// Begins a file that comes in; the replicas of a group, if one is named, may copy it meanwhile.
    /// - Parameter limit: the most bytes that it may have.
    /// - Throws: `AssetError.diskFull`, or `.unavailable` where too many are received already.
    package func receiveAsset(limit: UInt64, for group: GroupID? = nil) async throws(AssetError) -> AssetUpload {
        try await assets.receive(limit: limit, for: group)
    }

    /// Whether every node of the cluster knows of assets, as far as this one knows.
    package var hasAssets: Bool { holdings[.directory].map { $0.level >= .assets } ?? false }

    /// What this node did with files since its start, and what it knows of them.
    package var assetCounts: AssetCounts { assets.counters.current }

    /// Has a majority of a group's replicas hold a file durably, and keep it for a day from now at least. To be called
    /// after an upload, before its receipt is given, and before a command is submitted that newly names the file.
    /// - Throws: `AssetError.missing` where no node has it; `.diskFull`, `.unavailable` where too few can hold it.
    package func holdAsset(
        _ asset: AssetReference, in group: GroupID, by deadline: Deadline? = nil
    ) async throws(AssetError) {
        try await assets.hold(asset, in: group, hint: map.holders(of: group), by: deadline ?? self.deadline())
    }

    /// The bytes of a range of a file, which lies within its size: from here, or from another node.
    /// - Throws: `AssetError.missing` where no node has it; what goes wrong later is thrown by the sequence.
    package func readAsset(
        _ asset: AssetReference, in group: GroupID, range: Range<UInt64>
    ) async throws(AssetError) -> AssetBytes {
        try await assets.read(asset, range: range, from: map.holders(of: group))
    }
}
