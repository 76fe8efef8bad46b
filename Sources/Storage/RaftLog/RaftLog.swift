import Glibc
package import RaftCore
import Synchronization

/// The log of all Raft groups of a node: the only thing that is synced for each write.
///
/// Everything that waits is written together by one thread, with one write and one fdatasync. Any thread may call any
/// method. Format, recovery and reasons: `Sources/Storage/DESIGN.md`.
package final class RaftLog: Sendable {
    private let options: RaftLogOptions
    private let shared: LogShared
    private let queue: SubmissionQueue
    private let supply: SegmentSupply
    private let running: Mutex<Running?>

    /// The parts that end with `close`.
    private struct Running: Sendable {
        var worker: Worker
        var lock: FolderLock
    }

    /// Drives the writer and the supply of segments.
    private enum Worker: Sendable {
        case threads(writing: SystemThread, preparing: SystemThread)
        case manual(ManualLogWriter)
    }

    private init(_ opened: consuming OpenedLog, options: RaftLogOptions) {
        self.options = options
        let shared = opened.shared
        let supply = opened.supply
        let queue = SubmissionQueue(
            bytesMax: options.queueBytesMax, haltsAfterRefusal: options.haltsAfterRefusal)
        self.shared = shared
        self.supply = supply
        self.queue = queue
        let (logID, folder, tail) = (opened.logID, opened.folder, opened.tail)
        let makeWriter: @Sendable () -> LogWriter = {
            LogWriter(logID: logID, folder: folder, options: options, shared: shared, supply: supply, tail: tail)
        }
        supply.prepare(tail.segment.number + 1)
        let worker: Worker
        switch options.scheduling {
        case .threads:
            worker = .threads(
                writing: SystemThread { makeWriter().run(queue) }, preparing: SystemThread { supply.runPreparation() })
        case .manual:
            worker = .manual(ManualLogWriter(makeWriter()))
        }
        running = Mutex(Running(worker: worker, lock: opened.lock))
    }

    deinit { close() }

    /// Opens the log in a folder of its own, creating it if there is none.
    ///
    /// What is returned is durable. A torn write at the end is cut off.
    /// - Throws: `.locked`; `.corrupt` if anything that was durable is damaged, in which case nothing was changed;
    ///   `.diskFull` or `.failed`.
    package static func open(
        directory: String, options: RaftLogOptions
    ) throws(RaftLogError) -> (log: RaftLog, groups: [GroupID: RecoveredGroup]) {
        let opened = try OpenedLog(folder: directory, options: options)
        let groups = opened.shared.table.withLock { $0.groups.mapValues(\.recovered) }
        return (RaftLog(opened, options: options), groups)
    }

    /// Makes writes durable, all or none being acknowledged, in the order of submission.
    ///
    /// `completion` is called on the log's thread, in order of submission, and must not block nor call `close`. When
    /// the log refuses at once (`.closed`, `.failed`, and `.overloaded` unless it halts then) it is called on the
    /// caller's before this returns. After success the writes survive any crash. After a failure none of them is
    /// visible; after `.failed` they may reappear when the log is opened again, as a write without an answer may.
    package func submit(_ batch: [LogWrite], completion: @escaping @Sendable (Result<Void, RaftLogError>) -> Void) {
        if let refusal = queue.add(.write(Submission(writes: batch, completion: completion))) {
            return completion(.failure(refusal))
        }
        wake()
    }

    /// Takes submissions again after a refusal (see `RaftLogOptions.haltsAfterRefusal`). To be called when every
    /// submission made before has been completed; what was refused is then submitted again, in order.
    package func resume() { queue.resume() }

    /// The disk that the log is on, and the names of its groups' databases.
    package var disk: any LogDisk { options.disk }

    /// Entries from the disk, contiguous from `first`; durable ones only.
    ///
    /// As many as fit in `bytesMax` bytes of log, at least one if there is one, none after `last` or the log's end.
    /// - Returns: nil if `first` is not in the log any more, or the group is unknown.
    /// - Throws: `.corrupt` or `.failed`; a retry does not help.
    package func entries(
        of group: GroupID, from first: LogIndex, through last: LogIndex, bytesMax: Int
    ) throws(RaftLogError) -> [Entry]? {
        let reader = EntryReader(shared: shared, disk: options.disk)
        return try reader.entries(of: group, from: first, through: last, bytesMax: bytesMax)
    }

    /// Says that the group's state machine has durably everything up to the mark, so that entries at or before it may
    /// be collected. A mark beyond the log counts once the log reaches it; an older mark than the last changes nothing.
    package func setDurableIndex(_ mark: SnapshotMark, of group: GroupID) {
        shared.table.withLock { $0.setDurable(mark, of: group) }
    }

    /// Keeps the entries past a copy of the state machine that is sent to a follower, which needs them when it has the
    /// copy; without them it would need another one.
    /// - Parameters:
    ///   - index: where the copy stands, or before; nil lets the entries go.
    ///   - id: tells copies apart.
    package func keepEntries(past index: LogIndex?, forCopy id: UInt64, of group: GroupID) {
        shared.table.withLock { $0.setCopy(id, at: index, of: group) }
    }

    /// Drops the oldest segments that no group needs, in the background.
    ///
    /// Hard states, configurations and marks that only they hold are written again first. Writes that come meanwhile
    /// wait for one segment at most.
    /// - Parameter completion: called on the log's thread with the number of segments that went.
    package func collect(completion: @escaping @Sendable (Result<Int, RaftLogError>) -> Void = { _ in }) {
        if let refusal = queue.add(.collect(completion, dropped: 0)) { return completion(.failure(refusal)) }
        wake()
    }

    /// What is durable of a group now; nil where that is nothing.
    package func held(of group: GroupID) -> RecoveredGroup? { shared.table.withLock { $0.groups[group]?.recovered } }

    private func wake() {
        if case .manual(let wake) = options.scheduling { wake(self) }
    }

    /// Does the waiting work: one write and one fdatasync for all of it, then the completions. For a log with
    /// `LogScheduling.manual` only, on the owner's thread; does nothing once the log is closed.
    package func work() {
        guard case .manual(let writer)? = running.withLock({ $0?.worker }) else { return }
        writer.work(queue)
        supply.prepareNow()
        // A collection goes on behind what was written.
        if queue.hasItems { wake() }
    }

    /// Creates the reserve for a full disk again after its use, if there is room for twice its size. Blocks.
    /// - Returns: whether the reserve is there now.
    package func restoreReserve() -> Bool {
        if supply.hasReserve { return true }
        guard (try? options.disk.canSpare(options.segmentBytes, in: supply.folder)) == true else { return false }
        return (try? supply.restoreReserve()) != nil
    }

    /// The groups with entries after their last `setDurableIndex`. A checkpoint may let these be collected.
    package var uncheckpointedGroups: Set<GroupID> { shared.table.withLock { $0.uncheckpointedGroups } }

    /// The groups that keep the log above its target size: they need a checkpoint, or their followers a snapshot.
    /// Sorted; empty while the log is small enough.
    package var pinningGroups: [GroupID] {
        shared.table.withLock { $0.pinningGroups(sizeBytesTarget: options.sizeBytesTarget) }
    }

    /// The size of the segments that hold records, in bytes.
    package var sizeBytes: Int { shared.table.withLock { $0.sizeBytes } }

    /// Counts since the log was opened.
    package var counters: RaftLogCounters { shared.counters.withLock { $0 } }

    /// Writes the waiting submissions, ends the threads, and unlocks the folder. Later submissions are refused with
    /// `.closed`. Blocks; neither call it from a completion nor let the last reference to the log go there.
    package func close() {
        guard let running = running.withLock({ $0.take() }) else { return }
        queue.refuse(.closed)
        switch running.worker {
        case .threads(let writing, let preparing):
            writing.join()
            supply.close()
            preparing.join()
        case .manual(let writer):
            writer.finish(queue)
            supply.close()
        }
    }
}

