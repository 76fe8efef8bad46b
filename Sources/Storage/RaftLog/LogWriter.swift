import RaftCore
import Synchronization
import Telemetry
import Wire

/// The writer thread: encodes the waiting submissions, writes them, syncs once, and completes them.
///
/// Used on its own thread only, but for `table` and `counters`.
final class LogWriter {
    let logID: UInt64
    let folder: String
    let options: RaftLogOptions
    let shared: LogShared
    let supply: SegmentSupply
    private(set) var tail: LogTail
    private var buffer: [UInt8] = []
    /// Up to here the tail's segment holds remains of a failed write, to be overwritten by the next one.
    private var dirtyEnd = 0
    private(set) var poison: RaftLogError?

    init(
        logID: UInt64, folder: String, options: RaftLogOptions, shared: LogShared, supply: SegmentSupply, tail: LogTail
    ) {
        self.logID = logID
        self.folder = folder
        self.options = options
        self.shared = shared
        self.supply = supply
        self.tail = tail
    }

    /// The body of the thread: ends when the queue is refused and empty.
    func run(_ queue: SubmissionQueue) {
        while let items = queue.takeAll() { work(items, of: queue) }
        finish()
    }

    /// Does the work that was taken from the queue at once.
    func work(_ items: [SubmissionQueue.Item], of queue: SubmissionQueue) {
        var waiting: [Submission] = []
        for item in items {
            switch item {
            case .write(let submission):
                if submission.hasMark { write(&waiting, of: queue) }
                waiting.append(submission)
            case .refused(let submission, let reason):
                write(&waiting, of: queue)
                submission.completion(.failure(reason))
            case .collect(let completion, let dropped):
                write(&waiting, of: queue)
                collect(completion, dropped: dropped, queue)
            }
        }
        write(&waiting, of: queue)
        if let poison { queue.refuse(poison) }
    }

    /// After the last submission.
    func finish() {
        if poison == nil { writeWatermark() }
    }

    /// Writes these submissions with one sync (more only where they fill a segment) and completes them in order.
    private func write(_ submissions: inout [Submission], of queue: SubmissionQueue) {
        let batch = submissions
        submissions.removeAll(keepingCapacity: true)
        if batch.isEmpty { return }
        var results: [Result<Void, RaftLogError>] = []
        results.reserveCapacity(batch.count)
        if let poison {
            results = batch.map { _ in .failure(poison) }
        } else {
            var encoder = makeEncoder()
            var order = shared.table.withLock { WriteOrder($0, batch) }
            for submission in batch {
                let result = queue.isHalted ? .failure(.halted) : encode(submission, into: &encoder, &order)
                if case .failure = result { queue.halt() }
                results.append(result)
            }
            if case .failure(let error) = commit(encoder) {
                queue.halt()
                results = results.map { result in
                    if case .success = result { .failure(error) } else { result }
                }
            }
            count(results)
        }
        precondition(results.count == batch.count, "\(batch.count) submissions came to \(results.count) results")
        for (submission, result) in zip(batch, results) { submission.completion(result) }
    }

    private func count(_ results: [Result<Void, RaftLogError>]) {
        let durable = results.count { if case .success = $0 { true } else { false } }
        guard durable > 0 else { return }
        shared.counters.withLock {
            $0.appends += durable
            $0.batches += 1
        }
    }

    /// An encoder that continues at the tail, with the last one's buffer.
    func makeEncoder() -> BatchEncoder {
        let encoder = BatchEncoder(logID: logID, tail: tail, supply: supply, buffer: buffer)
        buffer = []
        return encoder
    }

    private func encode(
        _ submission: Submission, into encoder: inout BatchEncoder, _ order: inout WriteOrder
    ) -> Result<Void, RaftLogError> {
        let checkpoint = encoder.checkpoint
        do throws(RaftLogError) {
            if !submission.writes.allSatisfy(\.isEssential) { try checkRoom(encoder.tail) }
            var next = order.changes(by: submission)
            for write in submission.writes { try encoder.append(write, in: &next) }
            order.accept(next)
            return .success(())
        } catch {
            encoder.restore(checkpoint)
            return .failure(error)
        }
    }

    /// Keeps the reserve for the writes that may use it, once it is in use.
    private func checkRoom(_ tail: LogTail) throws(RaftLogError) {
        guard tail.segment.wasReserve, !supply.hasReserve else { return }
        do throws(DiskError) { try supply.restoreReserve() } catch { throw RaftLogError(error) }
    }

    /// Makes the encoder's chunks durable, then takes their records into the index.
    func commit(_ encoder: BatchEncoder) -> Result<Void, RaftLogError> {
        guard !encoder.operations.isEmpty else { return .success(()) }
        precondition(
            encoder.chunks[0].segment === tail.segment && encoder.chunks[0].offset == tail.offset,
            "the log ends at \(tail.address), and \(encoder.chunks[0].offset) would be written")
        for index in encoder.chunks.indices {
            do throws(DiskError) { try writeChunk(encoder.chunks[index], isFirst: index == 0) } catch {
                return .failure(fail(error, encoder, chunk: index))
            }
        }
        finish(encoder)
        return .success(())
    }

