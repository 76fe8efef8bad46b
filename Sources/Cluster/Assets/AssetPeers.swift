import DequeModule
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import Synchronization
import Wire

/// What a node asks its peers about files.
struct AssetPeers: Sendable {
    let transport: any PeerNetwork
    let settings: AssetSettings
    let clock: any NodeClock

    /// How long a peer is left alone that reads as many pieces as it may, in milliseconds.
    static let busyMilliseconds: UInt64 = 150
    /// Pieces of one file that are asked for ahead: 1 MB.
    private static let window = 4
    /// Blocks of an upload that are asked for ahead: another one comes and one is being written meanwhile.
    private static let blocksAhead: UInt64 = 2

    /// Why a peer gave no piece. Another one may.
    struct Failure: Error, CustomStringConvertible {
        /// Whether the peer answered that it does not have the file, or has it damaged.
        var isAbsence = false
        /// Whether the peer reads as many pieces as it may: it may be asked again in a moment.
        var isBusy = false
        var description: String
    }

    /// Reads a file to its end, piece after piece.
    /// - Throws: `Failure`; what `body` throws; `CancellationError`.
    func pieces(
        of asset: AssetReference, from start: UInt64, at node: NodeID, _ body: ([UInt8]) async throws -> Void
    ) async throws {
        var asked = start
        var window: Deque<(range: Range<UInt64>, reply: EventLoopFuture<[UInt8]>)> = []
        while asked < asset.size || !window.isEmpty {
            while asked < asset.size, window.count < Self.window {
                let range = asked..<min(asset.size, asked + AssetBytes.pieceBytes)
                window.append((range, ask(.readAsset(asset, range), node, settings.pieceMilliseconds)))
                asked = range.upperBound
            }
            try Task.checkCancellation()
            guard let (range, reply) = window.popFirst() else { break }
            try await body(try await piece(of: asset, range, at: node, in: reply))
        }
    }

    /// - Throws: `Failure`.
    func piece(of asset: AssetReference, _ range: Range<UInt64>, at node: NodeID) async throws -> [UInt8] {
        try await piece(of: asset, range, at: node, in: ask(.readAsset(asset, range), node, settings.pieceMilliseconds))
    }

    /// Waits for a piece; asks for it again, after a pause, while the peer is busy, for as long as a peer has for a
    /// piece.
    private func piece(
        of asset: AssetReference, _ range: Range<UInt64>, at node: NodeID, in reply: EventLoopFuture<[UInt8]>
    ) async throws -> [UInt8] {
        var reply = reply
        var pauses: UInt64 = 0
        while true {
            do {
                return try await Self.piece(range, in: reply)
            } catch let error as Failure
                where error.isBusy && pauses * Self.busyMilliseconds < settings.pieceMilliseconds
            {
                pauses += 1
                try await clock.sleep(milliseconds: Self.busyMilliseconds)
                reply = ask(.readAsset(asset, range), node, settings.pieceMilliseconds)
            }
        }
    }

    /// Has a node copy a file that comes in here, from now on.
    /// - Returns: whether it does; one of an earlier build does not.
    func follow(_ upload: UploadID, of group: GroupID, at node: NodeID) async -> Bool {
        let bytes = try? await ask(.followUpload(upload, group), node, settings.pieceMilliseconds).get()
        guard let bytes, case .done? = try? NodeReply(decoding: bytes) else { return false }
        return true
    }

    /// Reads a file while it comes in at a node, block after block. The next ones are asked for while `body` has one.
    /// - Returns: what the file is, once the node has it whole. Blocks that were not read until then are left.
    /// - Throws: `Failure`; what `body` throws.
    func blocks(
        of upload: UploadID, at node: NodeID, _ body: ([UInt8]) async throws -> Void
    ) async throws -> AssetReference {
        // Who sends the file may be slow; where the node goes away, its connection says so.
        func ask(from offset: UInt64) -> EventLoopFuture<[UInt8]> {
            self.ask(.readUpload(upload, from: offset), node, settings.uploadMilliseconds)
        }
        var offset: UInt64 = 0
        var window = Deque((0..<Self.blocksAhead).map { ask(from: $0 * AssetBytes.pieceBytes) })
        while let reply = window.popFirst() {
            var answer = try NodeReply(decoding: try await reply.get())
            while case .overloaded = answer {
                try await clock.sleep(milliseconds: Self.busyMilliseconds)
                answer = try NodeReply(decoding: try await ask(from: offset).get())
            }
            if case .whole(let asset) = answer { return asset }
            guard case .done(let block) = answer, block.count == AssetBytes.pieceBytes else {
                throw Failure(description: "\(answer)")
            }
            offset += AssetBytes.pieceBytes
            window.append(ask(from: offset + (Self.blocksAhead - 1) * AssetBytes.pieceBytes))
            try await body(block)
        }
        throw CancellationError()
    }

