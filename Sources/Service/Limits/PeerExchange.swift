package import Admission
package import Cluster
import Directory
import Logging
package import PeerTransport
import RecordModel
import Synchronization
package import Wire

/// What the edges of a cluster's nodes ask and tell each other: shares of rates, signatures that were used, web auth
/// tokens that were replaced, key-value stores that changed, requests that failed.
package final class PeerExchange: NodeServices {
    /// This node's shares of rates, and the ledgers of the groups that it leads.
    package let rates: RateExchange
    /// Web auth tokens that were replaced.
    package let sessions: SessionSpread
    private let node: ClusterNode
    private let logger: Logger
    private let signatures = SignatureMemory()
    private let watches: WatchHub
    private let unsavedUploads: UnsavedUploads
    /// What other nodes told and was not looked at yet. What finds no place is lost, as a message is.
    private let heard = AsyncStream.makeStream(
        of: (message: [UInt8], node: NodeID).self, bufferingPolicy: .bufferingOldest(1_000))
    /// Failed requests that this node tells of, so that a flood of them does not become a flood of messages.
    private let reports = Mutex(PerSecond(max: 100))
    private let loops = Mutex<[Task<Void, Never>]>([])
    /// Answers what nodes ask about this one.
    private let inquiries = Mutex<(@Sendable (NodeInquiry) async -> [UInt8]?)?>(nil)

    /// How long a signature is waited for whose date is still to come.
    private static let aheadMillisecondsMax: Int64 = 2_000

    init(
        node: ClusterNode, signer: SessionSigner?, watches: WatchHub, unsavedUploads: UnsavedUploads, logger: Logger
    ) {
        self.node = node
        self.unsavedUploads = unsavedUploads
        self.watches = watches
        self.logger = logger
        sessions = SessionSpread(node: node, signer: signer, logger: logger)
        rates = RateExchange(node: node)
    }

    private var now: Int64 { node.platform.clock.wallMilliseconds }

    /// Answers other nodes and keeps shares and sessions up to date from here on.
    /// - Parameter inquire: what this node says of itself.
    func start(_ inquire: @escaping @Sendable (NodeInquiry) async -> [UInt8]?) {
        inquiries.withLock { $0 = inquire }
        node.serve(self)
        rates.start()
        loops.withLock { loops in
            loops.append(node.platform.startTask { [sessions] in await sessions.run() })
            loops.append(
                node.platform.startTask { [weak self, heard] in
                    for await (message, node) in heard.stream { self?.take(message, from: node) }
                })
        }
    }

    func stop() {
        rates.stop()
        loops.withLock { loops in
            for loop in loops { loop.cancel() }
            loops = []
        }
    }

    /// Answers a question about rates, a signature or changed stores, as the leader of a group.
    /// Replies at once; about stores, once one changes or the asked time is over. Empty for what it cannot read.
    package func confer(
        _ request: [UInt8], as leadership: Leadership, reply: @escaping @Sendable ([UInt8]) -> Void
    ) {
        switch try? Question(decoding: request) {
        case .rates(let reports)?: reply(ShardList(rates.grants(for: reports, as: leadership)).encoded())
        case .signature(let signature, let nonce)?:
            // By a clock that is wrong nobody can say; another node leads in a moment.
            let verdict =
                node.clockErrorMilliseconds != nil
                ? .tooOld
                : signatures.admit(
                    signature, nonce: nonce, as: leadership, isAlone: node.map.nodes.count == 1,
                    isSure: node.clockDoubt == nil, now: now)
            reply(SignatureAnswer(verdict: verdict).encoded())
        case .stores(let mark, let wait)?:
            watches.tell(of: leadership.group, since: mark, withinMilliseconds: wait) { reply($0.encoded()) }
        case nil: reply([])
        }
    }

    /// Answers on a task of its own, so that the lane does not wait.
    package func answer(_ question: [UInt8], reply: @escaping @Sendable ([UInt8]?) -> Void) {
        guard let inquiry = try? NodeInquiry(decoding: question), let inquire = inquiries.withLock(\.self) else {
            return reply(nil)
        }
        node.platform.startTask { reply(await inquire(inquiry)) }
    }

    /// Queues a message for the exchange's own task; while 1,000 wait there, further ones are dropped.
    package func hear(_ message: [UInt8], from node: NodeID) { heard.continuation.yield((message, node)) }

    private func take(_ message: [UInt8], from node: NodeID) {
        switch try? NodeMessage(decoding: message) {
        case .sessions(let news)?: sessions.hear(news, from: node)
        case .savedAssets(let news)?: unsavedUploads.heard(news)
        case .wantsSessions(let milliseconds, let gap)?: sessions.answer(within: milliseconds, gap: gap, to: node)
        case .trace(let id, let text)?: logger.info("request \(id), which came through node \(node), \(text)")
        case nil: logger.warning("node \(node) told something that this version cannot read")
        }
    }

    /// Makes sure that a signed request which changes something is not a copy of an earlier one.
    func requireNew(
        _ signature: RequestSignature, container: String, by deadline: Deadline
    ) async throws(RequestFailure) {
        if try await ask(await isNew(signature, container: container, by: deadline)) { return }
        throw .authenticationFailed(
            "X-Apple-CloudKit-Request-SignatureV1: this signature was used before; sign each request anew, with the "
                + "present time"
        )
    }

    /// Whether a signature was not used before, anywhere in the cluster.
    /// - Throws: `ClusterError.unavailable` where the leader of the container's group cannot say: it began to lead
    ///   after the date of the signature, or that date is still to come. The request is then to be signed anew.
    private func isNew(
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
                    "whether this signature was used before is not known, because another node keeps count since a moment ago, or its clock is wrong; sign the request anew, with the present time"
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

    /// A text that clients had a part in, for one line of a log: no control characters, and not too long.
    private static func line(_ text: String) -> String {
        let scalars = text.unicodeScalars.prefix(1_000).map { scalar -> Unicode.Scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
                return "?"
            default: return scalar
            }
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// Logs a request that failed, here and on every node that had a part in it.
    /// - Parameter text: may have what clients wrote.
    func report(_ trace: RequestTrace, _ text: String) {
        let now = now
        guard reports.withLock({ $0.passes(at: now) }) else { return }
        let text = Self.line(text)
        logger.info("request \(trace.id) \(text)")
        let nodes = trace.nodes
        guard !nodes.isEmpty else { return }
        let message = NodeMessage.trace(id: trace.id, text: text).encoded()
        node.platform.startTask { [node] in for other in nodes { await node.router.tell(message, to: other) } }
    }
}

extension PeerExchange {
    /// What the leader of a container's group is asked.
    enum Question: WireCodable, Hashable {
        case rates([RateReport])
        /// What a signature is, which was verified; where it is new it counts as used from then on. Who lost the answer
        /// asks again with the same nonce.
        case signature(RequestSignature, nonce: UInt64)
        /// Which key-value stores of the group changed since a mark that an earlier answer had; answered once any did,
        /// or when that time is over. Older builds ask for no time, and give none.
        case stores(since: StoreJournal.Mark?, waitMilliseconds: UInt64)
    }

    /// The leader's answer about a signature.
    struct SignatureAnswer: WireCodable, Hashable {
        var verdict: ReplayGuard.Verdict
    }
}

extension PeerExchange.Question {
    /// 1 a report of a rate, several times; 2 to 4 key, date and Base64 of a signature, 5 the question's nonce; 6 that
    /// stores are asked for, 7 and 8 the mark, 9 how long to wait for one that changes.
    func encode(to writer: inout WireWriter) {
        switch self {
        case .rates(let reports): for report in reports { writer.field(1) { report.encode(to: &$0) } }
        case .signature(let signature, let nonce):
            writer.field(2, signature.keyID)
            writer.field(3, signature.date)
            writer.field(4, Base64.encode(signature.signature))
            writer.field(5, nonce)
        case .stores(let mark, let wait):
            writer.field(6, true)
            if wait > 0 { writer.field(9, wait) }
            guard let mark else { return }
            writer.field(7, mark.journal)
            writer.field(8, mark.count)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var reports: [RateReport] = []
        var parts: [Int: String] = [:]
        var nonce: UInt64 = 0
        var isOfStores = false
        var wait: UInt64 = 0
        var mark: StoreJournal.Mark?
        while let field = try reader.nextField() {
            switch field {
            case 1: reports.append(try reader.message())
            case 2...4: parts[field] = try reader.string()
            case 5: nonce = try reader.unsigned()
            case 6: isOfStores = try reader.bool()
            case 7: mark = StoreJournal.Mark(journal: try reader.unsigned(), count: 0)
            case 8: mark?.count = try reader.unsigned()
            case 9: wait = try reader.unsigned()
            default: try reader.skip()
            }
        }
        if isOfStores {
            self = .stores(since: mark, waitMilliseconds: wait)
            return
        }
        guard !parts.isEmpty else {
            self = .rates(reports)
            return
        }
        guard
            let signature = try? RequestSignature(keyID: parts[2], date: parts[3], signature: parts[4])
        else { throw .invalidValue(field: 4) }
        self = .signature(signature, nonce: nonce)
    }
}

extension PeerExchange.SignatureAnswer {
    /// 1: 1 new, 2 used, 3 too old, 4 ahead; 2 by how many milliseconds.
    func encode(to writer: inout WireWriter) {
        switch verdict {
        case .new: writer.field(1, UInt64(1))
        case .used: writer.field(1, UInt64(2))
        case .tooOld: writer.field(1, UInt64(3))
        case .ahead(let milliseconds):
            writer.field(1, UInt64(4))
            writer.field(2, signed: milliseconds)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var number: UInt64 = 0
        var milliseconds: Int64 = 0
        while let field = try reader.nextField() {
            switch field {
            case 1: number = try reader.unsigned()
            case 2: milliseconds = try reader.signed()
            default: try reader.skip()
            }
        }
        switch number {
        case 1: verdict = .new
        case 2: verdict = .used
        case 3: verdict = .tooOld
        case 4: verdict = .ahead(milliseconds: milliseconds)
        default: throw .invalidValue(field: 1)
        }
    }
}

/// What nodes tell each other at once, without a log: losing one costs accuracy, never correctness.
enum NodeMessage: Hashable, Sendable {
    /// Web auth tokens that clients have begun to use, so that the ones before them end here too.
    case sessions(SessionNews)
    /// Asks for the tokens that were first used, or learned of, at most so many milliseconds ago.
    /// `gap` names what was missed, and the answer repeats it; older builds do neither.
    case wantsSessions(within: Int64, gap: UInt64?)
    /// Records have files now that a user uploaded to the node that is told.
    case savedAssets(SavedAssets)
    /// A request that this node had a part in ended in an error.
    case trace(id: String, text: String)
}

/// Tokens that were the newest of their sessions, as one node tells another; in an answer those of a session in order.
struct SessionNews: Hashable, Sendable {
    var uses: [SessionRotation.Use]
    /// Names one start of the node that tells, or one answer; random. 0 in an answer of an older build.
    var boot: UInt64
    /// 1 for the first message to this node since then, so that a missing one is noticed; 0 in an answer to
    /// `wantsSessions`.
    var number: UInt64
    /// Whether an answer ends with this one.
    var isLast = false
    /// What an answer is about: as the question had it.
    var gap: UInt64?
    /// How many uses an answer has told before these, so that a missing part is noticed; nil in other news, and from an
    /// older build.
    var before: UInt64?
}

/// Files that records have now, or that were uploaded for one; and who uploaded them.
struct SavedAssets: Hashable, Sendable {
    var container: String
    var user: String
    var assets: [AssetReference]
    /// Where no record has them: until when they count as unsaved, in milliseconds since 1970.
    var unsavedUntil: Int64?
}

extension SavedAssets: WireMessage {
    static var blank: Self { SavedAssets(container: "", user: "", assets: []) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.field(2, &user)
        try wire.field(3, &assets)
        try wire.field(4, &unsavedUntil)
    }
}

extension NodeMessage: WireCodable {
    /// 1 the uses of sessions (1 id, 2 issued, 3 age), 4 boot, 5 number, 6 whether it is the last, 9 the gap; or 2 id
    /// of a request and 3 what became of it; or 7 from how long ago sessions are wanted, and 9 the gap; or 8 files that
    /// records have; 10, in an answer: how many uses came before these. What a build does not know it skips.
    func encode(to writer: inout WireWriter) {
        switch self {
        case .sessions(let news):
            for use in news.uses { use.write(1, to: &writer) }
            writer.field(4, news.boot)
            writer.field(5, news.number)
            writer.field(6, news.isLast)
            if let gap = news.gap { writer.field(9, gap) }
            if let before = news.before { writer.field(10, before) }
        case .wantsSessions(let milliseconds, let gap):
            writer.field(7, signed: milliseconds)
            if let gap { writer.field(9, gap) }
        case .savedAssets(let saved): writer.field(8) { saved.encode(to: &$0) }
        case .trace(let id, let text):
            writer.field(2, id)
            writer.field(3, text)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var news = SessionNews(uses: [], boot: 0, number: 0)
        var id: String?
        var wanted: Int64?
        var saved: SavedAssets?
        var text = ""
        while let field = try reader.nextField() {
            switch field {
            case 1: news.uses.append(try reader.message())
            case 2: id = try reader.string()
            case 3: text = try reader.string()
            case 4: news.boot = try reader.unsigned()
            case 5: news.number = try reader.unsigned()
            case 6: news.isLast = try reader.bool()
            case 7: wanted = try reader.signed()
            case 8: saved = try reader.message()
            case 9: news.gap = try reader.unsigned()
            case 10: news.before = try reader.unsigned()
            default: try reader.skip()
            }
        }
        if let id {
            self = .trace(id: id, text: text)
        } else if let saved {
            self = .savedAssets(saved)
        } else {
            self = wanted.map { .wantsSessions(within: $0, gap: news.gap) } ?? .sessions(news)
        }
    }
}

extension SessionRotation.Use: WireMessage {
    package static var blank: Self { SessionRotation.Use(sessionID: "", issued: 0, age: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &sessionID)
        try wire.field(2, &issued)
        try wire.field(3, &age)
    }
}