    private func finish(_ encoder: BatchEncoder) {
        dirtyEnd = 0
        precondition(
            encoder.tail.address > tail.address,
            "the log's end would go from \(tail.address) to \(encoder.tail.address)")
        tail = encoder.tail
        tail.watermark = tail.address
        let begun = encoder.chunks.dropFirst().map(\.segment)
        shared.table.withLock { table in
            for segment in begun { table.add(segment) }
            for operation in encoder.operations { table.apply(operation) }
        }
        if !begun.isEmpty {
            shared.counters.withLock { $0.segmentsUsed += begun.count }
            supply.prepare(tail.segment.number + 1)
        }
        // Keeps the room, unless one large batch made it larger than is worth keeping.
        buffer = encoder.chunks[0].writer.bytes
        if buffer.capacity > 4 << 20 { buffer = [] } else { buffer.removeAll(keepingCapacity: true) }
    }

    private func writeChunk(_ chunk: BatchEncoder.Chunk, isFirst: Bool) throws(DiskError) {
        let size = chunk.writer.bytes.count
        if size == 0 { return }
        if isFirst, dirtyEnd > chunk.offset + size {
            try options.disk.zero(chunk.segment.file, from: chunk.offset + size, to: dirtyEnd)
        }
        try options.disk.writeAll(chunk.writer.bytes, to: chunk.segment.file, at: chunk.offset)
        do throws(DiskError) {
            try options.timers.logSync.time { () throws(DiskError) in try options.disk.sync(chunk.segment.file) }
        } catch {
            poison = .failed(errno: error.code, operation: "fdatasync \(chunk.segment.name)")
            throw error
        }
        shared.counters.withLock {
            $0.syncs += 1
            $0.bytesWritten += size
        }
    }

    /// Decides what a failed write means. Only a full disk in the first chunk can be survived: a later chunk may have
    /// left a segment header that says where this segment ends.
    private func fail(_ error: DiskError, _ encoder: BatchEncoder, chunk: Int) -> RaftLogError {
        if let poison { return poison }
        guard error.isDiskFull, chunk == 0 else { return stop(error) }
        dirtyEnd = max(dirtyEnd, tail.offset + encoder.chunks[0].writer.bytes.count)
        for chunk in encoder.chunks.dropFirst() { supply.give(back: chunk.segment) }
        return .diskFull
    }

    /// The folder cannot be changed any more, because it is unknown which segments are in it.
    func stop(_ error: DiskError) -> RaftLogError {
        let failure = RaftLogError.failed(errno: error.code, operation: "\(error.operation) \(error.path)")
        poison = poison ?? failure
        return failure
    }

    /// Says at an orderly end that everything is durable, so that damage to the last batch is found at the next start.
    private func writeWatermark() {
        guard tail.watermark == tail.address, tail.offset > SegmentHeader.sizeBytes else { return }
        var encoder = makeEncoder()
        do throws(RaftLogError) {
            try encoder.append(.watermark, .watermark, of: GroupID(0), mayUseReserve: true) { _ in }
            _ = commit(encoder)
        } catch {
            // Everything acknowledged is durable without it.
        }
    }
}

/// The state that the writer and its readers share.
final class LogShared: Sendable {
    let table: Mutex<LogIndexTable>
    let counters = Mutex(RaftLogCounters())

    /// The seed of the log's checksums.
    let seed: UInt32

    init(_ table: LogIndexTable, logID: UInt64) {
        self.table = Mutex(table)
        seed = RecordHeader.seed(logID: logID)
    }
}

extension LogWriter {
    /// Drops the oldest segment that no group needs, and lets the writes that wait go before the next one.
    private func collect(
        _ completion: @escaping @Sendable (Result<Int, RaftLogError>) -> Void, dropped: Int, _ queue: SubmissionQueue
    ) {
        switch collectOldest() {
        case .success(true):
            let isRefused = queue.add(.collect(completion, dropped: dropped + 1)) != nil
            if isRefused { completion(.success(dropped + 1)) }
        case .success(false): completion(.success(dropped))
        case .failure(let error): completion(.failure(error))
        }
    }

    /// Drops the oldest segment if no group needs it, after writing again what only it holds.
    ///
    /// On the writer's thread, so that nothing newer can be written between reading a state and writing it again.
    /// - Returns: whether it went.
    private func collectOldest() -> Result<Bool, RaftLogError> {
        if let poison { return .failure(poison) }
        let plan = shared.table.withLock { table in
            table.collectionPlan(
                keepEntries: table.sizeBytes > options.sizeBytesTarget ? 0 : options.keepEntries,
                forCopies: table.sizeBytes <= 2 * options.sizeBytesTarget)
        }
        guard let plan else { return .success(false) }
        do throws(RaftLogError) {
            try carryForward(plan)
        } catch {
            return .failure(error)
        }
        let (segment, usedBytes) = shared.table.withLock { ($0.dropOldest(), $0.sizeBytes) }
        do throws(DiskError) {
            // A folder sync each, oldest first: the segments left on disk never have a hole.
            try supply.recycle(segment, usedBytes: usedBytes)
        } catch {
            return .failure(stop(error))
        }
        shared.counters.withLock { $0.segmentsCollected += 1 }
        return .success(true)
    }

