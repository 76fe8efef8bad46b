import Crypto
import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import RecordStore
import Storage
import Synchronization

/// What the shards of this node say of the files that their records name. Any thread.
package final class AssetNews: Sendable {
    private struct State {
        var named: [AssetReference] = []
        var isComparisonDue = true
    }

    private let state = Mutex(State())
    /// Files that are remembered one by one, less than a transaction tells of; more are found by a comparison.
    static let namedMax = RecordTransaction.namedAssetsMax - 1

    /// News of a node that has just started: everything is to be compared.
    package init() {}

    /// Records came to name files.
    func named(_ assets: [AssetReference]) {
        state.withLock { state in
            if state.named.count + assets.count <= Self.namedMax {
                state.named += assets
            } else {
                (state.named, state.isComparisonDue) = ([], true)
            }
        }
    }

    /// Any file may be named: a database was opened or installed.
    func changed() { state.withLock { $0.isComparisonDue = true } }

    /// What was said since the last call.
    func take() -> (named: [AssetReference], isComparisonDue: Bool) {
        state.withLock { state in
            defer { (state.named, state.isComparisonDue) = ([], false) }
            return (state.named, state.isComparisonDue)
        }
    }
}

/// Keeps the files of this node as its groups' tables have them: fetches what is missing, deletes what nothing names,
/// and reads all of them again and again to find what a disk changed.
final class AssetKeeper: Sendable {
    private let exchange: AssetExchange
    private let news: AssetNews
    private let holdings: HostedGroups
    private let lane: Lane
    private let upkeep: BlockingPool
    private let folder: NodeFolder
    private let map: @Sendable () -> ClusterMap
    private let logger: Logger
    private let state = Mutex(State())

    private struct State {
        /// Files that are named and not here.
        var wanted: [AssetReference: Wanted] = [:]
        /// Groups whose tables are still to be compared with the files, the next one first.
        var comparisons: [Comparison] = []
        /// Whether the next comparison begins as soon as the one under way is done.
        var isComparisonDue = false
        var nextComparison = MonotonicTime.zero
        /// When nodes are asked again for files that none of them has.
        var nextSearch = MonotonicTime.zero
        var nextCollection = MonotonicTime.zero
        /// Where the logs of the groups ended when files were last looked through.
        var ends: [GroupID: LogIndex] = [:]
    }

    private struct Comparison {
        var group: GroupID
        /// The last file that was compared.
        var last: AssetReference?
    }

    private struct Wanted {
        /// One that names it.
        var group: GroupID
        /// Whether all nodes were asked and none has it.
        var isMissing = false
    }

    init(
        exchange: AssetExchange, news: AssetNews, holdings: HostedGroups, lane: Lane, upkeep: BlockingPool,
        folder: NodeFolder, logger: Logger, map: @escaping @Sendable () -> ClusterMap
    ) {
        self.exchange = exchange
        self.news = news
        self.holdings = holdings
        self.lane = lane
        self.upkeep = upkeep
        self.folder = folder
        self.logger = logger
        self.map = map
    }

    private var settings: AssetSettings { exchange.settings.assets }
    private var clock: any NodeClock { exchange.platform.clock }
    /// The groups that have records.
    private var shards: [Applier] { holdings.all.filter { $0.group != .directory } }

