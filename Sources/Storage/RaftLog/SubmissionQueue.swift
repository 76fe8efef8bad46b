import RaftCore
import Wire

/// The queue of the writer, bounded by bytes.
final class SubmissionQueue: Sendable {
    /// One item of work for the writer.
    enum Item: Sendable {
        case write(Submission)
        /// A refused submission, which is completed with the reason in its turn.
        case refused(Submission, RaftLogError)
        /// A collection, and how many segments it has dropped.
        case collect(@Sendable (Result<Int, RaftLogError>) -> Void, dropped: Int)
    }

    private struct State {
        var items: [Item] = []
        var bytes = 0
        /// Why the queue is closed.
        var refusal: RaftLogError?
        /// Why submissions are refused until `resume`: one of them was.
        var halt: RaftLogError?

        mutating func takeItems() -> [Item] {
            defer { (items, bytes) = ([], 0) }
            return items
        }
    }

    private let bytesMax: Int
    private let haltsAfterRefusal: Bool
    private let monitor = Monitor(State())

    init(bytesMax: Int, haltsAfterRefusal: Bool = false) {
        self.bytesMax = bytesMax
        self.haltsAfterRefusal = haltsAfterRefusal
    }

    /// Notes that a submission failed. If the log halts then, no later submission is done, including those that wait.
    func halt() { if haltsAfterRefusal { monitor.update { $0.halt = .halted } } }

    /// Whether waiting submissions are refused because an earlier one failed. A full queue is no such reason: those
    /// that wait were accepted before.
    var isHalted: Bool { monitor.update { $0.halt == .halted } }

    func resume() { monitor.update { $0.halt = nil } }

    /// - Returns: why the item is refused; nil if it is accepted, or refused in its turn.
    func add(_ item: Item) -> RaftLogError? {
        monitor.update { state in
            if let refusal = state.refusal { return refusal }
            var item = item
            if case .write(let submission) = item {
                let isRoom = state.bytes == 0 || state.bytes + submission.sizeBytes <= bytesMax
                if let reason = state.halt ?? (isRoom ? nil : .overloaded) {
                    guard haltsAfterRefusal else { return reason }
                    state.halt = reason
                    // Were it told at once, it would be told before the submissions that wait, and be tried again
                    // before them.
                    item = .refused(submission, reason)
                }
            }
            state.items.append(item)
            state.bytes += item.sizeBytes
            return nil
        }
    }

    /// Everything that waits; waits itself if that is nothing. Nil when the queue is refused and empty.
    func takeAll() -> [Item]? {
        monitor.wait { state -> [Item]?? in
            if state.items.isEmpty { return state.refusal == nil ? nil : .some(nil) }
            return state.takeItems()
        }
    }

    /// Whether anything waits.
    var hasItems: Bool { monitor.withLock { !$0.items.isEmpty } }

    /// Everything that waits now.
    func takeWaiting() -> [Item] { monitor.withLock { $0.takeItems() } }

    /// Accepts nothing more. Waiting items are still handed out. The first reason stays.
    func refuse(_ reason: RaftLogError) { monitor.update { $0.refusal = $0.refusal ?? reason } }
}

extension SubmissionQueue.Item {
    fileprivate var sizeBytes: Int {
        if case .write(let submission) = self { submission.sizeBytes } else { 0 }
    }
}

/// One caller's writes, and their completion.
struct Submission: Sendable {
    var writes: [LogWrite]
    var completion: @Sendable (Result<Void, RaftLogError>) -> Void

    /// Its size against the queue's bound, in bytes.
    var sizeBytes: Int { writes.reduce(0) { $0 + $1.sizeBytes } }

    /// Whether it holds a mark, whose effect depends on everything written before.
    var hasMark: Bool { writes.contains { $0.snapshotMark != nil } }
}

extension LogWrite {
    /// Whether it may be written when the disk is full.
    var isEssential: Bool { mayUseReserve || entries.isEmpty }
}

/// One record's meaning and place, for the index: after a write, and when the log is read back.
struct LogOperation {
    enum Change {
        case hardState(HardState)
        case entry(LogPosition, Configuration?)
        case trim(SnapshotMark)
        case reset(SnapshotMark)
        case carriedMark(SnapshotMark)
        case removal
        case watermark
    }

    var group: GroupID
    var change: Change
    var address: LogAddress
    var sizeBytes: Int

    /// Reads a record's body.
    /// - Throws: `WireError` if the body does not fit its kind.
    init(_ header: RecordHeader, body: ArraySlice<UInt8>) throws(WireError) {
        var reader = WireReader(body)
        group = GroupID(try reader.varint())
        address = header.address
        sizeBytes = header.sizeBytes
        switch header.kind {
        case .hardState: change = .hardState(try HardState(from: &reader))
        case .entry:
            let entry = try Entry(from: &reader)
            if case .configuration(let configuration) = entry.payload {
                change = .entry(entry.position, configuration)
            } else {
                change = .entry(entry.position, nil)
            }
        case .trim: change = .trim(try SnapshotMark(from: &reader))
        case .reset: change = .reset(try SnapshotMark(from: &reader))
        case .carriedMark: change = .carriedMark(try SnapshotMark(from: &reader))
        case .removal: change = .removal
        case .watermark: change = .watermark
        }
    }

    init(group: GroupID, change: Change, address: LogAddress, sizeBytes: Int) {
        self.group = group
        self.change = change
        self.address = address
        self.sizeBytes = sizeBytes
    }
}