    /// Has a node hold a file; `done` is called once, with why it does not.
    func hold(_ request: NodeRequest, at node: NodeID, _ done: @escaping @Sendable (AssetError?) -> Void) {
        ask(request, node, settings.holdMilliseconds).whenComplete { result in
            switch result {
            case .success(let bytes):
                done((try? NodeReply(decoding: bytes)).map(Self.error) ?? .unavailable("an unreadable answer"))
            case .failure(let error): done(.unavailable("node \(node): \(error)"))
            }
        }
    }

    private func ask(_ request: NodeRequest, _ node: NodeID, _ milliseconds: UInt64) -> EventLoopFuture<[UInt8]> {
        transport.request(
            request.encoded(), to: node, channel: .bulk, timeout: .milliseconds(Int64(clamping: milliseconds)))
    }

    private static func piece(_ range: Range<UInt64>, in reply: EventLoopFuture<[UInt8]>) async throws -> [UInt8] {
        let bytes: [UInt8]
        do {
            bytes = try await reply.get()
        } catch {
            throw Failure(description: "\(error)")
        }
        guard let answer = try? NodeReply(decoding: bytes) else { throw Failure(description: "an unreadable answer") }
        guard case .done(let piece) = answer else {
            var failure = Failure(isAbsence: error(of: answer) == .missing, description: "\(answer)")
            if case .overloaded = answer { failure.isBusy = true }
            throw failure
        }
        guard piece.count == range.count else { throw Failure(isAbsence: true, description: "it has no such bytes") }
        return piece
    }

    // MARK: Errors on the way

    static func reply(_ error: AssetError) -> NodeReply {
        switch error {
        case .diskFull: .diskFull
        case .missing: .notLeader(hint: nil)
        case .tooLarge, .unavailable: .unavailable(error.description)
        }
    }

    /// Nil where a node did what it was asked.
    static func error(of reply: NodeReply) -> AssetError? {
        switch reply {
        case .done: nil
        case .diskFull: .diskFull
        case .notLeader: .missing
        case .overloaded: .unavailable("a node has as many files in work as it may; try again")
        case .unavailable(let reason), .failed(let reason): .unavailable(reason)
        default: .unavailable("a node gave an answer of another kind")
        }
    }
}

/// Counts who holds a file until a majority does, or cannot any more.
final class AssetTally: Sendable {
    private struct State {
        var holders: Set<NodeID> = []
        var errors: [NodeID: AssetError] = [:]
        var isOver = false
        var isImpatient = false
        var waiter: CheckedContinuation<AssetError?, Never>?
        /// Who waits for the first failure, or for the outcome.
        var firstWord: CheckedContinuation<Void, Never>?
    }

    private let configuration: Configuration
    private let state = Mutex(State())

    init(_ configuration: Configuration) { self.configuration = configuration }

    /// A node holds the file, or says why not.
    func add(_ node: NodeID, _ error: AssetError?) {
        change { state in
            if let error { state.errors[node] = error } else { state.holders.insert(node) }
        }
    }

    /// The time is over: what is not decided yet is given up.
    func expire() { change { $0.isOver = true } }