    private func carryForward(_ plan: CollectionPlan) throws(RaftLogError) {
        var encoder = makeEncoder()
        let checkpoint = encoder.checkpoint
        do throws(RaftLogError) {
            for (group, change) in plan.carried {
                switch change {
                case .hardState(let hardState):
                    try encoder.append(.hardState, change, of: group, mayUseReserve: true) { hardState.encode(to: &$0) }
                case .carriedMark(let mark):
                    try encoder.append(.carriedMark, change, of: group, mayUseReserve: true) { mark.encode(to: &$0) }
                default: preconditionFailure("collection carries hard states and marks only")
                }
            }
        } catch {
            encoder.restore(checkpoint)
            throw error
        }
        try commit(encoder).get()
    }
}

/// Where each group's log will end once what is encoded so far is durable: refuses entries that leave a gap.
struct WriteOrder {
    struct End {
        var snapshot = LogIndex.zero
        var last = LogIndex.zero
        /// The term at an index, for a mark; marks begin a batch, so the index knows everything before.
        var log: GroupLog?
        /// Whether something before in this batch wrote to the group.
        var isTouched = false
    }

    /// A submission's view. It is accepted as a whole or not at all.
    struct Changes {
        fileprivate var ends: [(group: GroupID, end: End)]

        /// The end of a group that the submission names.
        subscript(group: GroupID) -> End {
            get { ends.first { $0.group == group }?.end ?? End() }
            set {
                if let index = ends.firstIndex(where: { $0.group == group }) {
                    ends[index].end = newValue
                } else {
                    ends.append((group, newValue))
                }
            }
        }
    }

    private var ends: [GroupID: End] = [:]

    /// Looks up the groups that the submissions name.
    init(_ table: borrowing LogIndexTable, _ submissions: [Submission]) {
        for submission in submissions {
            for write in submission.writes where ends[write.group] == nil {
                let log = table.groups[write.group]
                ends[write.group] = End(
                    snapshot: log?.snapshotIndex ?? .zero, last: log?.lastIndex ?? .zero,
                    log: submission.hasMark ? log : nil)
            }
        }
    }

    func changes(by submission: Submission) -> Changes {
        var changes = Changes(ends: [])
        // One for each group, however often it is named: a second one would bring a stale end back.
        for write in submission.writes where !changes.ends.contains(where: { $0.group == write.group }) {
            changes.ends.append((write.group, ends[write.group] ?? End()))
        }
        return changes
    }

    mutating func accept(_ changes: Changes) {
        for change in changes.ends { ends[change.group] = change.end }
    }
}

extension BatchEncoder {
    /// Adds one group's records: mark, hard state, entries.
    mutating func append(_ write: LogWrite, in order: inout WriteOrder.Changes) throws(RaftLogError) {
        var end = order[write.group]
        let essential = write.isEssential
        if write.removeGroup {
            try append(.removal, .removal, of: write.group, mayUseReserve: essential) { _ in }
            end = WriteOrder.End()
        }
        precondition(
            write.snapshotMark == nil || !end.isTouched,
            "group \(write.group) is named twice in a submission with a mark")
        if let mark = write.snapshotMark, mark.position.index > end.snapshot {
            let isHeld = end.log?.holds(mark.position) ?? false
            try append(
                isHeld ? .trim : .reset, isHeld ? .trim(mark) : .reset(mark), of: write.group, mayUseReserve: essential
            ) { mark.encode(to: &$0) }
            end.snapshot = mark.position.index
            end.last = isHeld ? max(end.last, mark.position.index) : mark.position.index
        }
        if let hardState = write.hardState {
            try append(.hardState, .hardState(hardState), of: write.group, mayUseReserve: essential) {
                hardState.encode(to: &$0)
            }
        }
        for (offset, entry) in write.entries.enumerated() {
            guard entry.index > end.snapshot, entry.index <= end.last.next,
                offset == 0 || entry.index == write.entries[offset - 1].index.next,
                offset == 0 || entry.term >= write.entries[offset - 1].term
            else { throw .outOfOrder(group: write.group, first: entry.index, last: end.last) }
            try append(entry, of: write.group, mayUseReserve: essential)
            end.last = entry.index
        }
        end.log = nil
        end.isTouched = true
        order[write.group] = end
    }

    private mutating func append(_ entry: Entry, of group: GroupID, mayUseReserve: Bool) throws(RaftLogError) {
        var configuration: Configuration?
        if case .configuration(let value) = entry.payload { configuration = value }
        try append(.entry, .entry(entry.position, configuration), of: group, mayUseReserve: mayUseReserve) {
            entry.encode(to: &$0)
        }
    }
}