/// A log that is locked, read back and ready to be written to.
struct OpenedLog {
    let folder: String
    let lock: FolderLock
    let logID: UInt64
    let shared: LogShared
    let supply: SegmentSupply
    let tail: LogTail

    /// - Throws: as `RaftLog.open`.
    init(folder: String, options: RaftLogOptions) throws(RaftLogError) {
        self.folder = folder
        let (lock, names) = try Self.lock(folder)
        self.lock = lock
        logID = try Self.identity(folder, names, options)
        var recovery = LogRecovery(folder: folder, options: options, logID: logID)
        var (table, tail) = try recovery.run(names)
        for name in names where name.hasSuffix(".tmp") { try? options.disk.remove("\(folder)/\(name)") }
        supply = SegmentSupply(
            folder: folder, options: options, spares: names.filter { $0.hasPrefix("spare-") && $0.hasSuffix(".free") },
            hasReserve: names.contains("reserve.free"))
        if tail == nil {
            let first = try Self.begin(logID, supply, options.disk)
            table.add(first.segment)
            tail = first
        }
        guard let tail else { preconditionFailure("set above") }
        self.tail = tail
        shared = LogShared(table, logID: logID)
    }

    private static func lock(_ folder: String) throws(RaftLogError) -> (FolderLock, [String]) {
        let lock: FolderLock?
        let names: [String]
        do throws(DiskError) {
            try makeFolder(at: folder)
            lock = try FolderLock(path: "\(folder)/lock")
            names = try listFolder(at: folder)
        } catch {
            throw RaftLogError(error)
        }
        guard let lock else { throw .locked(path: folder) }
        return (lock, names)
    }

