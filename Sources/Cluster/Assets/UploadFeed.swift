import PeerTransport
import RecordModel
import Synchronization
import Wire

/// The name by which peers ask for the bytes of a file that is still coming in. The node that takes the file draws it.
struct UploadID: RawRepresentable, Hashable, Sendable, CustomStringConvertible, WireValue {
    var rawValue: UInt64
    var description: String { String(rawValue, radix: 16) }

    /// No upload.
    static let none = UploadID(rawValue: 0)
    static var absent: UploadID? { none }
}

/// Gives the blocks of a file that comes in to the peers that copy it meanwhile. Any thread.
///
/// A block that a peer waits for is answered from memory as soon as it is written; one that comes late is read back
/// from the file. So nothing is kept for a slow peer, and nobody waits for it.
final class UploadFeed: Sendable {
    typealias Answer = @Sendable (NodeReply) -> Void

    private struct State {
        /// Bytes in whole blocks that are in the file.
        var written: UInt64 = 0
        var waiting: [(offset: UInt64, answer: Answer)] = []
        /// What is answered to every question once the upload has ended.
        var end: NodeReply?
        /// Nodes that agreed to copy it.
        var followers: Set<NodeID> = []
    }

    let id: UploadID
    let content: AssetContent
    private let state = Mutex(State())
    private let didBegin: @Sendable () -> Void
    private let didClose: @Sendable () -> Void
    /// Each peer waits for two blocks; a connection that broke may have left questions behind.
    private static let waitingMax = 16
    /// What is said of an upload that was given up, or is not known.
    static let gone = NodeReply.notLeader(hint: nil)

    /// - Parameters:
    ///   - didBegin: called once the first block is in the file.
    ///   - didClose: called when nobody is to ask any more.
    init(
        id: UploadID, content: AssetContent, didBegin: @escaping @Sendable () -> Void,
        didClose: @escaping @Sendable () -> Void
    ) {
        self.id = id
        self.content = content
        self.didBegin = didBegin
        self.didClose = didClose
    }

    /// The next block is in the file.
    func wrote(_ block: [UInt8]) {
        let (isFirst, waiting) = state.withLock { state in
            let offset = state.written
            state.written += UInt64(block.count)
            let waiting = state.waiting.filter { $0.offset == offset }
            state.waiting.removeAll { $0.offset == offset }
            return (offset == 0, waiting)
        }
        for (_, answer) in waiting { answer(.done(block)) }
        if isFirst { didBegin() }
    }

    /// Nodes that copy it while it comes in, or were about to.
    var followers: Set<NodeID> { state.withLock(\.followers) }

    /// A node agreed to copy it.
    func followed(by node: NodeID) { state.withLock { _ = $0.followers.insert(node) } }

    /// The file is durable here under its name.
    func finish(_ asset: AssetReference) { end(.whole(asset)) }

    /// Nothing more comes. Does nothing once the file is whole.
    func abandon() { end(Self.gone) }

    /// Nobody is to ask any more.
    func close() {
        abandon()
        didClose()
    }

    private func end(_ reply: NodeReply) {
        let waiting = state.withLock { state -> [(offset: UInt64, answer: Answer)] in
            guard state.end == nil else { return [] }
            state.end = reply
            defer { state.waiting = [] }
            return state.waiting
        }
        for (_, answer) in waiting { answer(reply) }
    }

    /// Answers with the block at an offset once it is there, or with how the upload ended.
    /// - Returns: the bytes to read back from the file and to answer with, and where the file ends at present; nil
    ///   where the answer is the feed's.
    func read(from offset: UInt64, _ answer: @escaping Answer) -> (range: Range<UInt64>, size: UInt64)? {
        enum Way {
            case reply(NodeReply)
            case wait
            case file(UInt64)
        }
        let way = state.withLock { state -> Way in
            if let end = state.end { return .reply(end) }
            if offset < state.written { return .file(state.written) }
            guard state.waiting.count < Self.waitingMax else { return .reply(.overloaded) }
            state.waiting.append((offset, answer))
            return .wait
        }
        switch way {
        case .reply(let reply): answer(reply)
        case .wait: break
        case .file(let size): return (offset..<min(offset + AssetBytes.pieceBytes, size), size)
        }
        return nil
    }
}

/// The uploads that this node takes and that peers may copy meanwhile. Any thread.
final class UploadFeeds: Sendable {
    private let feeds = Mutex<[UploadID: UploadFeed]>([:])

    /// - Parameter didBegin: called once the first block is in the file.
    func open(
        _ id: UploadID, _ content: AssetContent, didBegin: @escaping @Sendable () -> Void
    ) -> UploadFeed {
        let feed = UploadFeed(id: id, content: content, didBegin: didBegin) { [weak self] in
            self?.feeds.withLock { _ = $0.removeValue(forKey: id) }
        }
        feeds.withLock { $0[id] = feed }
        return feed
    }

    subscript(_ id: UploadID) -> UploadFeed? { feeds.withLock { $0[id] } }
}