    /// Waits until a node failed, a majority holds the file, or the time is over.
    func firstWord(within milliseconds: UInt64, on platform: any NodePlatform) async {
        let expiry = platform.startTask(after: milliseconds) { [self] in change { $0.isImpatient = true } }
        defer { expiry.cancel() }
        await withCheckedContinuation { continuation in
            change { $0.firstWord = continuation }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let resumption = state.withLock { state -> (CheckedContinuation<AssetError?, Never>, AssetError?)? in
            body(&state)
            let outcome = outcome(state)
            if outcome != nil || !state.errors.isEmpty || state.isImpatient { state.firstWord.take()?.resume() }
            guard let outcome, let waiter = state.waiter.take() else { return nil }
            return (waiter, outcome.error)
        }
        if let (waiter, error) = resumption { waiter.resume(returning: error) }
    }

    /// Waits for the outcome until the deadline at most; nil is that a majority holds it.
    func result(by deadline: Deadline, on platform: any NodePlatform) async -> AssetError? {
        let nanoseconds = UInt64(deadline.nanosecondsLeft(at: platform.clock.now))
        let expiry = platform.startTask(after: nanoseconds / 1_000_000 + 1) { [self] in expire() }
        defer { expiry.cancel() }
        return await result()
    }

    /// Waits for the outcome, however long that takes.
    func result() async -> AssetError? {
        await withCheckedContinuation { continuation in
            let outcome = state.withLock { state in
                let outcome = self.outcome(state)
                if outcome == nil { state.waiter = continuation }
                return outcome
            }
            if let outcome { continuation.resume(returning: outcome.error) }
        }
    }

    private struct Outcome {
        var error: AssetError?
    }

    private func outcome(_ state: State) -> Outcome? {
        if Quorum.isMajority(configuration, where: { state.holders.contains($0.node) }) { return Outcome() }
        if Quorum.isMajority(configuration, where: { state.errors[$0.node] == nil }) {
            guard state.isOver else { return nil }
            return Outcome(error: .unavailable("too few nodes hold the file in time, and more fetch it; try again"))
        }
        let errors = state.errors.sorted { $0.key < $1.key }.map(\.value)
        // A node that could not be asked may have it.
        return Outcome(error: errors.first { $0 != .missing } ?? .missing)
    }
}

/// Which files are being fetched: each once, a few at a time, and a bounded number in line.
final class AssetPulls<File: Hashable & Sendable>: Sendable {
    private struct State {
        var running: Set<File> = []
        var waiting: Deque<(file: File, continuation: CheckedContinuation<Void, Never>)> = []
    }

    private let runningMax: Int
    private let waitingMax = 1_024
    private let state = Mutex(State())

    init(runningMax: Int) { self.runningMax = runningMax }

    /// Files that are being fetched, and calls that wait.
    var load: (running: Int, waiting: Int) { state.withLock { ($0.running.count, $0.waiting.count) } }

    /// Waits until no other call fetches the file and there is a place; then `leave` must be called.
    /// - Returns: false, at once, where too many wait.
    func enter(_ file: File) async -> Bool {
        let isFull = state.withLock { $0.waiting.count >= waitingMax }
        if isFull { return false }
        await withCheckedContinuation { continuation in
            let isIn = state.withLock { state in
                guard state.running.count < runningMax, !state.running.contains(file) else {
                    state.waiting.append((file, continuation))
                    return false
                }
                state.running.insert(file)
                return true
            }
            if isIn { continuation.resume() }
        }
        return true
    }

    /// As `enter`, without waiting.
    /// - Returns: false where another call fetches the file, or there is no place.
    func enterNow(_ file: File) -> Bool {
        state.withLock { state in
            guard state.running.count < runningMax else { return false }
            return state.running.insert(file).inserted
        }
    }

    /// Waits until no call fetches the file that does so now.
    func awaitEnd(of file: File) async {
        guard state.withLock({ $0.running.contains(file) }), await enter(file) else { return }
        leave(file)
    }

    func leave(_ file: File) {
        let next = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.running.remove(file)
            var next: [CheckedContinuation<Void, Never>] = []
            while state.running.count < runningMax,
                let place = state.waiting.firstIndex(where: { !state.running.contains($0.file) })
            {
                let waiter = state.waiting.remove(at: place)
                state.running.insert(waiter.file)
                next.append(waiter.continuation)
            }
            return next
        }
        for continuation in next { continuation.resume() }
    }
}