    /// The log's random number, which every checksum depends on. It is made before the first segment.
    private static func identity(
        _ folder: String, _ names: [String], _ options: RaftLogOptions
    ) throws(RaftLogError) -> UInt64 {
        let path = "\(folder)/identity"
        guard names.contains("identity") || names.contains(where: { $0.hasSuffix(".seg") }) else {
            let logID = options.random()
            do throws(DiskError) { try replaceFile(at: path, with: identityBytes(logID), on: options.disk) } catch {
                throw RaftLogError(error)
            }
            return logID
        }
        let bytes: [UInt8]
        do throws(DiskError) { bytes = try readWholeFile(at: path) } catch {
            guard error.code == ENOENT else { throw RaftLogError(reading: error, of: "identity", at: 0) }
            throw .corrupt(segment: "identity", position: 0, detail: "missing, and there are segments")
        }
        guard bytes.count == 16, bytes == identityBytes(bytes.load(at: 0)) else {
            throw .corrupt(segment: "identity", position: 0, detail: "damaged")
        }
        return bytes.load(at: 0)
    }

    /// The number, its checksum, and four zeros.
    private static func identityBytes(_ logID: UInt64) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        bytes.store(logID, at: 0)
        bytes.store(RecordHeader.seed(logID: logID), at: 8)
        return bytes
    }

    /// Makes the first segment with a durable header, so that damage to it never passes for a torn write.
    private static func begin(
        _ logID: UInt64, _ supply: SegmentSupply, _ disk: any LogDisk
    ) throws(RaftLogError) -> LogTail {
        do throws(DiskError) {
            let segment = try supply.take(1, mayUseReserve: true)
            let header = SegmentHeader(logID: logID, number: 1, watermark: .start).encoded()
            try disk.writeAll(header.bytes, to: segment.file, at: 0)
            try disk.sync(segment.file)
            return LogTail(
                segment: segment, offset: SegmentHeader.sizeBytes, previous: header.checksum,
                watermark: LogAddress(segment: 1, offset: SegmentHeader.sizeBytes))
        } catch {
            throw RaftLogError(error)
        }
    }
}

/// A log's writer without a thread of its own: its owner calls it, on one thread.
final class ManualLogWriter: @unchecked Sendable {
    // The contract of `LogScheduling.manual`: `work` and `finish` are called on one thread, which makes the class safe
    // to share.
    private let writer: LogWriter

    init(_ writer: sending LogWriter) { self.writer = writer }

    /// Does the waiting work, if there is any.
    func work(_ queue: SubmissionQueue) {
        let items = queue.takeWaiting()
        if !items.isEmpty { writer.work(items, of: queue) }
    }

    /// Does the remaining work after the queue was closed.
    func finish(_ queue: SubmissionQueue) {
        work(queue)
        writer.finish()
    }
}
