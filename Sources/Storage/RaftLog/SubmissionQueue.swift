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
    }

    private let bytesMax: Int
    private let monitor = Monitor(State())

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// - Returns: why the item is not taken in, or nil if it is.
    func add(_ item: Item) -> RaftLogError? {
        monitor.update { state in
            if let refusal = state.refusal { return refusal }
            let bytes = item.sizeBytes
            guard state.items.isEmpty || state.bytes + bytes <= bytesMax else { return .overloaded }
            state.items.append(item)
            state.bytes += bytes
            return nil
        }
    }

    /// Everything that waits; waits itself if that is nothing. Nil when the queue is refused and empty.
    func takeAll() -> [Item]? {
        monitor.wait { state -> [Item]?? in
            if state.items.isEmpty { return state.refusal == nil ? nil : .some(nil) }
            let items = state.items
            state.items = []
            state.bytes = 0
            return items
        }
    }

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
