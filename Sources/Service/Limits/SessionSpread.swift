package import Admission
import Cluster
import Directory
import Logging
import PeerTransport
import RaftCore
import RecordModel
import Synchronization
import Wire

/// Lets all nodes know which web auth token of a session is the newest (decision 0011), and ends sessions whose tokens
/// were copied.
///
/// Each other node is told ten times a second, by a loop of its own, so that one that does not answer holds up nobody.
package final class SessionSpread: Sendable {
    private static let intervalMilliseconds: UInt64 = 100
    /// How often nodes that came or went are looked for.
    private static let followMilliseconds: UInt64 = 1_000
    /// Uses in one message of an answer.
    private static let answerUses = 5_000

    private let rotation = SessionRotation(sessionsMax: 200_000)
    private let signer: SessionSigner?
    private let node: ClusterNode
    private let logger: Logger
    private let boot: UInt64
    private let outboxes: Mutex<[NodeID: SessionOutbox]>
    /// Nodes that are being answered; each is answered once at a time.
    private let answering = Mutex<Set<NodeID>>([])

    init(node: ClusterNode, signer: SessionSigner?, logger: Logger) {
        self.node = node
        self.signer = signer
        self.logger = logger
        let boot = max(1, node.platform.random())
        var outboxes: [NodeID: SessionOutbox] = [:]
        for other in Self.others(of: node) { outboxes[other] = SessionOutbox(boot: boot) }
        self.outboxes = Mutex(outboxes)
        self.boot = boot
    }

    /// The other nodes of the cluster as they are now, ascending.
    private static func others(of node: ClusterNode) -> [NodeID] {
        node.map.nodes.map { NodeID(rawValue: $0.id) }.filter { $0 != node.settings.nodeID }
    }

    private var clock: any NodeClock { node.platform.clock }

    private var now: Int64 { clock.wallMilliseconds }

    /// Milliseconds of the node's monotonic clock, which nobody sets.
    private var uptime: Int64 { Int64(clock.now.nanoseconds / 1_000_000) }

    /// The web auth token that takes the place of the one that a request came with.
    /// - Throws: `AUTHENTICATION_REQUIRED` where that one was replaced too long ago.
    func rotate(_ use: SessionUse) throws(RequestFailure) -> String? {
        let (verdict, newest) = rotation.present(sessionID: use.sessionID, issued: use.issued, now: uptime)
        switch verdict {
        case .superseded:
            throw RequestFailure(
                .authenticationRequired,
                "request needs authorization: the ckWebAuthToken was replaced by a newer one, which an earlier answer "
                    + "carried"
            )
        case .accepted(let isNewest):
            if isNewest { didUse(use) }
            return newToken(of: use, issued: SessionRotation.nextIssue(after: newest, now: now))
        }
    }

    /// A web auth token of a session that is as new as this moment.
    package func newToken(of use: SessionUse) -> String? {
        newToken(of: use, issued: rotation.nextIssue(of: use.sessionID, after: use.issued, now: now))
    }

    private func newToken(of use: SessionUse, issued: Int64) -> String? {
        signer?.token(sessionID: use.sessionID, issued: issued)
    }

    /// A session's newest token was presented here for the first time: the other nodes learn of it in a moment.
    private func didUse(_ use: SessionUse) {
        let uptime = uptime
        outboxes.withLock { outboxes in
            for id in outboxes.keys { outboxes[id]?.note(use.sessionID, issued: use.issued, now: uptime) }
        }
    }

    /// Runs until the task is cancelled.
    func run() async {
        await withDiscardingTaskGroup { tasks in
            tasks.addTask { await self.endReused() }
            var told: [NodeID] = []
            while !Task.isCancelled {
                let others = Self.others(of: node)
                outboxes.withLock { outboxes in
                    outboxes = outboxes.filter { others.contains($0.key) }
                    for other in others where outboxes[other] == nil { outboxes[other] = SessionOutbox(boot: boot) }
                }
                for other in others where !told.contains(other) { tasks.addTask { await self.tell(other) } }
                told = others
                try? await clock.sleep(milliseconds: Self.followMilliseconds)
            }
        }
    }

    /// Until the node is gone from the cluster.
    private func tell(_ other: NodeID) async {
        while !Task.isCancelled {
            let uptime = uptime
            let next = outboxes.withLock { $0[other]?.next(now: uptime) }
            guard let messages = next else { return }
            for message in messages { await node.router.tell(message.encoded(), to: other) }
            try? await clock.sleep(milliseconds: Self.intervalMilliseconds)
        }
    }

    /// Takes what another node told.
    func hear(_ news: SessionNews, from other: NodeID) {
        let uptime = uptime
        for use in news.uses { rotation.learn(use, now: uptime) }
        outboxes.withLock { $0[other]?.heard(news, now: uptime) }
    }

    /// Tells another node what it missed.
    /// - Parameter gap: as the question has it; nil from an older build.
    func answer(within milliseconds: Int64, gap: UInt64?, to other: NodeID) {
        guard answering.withLock({ $0.insert(other).inserted }) else { return }
        node.platform.startTask { [self] in
            let uses = rotation.uses(within: milliseconds, now: uptime)
            let id = node.platform.random()
            var start = 0
            repeat {
                let end = min(start + Self.answerUses, uses.count)
                let news = SessionNews(
                    uses: Array(uses[start..<end]), boot: id, number: 0, isLast: end == uses.count, gap: gap,
                    before: UInt64(start))
                await node.router.tell(NodeMessage.sessions(news).encoded(), to: other)
                start = end
            } while start < uses.count
            _ = answering.withLock { $0.remove(other) }
        }
    }

    private func endReused() async {
        while !Task.isCancelled {
            for session in rotation.takeReused() { await end(session) }
            try? await clock.sleep(milliseconds: Self.intervalMilliseconds)
        }
    }

    /// Ends a session whose superseded token was presented. It may have ended meanwhile; then that is refused and
    /// audited alike.
    private func end(_ sessionID: String) async {
        let origin = AuditOrigin.node(node.settings.nodeID, at: now)
        let event = AuditEvent(
            origin: origin, action: "session.reuse", subject: "session \(AuditText.id(sessionID))",
            outcome:
                "the session was ended: a web auth token came that others had replaced long before; somebody has a copy"
        )
        do {
            guard try await NodeAccounts(of: node).session(.signIn(id: sessionID)) != nil else { return }
            _ = try await node.changeDirectory(
                DirectoryEntry(.revokeToken(id: sessionID), origin: origin, events: [event]), by: node.deadline())
        } catch {
            logger.warning(
                "session \(AuditText.id(sessionID)), whose token was copied, could not be ended yet: \(error)")
            rotation.putBackReused(sessionID)
        }
    }
}

