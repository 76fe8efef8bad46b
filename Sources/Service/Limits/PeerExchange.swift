import Admission
package import Cluster
import Directory
import Logging
package import PeerTransport
import RaftCore
import RecordModel
import Synchronization
import Wire

/// What the edges of a cluster's nodes ask and tell each other: shares of rates, signatures that were used, web auth
/// tokens that were replaced, key-value stores that changed, requests that failed.
package final class PeerExchange: NodeServices {
    package let rates: RateExchange
    let rotation: SessionRotation
    private let node: ClusterNode
    private let logger: Logger
    private let signatures = SignatureMemory()
    private let sessions: SessionSpread
    private let watches: WatchHub
    private let unsavedUploads: UnsavedUploads
    /// What other nodes told and was not looked at yet. What finds no place is lost, as a message is.
    private let heard = AsyncStream.makeStream(
        of: (message: [UInt8], node: NodeID).self, bufferingPolicy: .bufferingOldest(1_000))
    private let traces = Mutex<(second: Int64, count: Int)>((0, 0))
    private let loops = Mutex<[Task<Void, Never>]>([])

    /// Failed requests that a node tells of in a second, so that a flood of them does not become a flood of messages.
    private static let tracesPerSecondMax = 100
    /// How long a signature is waited for whose date is still to come.
    private static let aheadMillisecondsMax: Int64 = 2_000

    init(
        node: ClusterNode, rotation: SessionRotation, watches: WatchHub, unsavedUploads: UnsavedUploads, logger: Logger
    ) {
        self.node = node
        self.unsavedUploads = unsavedUploads
        self.watches = watches
        self.rotation = rotation
        self.logger = logger
        sessions = SessionSpread(node: node, rotation: rotation, logger: logger)
        rates = RateExchange(node: node)
    }

    private var now: Int64 { node.platform.clock.wallMilliseconds }

    /// Answers other nodes and keeps shares and sessions up to date from here on.
    func start() {
        node.serve(self)
        loops.withLock { loops in
            loops.append(node.platform.startTask { [rates] in await rates.run() })
            loops.append(node.platform.startTask { [sessions] in await sessions.run() })
            loops.append(
                node.platform.startTask { [weak self, heard] in
                    for await (message, node) in heard.stream { self?.take(message, from: node) }
                })
        }
    }

    func stop() {
        loops.withLock { loops in
            for loop in loops { loop.cancel() }
            loops = []
        }
    }

    package func confer(_ request: [UInt8], as leadership: Leadership) -> [UInt8] {
        switch try? Question(decoding: request) {
        case .rates(let reports)?: return RateGrants(rates.grants(for: reports, as: leadership)).encoded()
        case .signature(let signature, let nonce)?:
            let verdict = signatures.admit(
                signature, nonce: nonce, as: leadership, isAlone: node.map.nodes.count == 1, now: now)
            return SignatureAnswer(verdict: verdict).encoded()
        case .stores(let mark)?: return watches.news(of: leadership.group, since: mark).encoded()
        case nil: return []
        }
    }

    package func hear(_ message: [UInt8], from node: NodeID) { heard.continuation.yield((message, node)) }

    private func take(_ message: [UInt8], from node: NodeID) {
        switch try? NodeMessage(decoding: message) {
        case .sessions(let news)?: sessions.hear(news, from: node)
        case .savedAssets(let news)?: unsavedUploads.heard(news)
        case .wantsSessions(let milliseconds)?: sessions.answer(within: milliseconds, to: node)
        case .trace(let id, let text)?: logger.info("request \(id), which came through node \(node), \(text)")
        case nil: logger.warning("node \(node) told something that this version cannot read")
        }
    }

    /// Whether a signature was not used before, anywhere in the cluster.
    /// - Throws: `ClusterError.unavailable` where the leader of the container's group cannot say: it began to lead
    ///   after the date of the signature, or that date is still to come. The request is then to be signed anew.
    func isNew(
        _ signature: RequestSignature, container: String, by deadline: Deadline
    ) async throws(ClusterError) -> Bool {
        let group = RateExchange.group(of: container, in: node.map)
        let question = Question.signature(signature, nonce: node.platform.random()).encoded()
        while true {
            let bytes = try await node.router.confer(question, with: group, by: deadline)
            guard let answer = try? SignatureAnswer(decoding: bytes) else {
                throw .failed("the leader of group \(group) gave an unreadable answer about a signature")
            }
            switch answer.verdict {
            case .new: return true
            case .used: return false
            case .tooOld:
                throw .unavailable(
                    "whether this signature was used before is not known, because another node keeps count since a moment ago; sign the request anew, with the present time"
                )
            case .ahead(let milliseconds):
                guard milliseconds <= Self.aheadMillisecondsMax else {
                    throw .unavailable(
                        "the date of this signature is \((milliseconds + 999) / 1_000) s ahead of the cluster's clock; set the clock of the server that signs, and sign the request anew"
                    )
                }
                try? await node.platform.clock.sleep(milliseconds: UInt64(milliseconds) + 1)
            }
        }
    }

    /// A session's newest token was presented here for the first time: the other nodes learn of it in a moment.
    func didUse(_ use: SessionUse) { sessions.didUse(use.sessionID, issued: use.issued) }

    /// Records have these files now: no node counts them as unsaved any more.
    func didSave(_ assets: [AssetReference], by owner: UnsavedUploads.Owner) {
        spread(SavedAssets(container: owner.container, user: owner.user, assets: assets))
    }

    /// A file came to this node, and counts for its user at every one until a record has it.
    func didUpload(_ asset: AssetReference, by owner: UnsavedUploads.Owner, until time: Int64) {
        spread(SavedAssets(container: owner.container, user: owner.user, assets: [asset], unsavedUntil: time))
    }

    private func spread(_ news: SavedAssets) {
        unsavedUploads.heard(news)
        let message = NodeMessage.savedAssets(news).encoded()
        for other in node.map.nodes where other.id != node.settings.nodeID.rawValue {
            node.platform.startTask { [node] in await node.router.tell(message, to: NodeID(other.id)) }
        }
    }

    func warn(_ text: String) { logger.warning("\(text)") }

    /// Logs a request that failed, here and on every node that had a part in it.
    func report(_ trace: RequestTrace, _ text: String) {
        let second = now / 1_000
        let isWithinBounds = traces.withLock { traces in
            if traces.second != second { traces = (second, 0) }
            traces.count += 1
            return traces.count <= Self.tracesPerSecondMax
        }
        guard isWithinBounds else { return }
        logger.info("request \(trace.id) \(text)")
        let nodes = trace.nodes
        guard !nodes.isEmpty else { return }
        let message = NodeMessage.trace(id: trace.id, text: text).encoded()
        node.platform.startTask { [node] in for other in nodes { await node.router.tell(message, to: other) } }
    }
}
