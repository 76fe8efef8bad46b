package import Admission
import Authorization
import Cluster
package import Directory
import PeerTransport
package import RaftCore
import RecordModel
import Synchronization
import Wire

/// Keeps this node's shares of the containers' rates: reports to the ledgers about ten times a second while a container
/// is in use, and at once when one begins or ceases to be. And is the ledger, in memory, for the groups that this node
/// leads.
package final class RateExchange: Sendable {
    /// How often limiters are asked whether they have something to report.
    private static let intervalMilliseconds: UInt64 = 10
    /// How long a ledger is waited for; a report that takes longer is outdated.
    private static let patienceMilliseconds: UInt64 = 500

    /// Requests of one container that may wait for a share at once; one whose ledger has no leader must not keep the
    /// others out.
    private static let waitingMax = 1_000

    /// This node's limiters, one for each container and kind of rate in use.
    package let limiters = RateLimiters()
    private let node: ClusterNode
    /// Differs with each start, so that the ledger does not take a new count for an old one.
    private let boot: UInt64
    /// On the node's monotonic clock.
    private let startedAt: UInt64
    private let ledgers = Mutex<[GroupID: RateLedger]>([:])
    /// Questions underway for limiters that have no share, so that a flood of requests asks once.
    private let asking = Mutex<[RateKey: Task<Void, Never>]>([:])
    private let rounds = Mutex<(any Rounds)?>(nil)

    init(node: ClusterNode) {
        self.node = node
        boot = max(1, node.platform.random())
        startedAt = node.platform.clock.now.nanoseconds
    }

    private var clock: any NodeClock { node.platform.clock }

    /// The group whose leader keeps a container's ledger.
    package static func group(of container: String, in map: ClusterMap) -> GroupID {
        let database = DatabaseKey(publicDataIn: SchemaKey(container: container, environment: .production))
        return map.group(of: ZoneKey(database: database, name: "_rates"))
    }

    /// Decides on a request, after asking for a share where this node has none: for the first request in a while, and
    /// where another node began to lead the ledger's group and has little to lend for two seconds.
    /// - Throws: `ClusterError.unavailable` where there is none in time, or too many requests wait for one.
    private func decide(_ limiter: RateLimiter, now: MonotonicTime) async throws(ClusterError) -> RateDecision {
        let decision = limiter.decide(now: now.nanoseconds)
        guard decision == .needsShare else { return decision }
        defer { limiter.endWait() }
        guard limiter.beginWait() <= Self.waitingMax else {
            throw .unavailable(
                "too many requests wait for this node's share of the rate of container "
                    + "'\(limiter.key.container)'")
        }
        return try await decide(
            limiter, until: now.adding(milliseconds: node.settings.requestDeadlineMilliseconds))
    }

    private func decide(_ limiter: RateLimiter, until end: MonotonicTime) async throws(ClusterError) -> RateDecision {
        while true {
            await ask(limiter)
            let now = clock.now
            let decision = limiter.decide(now: now.nanoseconds, isAgain: true)
            if decision != .needsShare { return decision }
            guard now < end else {
                throw .unavailable(
                    "this node got no share of the rate of container '\(limiter.key.container)' in time")
            }
        }
    }

    /// Begins to report. In rounds, as a hundred sleeps of a task a second were half of what an idle node cost.
    func start() {
        let begun = node.platform.makeRounds(name: "rates", everyMilliseconds: Self.intervalMilliseconds) {
            [weak self] in self?.report()
        }
        rounds.withLock { $0 = begun }
    }

    func stop() { rounds.withLock { $0.take() }?.stop() }

    private func report() {
        let now = clock.now
        for (group, reports) in reports(of: limiters.active(now: now.nanoseconds), now: now) {
            // One ledger that cannot be asked must not keep the others waiting.
            node.platform.startTask { await self.exchange(reports, with: group, sentAt: now) }
        }
    }

    /// Answers other nodes as the ledger of containers whose group this node leads: a grant for each report, in their
    /// order.
    func grants(for reports: [RateReport], as leadership: Leadership) -> [RateGrant] {
        let isAlone = node.map.nodes.count == 1
        let reign = RateReign(
            term: leadership.term.rawValue, since: isAlone ? startedAt : leadership.since.nanoseconds, isAlone: isAlone)
        return ledgers.withLock { ledgers in
            var ledger = ledgers.removeValue(forKey: leadership.group) ?? RateLedger()
            let grants = reports.map { ledger.take($0, in: reign, now: leadership.now.nanoseconds) }
            ledgers[leadership.group] = ledger
            return grants
        }
    }

    /// What limiters have to report, by the group that keeps their ledger.
    private func reports(
        of limiters: [RateLimiter], now: MonotonicTime
    ) -> [(group: GroupID, reports: [(RateLimiter, RateReport)])] {
        let directory = node.directory.snapshot
        var byGroup: [GroupID: [(RateLimiter, RateReport)]] = [:]
        for limiter in limiters {
            let container = limiter.key.container
            let report = limiter.report(
                node: node.settings.nodeID.rawValue, boot: boot, limit: Self.limit(of: limiter.key, in: directory),
                now: now.nanoseconds)
            guard let report else { continue }
            byGroup[Self.group(of: container, in: node.map), default: []].append((limiter, report))
        }
        return byGroup.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Requests a second over all nodes.
    package static func limit(of key: RateKey, in directory: DirectorySnapshot) -> UInt64 {
        let limits = directory.limits(of: key.container)
        let users = directory.userCount(of: key.container)
        return switch key.kind {
        case .requests: UInt64(limits.requestsPerSecond(users: users))
        case .keyValues: UInt64(limits.keyValueRequestsPerSecond(users: users))
        case .acting: UInt64(limits[.actAsRequestsPerSecond])
        }
    }

    /// Brings a limiter's question to the ledger, once for all requests that wait for it; returns when there may be an
    /// answer.
    private func ask(_ limiter: RateLimiter) async {
        let task = asking.withLock { questions in
            if let running = questions[limiter.key] { return running }
            let task = node.platform.startTask { [self] in
                let now = clock.now
                let reports = reports(of: [limiter], now: now)
                for (group, reports) in reports { await exchange(reports, with: group, sentAt: now) }
                // Nothing to say: an answer is on its way, or the ledger asked to wait a moment.
                if reports.isEmpty { try? await clock.sleep(milliseconds: 5) }
                asking.withLock { $0[limiter.key] = nil }
            }
            questions[limiter.key] = task
            return task
        }
        await task.value
    }

    /// Sends reports and takes the grants, and again for limiters whose share was lowered: others wait for it.
    private func exchange(
        _ reports: [(RateLimiter, RateReport)], with group: GroupID, sentAt: MonotonicTime
    ) async {
        let lowered = await send(reports, to: group, sentAt: sentAt)
        guard !lowered.isEmpty else { return }
        let now = clock.now
        for (group, reports) in self.reports(of: lowered, now: now) {
            _ = await send(reports, to: group, sentAt: now)
        }
    }

    /// - Returns: the limiters that have more to say at once.
    private func send(
        _ reports: [(RateLimiter, RateReport)], to group: GroupID, sentAt: MonotonicTime
    ) async -> [RateLimiter] {
        let request = PeerExchange.Question.rates(reports.map(\.1)).encoded()
        let answer = try? await node.router.confer(
            request, with: group, by: node.deadline(milliseconds: Self.patienceMilliseconds))
        guard let answer, let grants = try? ShardList<RateGrant>(decoding: answer).elements,
            grants.count == reports.count
        else {
            for (limiter, _) in reports { limiter.noteLost(sentAt: sentAt.nanoseconds) }
            return []
        }
        let now = clock.now.nanoseconds
        return zip(reports, grants).compactMap { report, grant in
            let limiter = report.0
            guard grant.key == limiter.key else { return nil }
            return limiter.take(grant, sentAt: sentAt.nanoseconds, now: now) ? limiter : nil
        }
    }
}

// Requests spend a container's rate.
extension RateExchange {
    /// Spends a request's first token.
    /// - Parameters:
    ///   - debtor: whose debts are to be paid first; nil for requests by a URL or token that was handed out for them.
    ///   - notes: gets what is left of the rate.
    /// - Throws: `THROTTLED` with when to come back, `TRY_AGAIN_LATER` where this node has no share of the rate.
    func spend(
        _ key: RateKey, by debtor: String? = nil, in directory: DirectorySnapshot, _ notes: inout RequestNotes
    ) async throws(RequestFailure) {
        let now = clock.now
        let limiter = limiters.limiter(key, now: now.nanoseconds)
        let (milliseconds, reason): (Int, String)
        if let wait = debtor.flatMap({ limiter.wait(of: $0, now: now.nanoseconds) }) {
            limiter.turnAway(now: now.nanoseconds)
            (milliseconds, reason) = (wait, "your earlier requests cost more than one each, and ")
        } else {
            switch try await Service.ask(await decide(limiter, now: now)) {
            case .accepted(let remaining, let reset):
                notes.rate = RequestNotes.Rate(kind: key.kind, remaining: remaining, resetMilliseconds: reset)
                return
            case .refused(let wait): (milliseconds, reason) = (wait, "")
            case .needsShare: preconditionFailure("the exchange decides or throws")
            }
        }
        notes.rate = RequestNotes.Rate(kind: key.kind, remaining: 0, resetMilliseconds: milliseconds)
        let limit = Int(Self.limit(of: key, in: directory))
        throw .throttled(
            "\(reason)container '\(key.container)' takes \(limit) \(key.kind.rawValue) a second over all nodes; come "
                + "back after retryAfter seconds", retryAfterSeconds: Double(milliseconds) / 1_000
        ).by(key.kind.rawValue, limit: limit, used: limit)
    }

    /// What a request of many operations, or for many zones, costs beyond its first token, where each is work of its
    /// own: a token for each four after the first ten.
    static func tokens(forOperations count: Int) -> Int { max(0, count - 10) / 4 }

    /// Charges a request for what it costs beyond its first token. An administrator's are free, but for those of one
    /// who acts as a user.
    func charge(_ tokens: Int, to request: DatabaseRequest) {
        let asked = AdmittedRequest(admitted: request.requester.admitted, directory: request.directory)
        charge(tokens, of: .requests, in: request.key.container, to: asked)
    }

    /// - Parameter kind: the rate of which the request spent its first token, unless an administrator acts as the user.
    func charge(_ tokens: Int, of kind: RateKind, in container: String, to request: AdmittedRequest) {
        let admitted = request.admitted
        guard tokens > 0, !admitted.caller.isAdministrator else { return }
        let key = RateKey(container: container, kind: admitted.administrator == nil ? kind : .acting)
        let now = clock.now.nanoseconds
        limiters.limiter(key, now: now).charge(
            UInt64(tokens), to: admitted.debtor, limit: Self.limit(of: key, in: request.directory), now: now)
    }
}