/// What one other node is to be told of sessions, and what was heard from it. A value; time in milliseconds is passed
/// in.
///
/// Messages are numbered, and one goes out each second even if there is nothing to tell, so that a node notices within
/// a moment that it missed some: because it was cut off, or had not started yet. It then asks for all that it may have
/// missed, and asks again until it got an answer. So nothing is kept for nodes that cannot be reached.
struct SessionOutbox: Sendable {
    /// Uses that wait to be told. Beyond that they are dropped and a number is left out: the other node asks for them.
    private static let usesMax = 10_000
    /// After how long a message goes out that tells nothing.
    private static let idleMilliseconds: Int64 = 1_000
    /// How long an answer is waited for.
    private static let answerMilliseconds: Int64 = 3_000
    /// How much further back is asked for than the last message: messages take their time, and clocks differ in speed.
    private static let marginMilliseconds: Int64 = 10_000

    private let boot: UInt64
    private var number: UInt64 = 0
    private var toldAt: Int64?
    /// The newest of each session, with when it was used.
    private var waiting: [String: (issued: Int64, time: Int64)] = [:]

    private var heardBoot: UInt64 = 0
    private var heardNumber: UInt64 = 0
    private var heardAt: Int64?
    /// Since when something may have been missed; nil: nothing was.
    private var missingSince: Int64?
    private var askedAt: Int64?
    /// The answer that is coming, and how many of its uses have come without one missing.
    private var answer: (id: UInt64, uses: UInt64) = (0, 0)
    /// Names the last gap that was noticed: an answer about an earlier one tells nothing of it.
    private var gap: UInt64
    /// Such answers that may be underway from a node whose build does not say which gap it answers about.
    private var outdatedAnswers = 0

    /// - Parameter boot: random, not 0.
    init(boot: UInt64) { (self.boot, gap) = (boot, boot) }

    /// A session's newest token was presented here.
    mutating func note(_ sessionID: String, issued: Int64, now: Int64) {
        if waiting.count >= Self.usesMax {
            waiting = [:]
            number += 1
        }
        if let before = waiting[sessionID], before.issued >= issued { return }
        waiting[sessionID] = (issued, now)
    }

    /// What is to be told now, if anything.
    mutating func next(now: Int64) -> [NodeMessage] {
        var messages: [NodeMessage] = []
        let isDue = toldAt.map { now - $0 >= Self.idleMilliseconds } ?? true
        if isDue || !waiting.isEmpty {
            number += 1
            toldAt = now
            let uses = waiting.map {
                SessionRotation.Use(sessionID: $0.key, issued: $0.value.issued, age: now - $0.value.time)
            }
            waiting = [:]
            messages.append(.sessions(SessionNews(uses: uses, boot: boot, number: number)))
        }
        if let missingSince, askedAt.map({ now - $0 >= Self.answerMilliseconds }) ?? true {
            if askedAt != nil { outdatedAnswers = 0 }
            askedAt = now
            let within = missingSince == .min ? Int64.max : now - missingSince + Self.marginMilliseconds
            messages.append(.wantsSessions(within: within, gap: gap))
        }
        return messages
    }

    /// Takes note of what the other node told.
    mutating func heard(_ news: SessionNews, now: Int64) {
        guard news.number > 0 else { return heardAnswer(news) }
        let isSame = news.boot == heardBoot
        // Overtaken by a later one, which was taken as a gap.
        if isSame, news.number <= heardNumber { return }
        if !isSame || news.number > heardNumber + 1 {
            let since = heardAt ?? .min
            missingSince = min(missingSince ?? since, since)
            gap &+= 1
            // An answer that is underway may have begun before.
            if askedAt != nil { outdatedAnswers += 1 }
            askedAt = nil
        }
        (heardBoot, heardNumber, heardAt) = (news.boot, news.number, now)
    }

    /// A part of an answer: with the last one it is whole, unless a part of it was lost.
    private mutating func heardAnswer(_ news: SessionNews) {
        if let before = news.before {
            if before == 0 { answer = (news.boot, 0) }
            guard answer == (news.boot, before) else { return }
            answer.uses += UInt64(news.uses.count)
        }
        guard news.isLast else { return }
        if let answered = news.gap {
            guard answered == gap else { return }
        } else if outdatedAnswers > 0 {
            outdatedAnswers -= 1
            return
        }
        (missingSince, askedAt) = (nil, nil)
    }
}
