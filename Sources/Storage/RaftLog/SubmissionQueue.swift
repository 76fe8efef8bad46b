import RaftCore

/// What waits for the writer, bounded by bytes.
final class SubmissionQueue: Sendable {
    /// What the writer is asked to do.
    enum Item: Sendable {
        case write(Submission)
        case collect(@Sendable (Result<Int, RaftLogError>) -> Void)
    }

    private struct State {
        var items: [Item] = []
        var bytes = 0
        /// Why nothing is taken in any more.
        var refusal: RaftLogError?
        /// Whether a submission was refused since the last `resume`.
        var isHalted = false

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

    /// Notes that a submission was refused: where the log halts then, no later one goes before it.
    func halt() { if haltsAfterRefusal { monitor.update { $0.isHalted = true } } }

    /// Whether submissions are refused because an earlier one was.
    var isHalted: Bool { monitor.update { $0.isHalted } }

    func resume() { monitor.update { $0.isHalted = false } }

    /// - Returns: why the item is not taken in, or nil if it is.
    func add(_ item: Item) -> RaftLogError? {
        monitor.update { state in
            if let refusal = state.refusal { return refusal }
            let bytes = item.sizeBytes
            if state.isHalted, case .write = item { return .halted }
            guard state.items.isEmpty || state.bytes + bytes <= bytesMax else {
                state.isHalted = haltsAfterRefusal
                return .overloaded
            }
            state.items.append(item)
            state.bytes += bytes
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

    /// Everything that waits now.
    func takeWaiting() -> [Item] { monitor.withLock { $0.takeItems() } }

    /// Takes in nothing more; what waits is still handed out. The first reason stays.
    func refuse(_ reason: RaftLogError) { monitor.update { $0.refusal = $0.refusal ?? reason } }
}

extension SubmissionQueue.Item {
    fileprivate var sizeBytes: Int {
        if case .write(let submission) = self { submission.sizeBytes } else { 0 }
    }
}

/// What one caller wants durable, and whom to tell.
struct Submission: Sendable {
    var writes: [LogWrite]
    var completion: @Sendable (Result<Void, RaftLogError>) -> Void

    /// What it counts for against the queue's bound.
    var sizeBytes: Int {
        writes.reduce(0) { $0 + 64 + $1.entries.reduce(0) { $0 + $1.sizeBytes } }
    }

    /// Whether it holds a mark, whose effect depends on everything written before.
    var hasMark: Bool { writes.contains { $0.snapshotMark != nil } }
}

extension LogWrite {
    /// Whether it may be written when the disk is full.
    var isEssential: Bool { mayUseReserve || entries.isEmpty }
}