    /// Looks for work until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            do {
                try await lookForMissing()
                await fetchMissing()
                if state.withLock({ $0.nextCollection <= clock.now }) { try await collect() }
            } catch is CancellationError {
                return
            } catch {
                logger.warning("the files of assets are looked at again in a while: \(error)")
            }
            do { try await clock.sleep(milliseconds: settings.roundMilliseconds) } catch { return }
        }
    }

    // MARK: What is missing

    private func lookForMissing() async throws {
        let (named, isDue) = news.take()
        if isDue { state.withLock { $0.isComparisonDue = true } }
        do {
            try await look(for: named)
        } catch {
            // What was not looked at yet is found by a comparison.
            state.withLock { $0.isComparisonDue = true }
            throw error
        }
        state.withLock { state in
            guard state.comparisons.isEmpty, state.isComparisonDue || state.nextComparison <= clock.now else { return }
            state.isComparisonDue = false
            state.nextComparison = clock.now.adding(milliseconds: settings.comparisonMilliseconds)
            state.comparisons = shards.map { Comparison(group: $0.group) }
        }
        try await compare()
    }

    /// Notes those of some files that a group counts and that are not here.
    private func look(for named: [AssetReference]) async throws {
        for asset in named where try await !exchange.holds(asset) {
            if isFull {
                // The next comparison finds the rest.
                state.withLock { $0.isComparisonDue = true }
                break
            }
            if let group = try await groupThatCounts(asset.sha256) { note(asset, group) }
        }
    }

    /// A group of this node whose table counts a file; nil where no table does.
    /// - Throws: also where a table cannot be read and no other one counts it.
    private func groupThatCounts(_ hash: [UInt8]) async throws -> GroupID? {
        try await upkeep.run { [shards] in
            var failure: (any Error)?
            for shard in shards {
                do {
                    if try shard.database.read({ try AssetTables.keeps(hash, in: $0) }) { return shard.group }
                } catch {
                    failure = error
                }
            }
            if let failure { throw failure }
            return nil
        }
    }

    private func note(_ asset: AssetReference, _ group: GroupID) {
        state.withLock { if $0.wanted[asset] == nil { $0.wanted[asset] = Wanted(group: group) } }
    }

    /// Whether no more files are noted for now. Those that no node has, of which as many are remembered, do not keep
    /// others from being fetched.
    private var isFull: Bool {
        state.withLock { $0.wanted.values.count { !$0.isMissing } >= settings.wantedMax }
    }

    /// Compares what the tables count with the files, page by page: until enough is missing to be fetched first, after
    /// which it goes on there. A table that cannot be read is left to a later comparison.
    private func compare() async throws {
        while !isFull, let next = state.withLock(\.comparisons.first) {
            let page: [AssetReference]
            switch try await named(next) {
            case .success(let assets): page = assets
            case .failure(let error):
                logger.warning("group \(next.group): the files that its records name cannot be told: \(error)")
                page = []
            }
            for asset in page where try await !exchange.holds(asset) { note(asset, next.group) }
            state.withLock { state in
                if page.isEmpty { state.comparisons.removeFirst() } else { state.comparisons[0].last = page.last }
            }
        }
    }

    /// The next page of what a group's table counts, or why it cannot be read.
    private func named(_ comparison: Comparison) async throws -> Result<[AssetReference], any Error> {
        guard let shard = holdings[comparison.group] else { return .success([]) }
        let pageMax = min(500, settings.wantedMax)
        return try await upkeep.run {
            Result {
                try shard.database.read { try AssetTables.named(after: comparison.last, limit: pageMax, in: $0) }
            }
        }
    }

    private func fetchMissing() async {
        let isSearchDue = state.withLock { state in
            guard state.nextSearch <= clock.now else { return false }
            state.nextSearch = clock.now.adding(milliseconds: settings.searchMilliseconds)
            return true
        }
        let wanted = wanted.filter { isSearchDue || !$0.value.isMissing }
        countWanted()
        if wanted.isEmpty { return }
        let current = (try? await areCurrent()) ?? [:]
        // As many at once as are fetched at once, so that one dead peer does not hold up all.
        await withTaskGroup(of: Void.self) { tasks in
            for (place, (asset, state)) in wanted.enumerated() {
                if place >= settings.pullsMax { await tasks.next() }
                if Task.isCancelled { break }
                tasks.addTask {
                    await self.fetch(asset, of: state.group, isCurrent: current[state.group] == true)
                }
            }
        }
        countWanted()
    }

    /// In the order of their hashes.
    private var wanted: [(key: AssetReference, value: Wanted)] {
        state.withLock { $0.wanted }.sorted { $0.key.sha256.lexicographicallyPrecedes($1.key.sha256) }
    }

    private func countWanted() {
        let wanted = wanted
        let missing = wanted.filter(\.value.isMissing).map(\.key)
        let isCompared = state.withLock(\.comparisons.isEmpty)
        exchange.counters.update { counts in
            counts.fetching = max(UInt64(wanted.count - missing.count), isCompared ? 0 : 1)
            counts.missing = UInt64(missing.count)
            counts.missingFiles = Array(missing.prefix(AssetCounts.missingFilesMax))
        }
    }

    /// - Parameter isCurrent: whether the group's tables tell of all that its log held a while ago. Else a file that no
    ///   node has may be one whose record was deleted since.
    private func fetch(_ asset: AssetReference, of group: GroupID, isCurrent: Bool) async {
        do {
            if try await groupThatCounts(asset.sha256) != nil {
                try await exchange.pull(asset, from: map().holders(of: group))
            }
            state.withLock { _ = $0.wanted.removeValue(forKey: asset) }
        } catch AssetError.missing where isCurrent {
            let isNew = state.withLock { state in
                if state.wanted[asset]?.isMissing == true { return false }
                if state.wanted.values.count(where: \.isMissing) >= settings.wantedMax {
                    // Later comparisons find it again.
                    state.wanted[asset] = nil
                    return false
                }
                state.wanted[asset]?.isMissing = true
                return true
            }
            if !isNew { return }
            logger.error("asset \(asset) is named by records of group \(group), and no node has it whole")
        } catch {
            state.withLock { $0.wanted[asset]?.isMissing = false }
            logger.debug("asset \(asset) is fetched again in a while: \(error)")
        }
    }

    // MARK: What nothing names

    /// Deletes files that no group of this node counts, and that were not renewed within the grace.
    func collect() async throws {
        let next = clock.now.adding(milliseconds: settings.collectionMilliseconds)
        try await work { $0.removeAbandoned() }
        let basis = basis
        var unsure = try await unsureGroups()
        let before = clock.wallMilliseconds - settings.graceMilliseconds
        var (files, bytes): (UInt64, UInt64) = (0, 0)
        try await forEachFile { hash in
            guard let status = try await work({ try $0.status(of: hash) }) else { return }
            if let groups = unsure, status.modified < before {
                do {
                    if try await isGone(hash, before, basis, unsure: groups) { return }
                } catch let error where !(error is CancellationError) {
                    logger.warning("files of assets that nothing may name any more stay until a later look: \(error)")
                    unsure = nil
                }
            }
            try await stampAnew(hash, status.modified)
            files += 1
            bytes += UInt64(status.bytes)
        }
        exchange.counters.update { ($0.files, $0.bytes) = (files, bytes) }
        state.withLock { $0.nextCollection = next }
    }

    /// A file that was stamped while the time was not known, or by a clock far ahead, is renewed now: it would be kept
    /// for so much longer.
    private func stampAnew(_ hash: [UInt8], _ modified: Int64) async throws {
        guard let now = lane.clockWatch.knownMilliseconds, modified > now + ShardClock.stepMax else { return }
        let interval = settings.graceMilliseconds
        try await work { files in
            guard let file = try files.open(sha256: hash) else { return }
            _ = try files.renew(file.reference, time: now, interval: interval)
        }
    }

    /// Goes through the files of this node by their hashes, in order.
    /// - Parameters:
    ///   - start: the first byte of the hashes to begin with; those before come last.
    ///   - reached: called before those with another first byte.
    private func forEachFile(
        from start: UInt8 = 0, reached: (UInt8) async throws -> Void = { _ in }, _ body: ([UInt8]) async throws -> Void
    ) async throws {
        let firsts = try await work { try $0.firstBytes() }
        for first in firsts.filter({ $0 >= start }) + firsts.filter({ $0 < start }) {
            try Task.checkCancellation()
            try await reached(first)
            for hash in try await work({ try $0.hashes(beginningWith: first) }) { try await body(hash) }
        }
    }

    /// Works on the files, on a thread for that.
    private func work<Value: Sendable>(
        _ body: @escaping @Sendable (AssetFiles) throws -> Value
    ) async throws -> Value {
        try await exchange.pool.run { [files = exchange.files] in try body(files) }
    }

    /// What a look through the files relies on: the replicas here, and when one was last given up.
    private var basis: Basis { Basis(groups: shards.map(\.group), gaveUpAt: folder.identity.gaveUpAt) }

    private struct Basis: Equatable {
        var groups: [GroupID]
        var gaveUpAt: Int64?
    }

    private func isGone(
        _ hash: [UInt8], _ before: Int64, _ basis: Basis, unsure: [GroupID]
    ) async throws -> Bool {
        if try await groupThatCounts(hash) != nil { return false }
        for group in unsure where try await exchange.leaderCounts(hash, in: group) { return false }
        // A replica that was given up meanwhile was not asked any more, and its files are to stay.
        guard self.basis == basis else { return false }
        let isGone = try await work { try $0.remove(hash, unlessRenewedSince: before) }
        if isGone { exchange.counters.update { $0.collected += 1 } }
        return isGone
    }

    /// The groups with a replica here, or one to come, of which records may name what the tables here do not count yet:
    /// these do not tell of all that the log held at the last look, or are still being brought up. Their leaders are
    /// asked. A command that came into a log since then had its files held not much earlier.
    /// - Returns: nil where nothing may be deleted: a wrong clock makes files seem older than they are, and after a
    ///   replica went to another node its files stay for the grace, as they are still to be fetched there.
    private func unsureGroups() async throws -> [GroupID]? {
        guard let now = lane.clockWatch.knownMilliseconds else { return nil }
        if let time = folder.identity.gaveUpAt, time > now - settings.graceMilliseconds {
            // The time was not known when that was written, or a clock was far ahead: the grace begins now.
            if time > now + ShardClock.stepMax { try folder.update { $0.gaveUpAt = now } }
            return nil
        }
        let (current, map, node) = (try await areCurrent(), map(), exchange.settings.nodeID.rawValue)
        let expected = map.groups.filter { group in
            group != .directory && map.replicas(ofShard: group.shard).contains { $0.node == node }
        }
        return Set(expected).union(current.keys).filter { current[$0] != true }.sorted()
    }

    /// Of each shard with a replica here, whether its tables tell of all that its log held at the last look, and the
    /// replica is not being brought up any more. The directory names no files, and many nodes only follow it.
    private func areCurrent() async throws -> [GroupID: Bool] {
        let replicas = try await lane.eventLoop.submit { [lane] in lane.status() }.get()
            .filter { $0.group != .directory }
        let ends = state.withLock { state in
            defer { state.ends = Dictionary(uniqueKeysWithValues: replicas.map { ($0.group, $0.lastLog.index) }) }
            return state.ends
        }
        let current = replicas.map { replica in
            guard let end = ends[replica.group] else { return (replica.group, false) }
            return (
                replica.group, replica.isVoter && replica.applyFailure == nil && replica.appliedIndex >= end
            )
        }
        return Dictionary(uniqueKeysWithValues: current)
    }

    // MARK: What a disk changed

    /// Reads all files again and again, so many bytes a second, until the task is cancelled. A new start goes on where
    /// the last one ended.
    func scrub() async {
        while !Task.isCancelled {
            do {
                let start = try await work { $0.scrubPosition() }
                // A full disk keeps nobody from reading.
                try await forEachFile(
                    from: start, reached: { first in _ = try? await work { try $0.noteScrub(at: first) } }
                ) { try await scrub($0) }
            } catch is CancellationError {
                return
            } catch {
                logger.warning("files of assets cannot be read to compare them with their hashes: \(error)")
            }
            do { try await clock.sleep(milliseconds: settings.scrubPauseMilliseconds) } catch { return }
        }
    }

    private func scrub(_ hash: [UInt8]) async throws {
        var isSound = true
        var found: AssetFile?
        do {
            found = try await work { try $0.open(sha256: hash) }
            guard let file = found else { return }
            isSound = try await hasBytes(file, hash)
        } catch AssetError.missing {
            isSound = false
        }
        if isSound { return }
        let damaged = found
        guard try await work({ try $0.setAside(hash, found: damaged) }) else { return }
        logger.error(
            "the file of asset \(Hex.encode(hash)) is damaged: it is moved to assets/damaged, and fetched from a peer"
        )
        exchange.counters.update { $0.damaged += 1 }
        news.changed()
        // Many are not set aside in no time.
        try await rest(after: Self.scrubbedAtOnce)
    }

    /// Whether a file has the bytes that its hash is of.
    private func hasBytes(_ file: AssetFile, _ hash: [UInt8]) async throws -> Bool {
        var hasher = SHA256()
        var offset: UInt64 = 0
        while offset < file.reference.size {
            let range = offset..<min(file.reference.size, offset + Self.scrubbedAtOnce)
            let bytes = try await exchange.pool.run { try file.bytes(range) }
            hasher.update(data: bytes)
            offset = range.upperBound
            exchange.counters.update { $0.scrubbedBytes += UInt64(range.count) }
            try await rest(after: UInt64(range.count))
        }
        return Array(hasher.finalize()) == hash
    }

    private static let scrubbedAtOnce = 4 * AssetBytes.pieceBytes

    /// Waits as long as reading so many bytes takes within the budget.
    private func rest(after bytes: UInt64) async throws {
        try await clock.sleep(milliseconds: bytes * 1_000 / settings.scrubBytesPerSecond)
    }
}

extension ClusterMap {
    /// The nodes that shall have a group's files, then all others: replicas may be on their way.
    func holders(of group: GroupID) -> [NodeID] {
        let members = replicas(ofShard: group.shard).map { NodeID(rawValue: $0.node) }
        return members + nodes.map { NodeID(rawValue: $0.id) }.filter { !members.contains($0) }
    }
}
