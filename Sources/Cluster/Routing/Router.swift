import Logging
import NIOCore
package import PeerTransport
package import RaftCore
import Synchronization
import Telemetry
import Tracing
import Wire

/// Why the cluster did not do what it was asked.
package enum ClusterError: Error, Hashable, Sendable {
    /// Nothing was done; the same request may be sent again.
    case unavailable(String)
    /// The command may or may not have been done.
    case outcomeUnknown(String)
    /// Nothing was done, and asking again does not help before somebody mends what the reason says.
    case failed(String)
    /// The read was not done by its deadline, or its client went away. It may be asked again; asking for less helps.
    case readEnded
    /// The request, and then nothing was done, or its answer is larger than nodes take. Asking for less helps.
    case tooLarge(Oversize)
}

/// The time by which a client is answered, whatever becomes of its request.
package struct Deadline: Sendable {
    let time: MonotonicTime

    init(time: MonotonicTime) { self.time = time }

    /// - Parameter now: by the node's clock.
    package init(milliseconds: UInt64, from now: MonotonicTime = .current) {
        time = now.adding(milliseconds: milliseconds)
    }

    /// Whether the time is over.
    package func isOver(at now: MonotonicTime) -> Bool { time <= now }

    /// What another node may take, so that its answer is here in time.
    func millisecondsForOthers(at now: MonotonicTime) -> UInt64 {
        UInt64(nanosecondsLeft(at: now)) / 1_000_000 * 9 / 10 + 1
    }

    func nanosecondsLeft(at now: MonotonicTime) -> Int64 {
        time <= now ? 1 : Int64(clamping: time.nanoseconds - now.nanoseconds)
    }
}

/// Brings a request to the node that leads its group: this one, or another over one hop. Tries again by itself only
/// where it is sure that nothing was appended, and never beyond the deadline.
package final class Router: Sendable {
    private let platform: any NodePlatform
    private let nodeID: NodeID
    private let lane: Lane
    private let transport: any PeerNetwork
    private let leaders: LeaderTable
    private let candidates: @Sendable (GroupID) -> [NodeID]
    private let timers: NodeTimers
    private let tracer: NodeTracer?

    init(
        platform: any NodePlatform, nodeID: NodeID, lane: Lane, transport: any PeerNetwork, leaders: LeaderTable,
        candidates: @escaping @Sendable (GroupID) -> [NodeID]
    ) {
        self.platform = platform
        self.nodeID = nodeID
        self.lane = lane
        self.transport = transport
        self.leaders = leaders
        self.candidates = candidates
        timers = lane.settings.apply.timers
        tracer = lane.settings.tracer
    }

    /// How long something has been going on.
    private func nanoseconds(since begin: MonotonicTime) -> UInt64 {
        let now = platform.clock.now
        return now > begin ? now.nanoseconds - begin.nanoseconds : 0
    }

    /// Has a command applied by the group and returns its outcome, encoded.
    ///
    /// When it returns, the command is durable on a majority and applied on the leader.
    package func submit(_ command: GroupCommand, to group: GroupID, by deadline: Deadline) async throws(ClusterError)
        -> [UInt8]
    {
        // A command carries the time of the node that makes it.
        if let problem = lane.clockWatch.problem { throw .unavailable(problem) }
        let encoded = command.encoded()
        if let excess = lane.settings.excess(of: encoded) { throw .tooLarge(excess) }
        let begin = platform.clock.now
        let span = tracer?.part("commit", of: nil, in: group)
        defer {
            timers.commit.record(nanoseconds: nanoseconds(since: begin))
            span?.finish()
        }
        let place = span?.place
        return try await route(group, isWrite: true, by: deadline) { node in
            node == self.nodeID
                ? await self.call(by: deadline) { [lane] in
                    lane.runner.propose(encoded, to: group, below: place, completion: $0)
                }
                : await self.ask(node, below: span, by: deadline) { .propose(group, command: encoded, origin: $0) }
        }
    }

    /// Reads from the group's state as it is after everything acknowledged before this call. Where the task is
    /// cancelled, the read ends.
    /// - Parameters:
    ///   - container: whose read it is. Containers take turns; the directory's reads belong to none.
    ///   - isAfterLog: whether it waits for all that the leader's log holds, not only for what is committed.
    package func read(
        _ request: [UInt8], from group: GroupID, of container: String = "", isAfterLog: Bool = false,
        by deadline: Deadline
    ) async throws(ClusterError) -> [UInt8] {
        let span = tracer?.part("read", of: nil, in: group)
        defer { span?.finish() }
        return try await route(group, isWrite: false, by: deadline) { node in
            if Task.isCancelled { return .answered(.failure(.readEnded)) }
            let terms = ReadTerms(
                container: container, milliseconds: deadline.millisecondsForOthers(at: self.platform.clock.now),
                isAfterLog: isAfterLog, origin: RequestOrigin(place: span?.place))
            if node == self.nodeID { return await self.readHere(request, from: group, terms, by: deadline) }
            let attempt = await self.ask(node, below: span, by: deadline) { origin in
                var terms = terms
                terms.origin = origin
                return .read(group, request: request, terms)
            }
            guard case .noAnswer = attempt, self.platform.clock.now >= deadline.time else { return attempt }
            return .answered(.failure(.readEnded))
        }
    }

    /// Has the layers above answer on the node that leads the group.
    package func confer(_ request: [UInt8], with group: GroupID, by deadline: Deadline) async throws(ClusterError)
        -> [UInt8]
    {
        try await route(group, isWrite: false, by: deadline) { node in
            node == self.nodeID
                ? await self.call(by: deadline) { [lane] in lane.reads.confer(request, of: group, completion: $0) }
                : await self.ask(node, .confer(group, request: request), by: deadline)
        }
    }

    /// The members of a group, as its leader has them in force.
    package func members(of group: GroupID, by deadline: Deadline) async throws(ClusterError) -> GroupMembers {
        let answer = try await route(group, isWrite: false, by: deadline) { node in
            node == self.nodeID
                ? await self.call(by: deadline) { [lane] in lane.members.list(of: group, completion: $0) }
                : await self.ask(node, .members(group), by: deadline)
        }
        guard let members = try? GroupMembers(decoding: answer) else {
            throw .failed("the leader of group \(group) gave an unreadable answer about its members")
        }
        return members
    }

    /// What another node says of itself and of this one; nil if it cannot be asked.
    func introduce(_ introduction: Introduction, to node: NodeID, by deadline: Deadline) async -> Standing? {
        guard case .answered(.success(let bytes)) = await ask(node, .introduce(introduction), by: deadline) else {
            return nil
        }
        return try? Standing(decoding: bytes)
    }

    /// Has another node see to it that this node's data folder counts from here on.
    /// - Returns: why it does not yet; nil if it does.
    func claim(
        _ incarnation: UInt64, previous: UInt64, through node: NodeID, by deadline: Deadline
    ) async -> String? {
        switch await ask(node, .claim(incarnation: incarnation, previous: previous), by: deadline) {
        case .answered(.success): nil
        case .answered(.failure(.failed(let reason))), .answered(.failure(.unavailable(let reason))): reason
        default: "node \(node) does not answer"
        }
    }

    /// How another node's replica of a group is; nil if it has none, or cannot be asked.
    func condition(of group: GroupID, on node: NodeID, by deadline: Deadline) async -> ReplicaCondition? {
        guard case .answered(.success(let bytes)) = await ask(node, .condition(group), by: deadline) else { return nil }
        return try? ReplicaCondition(decoding: bytes)
    }

    /// Tells another node something for its layers above, if it can be reached now.
    package func tell(_ message: [UInt8], to node: NodeID) async {
        _ = await ask(node, .tell(message), by: Deadline(milliseconds: 1_000, from: platform.clock.now))
    }

    /// What this node did for other nodes' requests, of late.
    package var hops: HopLog { lane.hops }

    /// Has the layers above of another node answer, whatever it leads.
    /// - Throws: `unavailable` where it cannot be asked, does not answer in time, or does not know the question.
    package func inquire(
        _ question: [UInt8], of node: NodeID, by deadline: Deadline
    ) async throws(ClusterError) -> [UInt8] {
        switch await ask(node, .inquire(question), by: deadline) {
        case .answered(.success(let bytes)): return bytes
        case .answered(.failure(.unavailable(let reason))), .answered(.failure(.failed(let reason))):
            throw .unavailable(reason)
        case .answered(.failure): throw .unavailable("node \(node) cannot answer now")
        case .notSent: throw .unavailable("node \(node) cannot be reached")
        case .noAnswer: throw .unavailable("node \(node) did not answer in time")
        }
    }

    /// Asks another node to learn what the directory holds.
    /// - Returns: whether it has by then.
    func catchUp(_ node: NodeID, until end: MonotonicTime) async -> Bool {
        if case .answered(.success) = await ask(node, .catchUp, by: Deadline(time: end)) { return true }
        return false
    }

    /// What a node answers that is stopping, so that its callers do not wait.
    private static var stopping: ReplicaError { .unavailable("the node is stopping") }

    /// What one try came to.
    enum Attempt {
        case answered(Result<[UInt8], ReplicaError>)
        /// Nothing was sent.
        case notSent
        /// Sent, and no answer came.
        case noAnswer

        var isDone: Bool { if case .answered(.success) = self { true } else { false } }
    }

    func route(
        _ group: GroupID, isWrite: Bool, by deadline: Deadline, _ attempt: (NodeID) async -> Attempt
    ) async throws(ClusterError) -> [UInt8] {
        var tries = 0
        var lastReason = "the request's time was over before anything was sent to group \(group)"
        while platform.clock.now < deadline.time {
            let node = target(of: group, try: tries)
            tries += 1
            switch await attempt(node) {
            case .answered(.success(let bytes)):
                leaders.answered(by: node, of: group)
                return bytes
            case .answered(.failure(.notLeader(let hint))):
                lastReason = "group \(group) has no leader at the moment"
                leaders.denied(by: node, hint: hint?.node, of: group)
                if let hint, hint.node != node, tries % 4 != 0 { continue }
            case .answered(.failure(.superseded)): continue
            case .answered(.failure(.outcomeUnknown(let reason))):
                if isWrite { throw .outcomeUnknown(reason) }
                lastReason = reason
            case .answered(.failure(let error)): throw Self.refusal(error, by: node, leading: group)
            case .notSent:
                lastReason = "node \(node) cannot be reached"
                leaders.forget(node, of: group)
            case .noAnswer:
                lastReason = "node \(node) did not answer"
                leaders.forget(node, of: group)
                if isWrite { throw .outcomeUnknown("node \(node) did not answer") }
            }
            do {
                try await platform.clock.sleep(milliseconds: UInt64(min(10 * tries, 50)))
            } catch {
                throw .unavailable("given up: \(lastReason)")
            }
        }
        throw .unavailable(lastReason)
    }

    /// What a caller is told of a failure that another try would not mend.
    private static func refusal(_ error: ReplicaError, by node: NodeID, leading group: GroupID) -> ClusterError {
        switch error {
        case .notLeader, .superseded: .unavailable("group \(group) has no leader at the moment")
        case .readEnded: .readEnded
        case .overloaded: .unavailable("group \(group) has as much work as it may; slow down")
        case .diskFull:
            .unavailable(
                "the disk of node \(node), which leads group \(group), is full: only reads and deletions until it has "
                    + "space again")
        case .unavailable(let reason): .unavailable(reason)
        case .failed(let reason): .failed(reason)
        case .tooLarge(let size): .tooLarge(size)
        case .outcomeUnknown(let reason): .outcomeUnknown(reason)
        }
    }

    /// The known leader; otherwise each candidate in turn.
    private func target(of group: GroupID, try attempt: Int) -> NodeID {
        if let leader = leaders.leader(of: group) { return leader }
        let candidates = candidates(group)
        return candidates.isEmpty ? nodeID : candidates[attempt % candidates.count]
    }

    private func readHere(
        _ request: [UInt8], from group: GroupID, _ terms: ReadTerms, by deadline: Deadline
    ) async -> Attempt {
        let begin = platform.clock.now
        defer { timers.read.record(nanoseconds: nanoseconds(since: begin)) }
        let ticket = ReadTicket(terms, until: deadline.time) { [platform] in platform.clock.now }
        return await withTaskCancellationHandler {
            await call(by: deadline, overdue: .readEnded) { [lane] in
                lane.reads.read(request, from: group, ticket, completion: $0)
            }
        } onCancel: {
            ticket.cancel()
        }
    }

    private func call(
        by deadline: Deadline, overdue: ReplicaError = .outcomeUnknown("no answer in time"),
        _ body: @escaping @Sendable (@escaping Completion) -> Void
    ) async -> Attempt {
        .answered(
            await withCheckedContinuation { continuation in
                let call = PendingCall(continuation, overdue: overdue)
                lane.eventLoop.execute { [lane] in
                    guard !lane.context.isStopping else { return call.resume(.failure(Self.stopping)) }
                    lane.context.expire(call, at: deadline.time)
                    body { call.resume($0) }
                }
            })
    }

    /// Asks another node for the request of this task.
    /// - Parameter span: what asks, if that is recorded.
    private func ask(
        _ node: NodeID, below span: RecordedSpan?, by deadline: Deadline, _ request: (RequestOrigin) -> NodeRequest
    ) async -> Attempt {
        let trip = span.flatMap { tracer?.part("peer", of: $0.place, .client) }
        trip?.attributes["zonekeeper.peer"] = Int64(clamping: node.rawValue)
        let attempt = await ask(node, request(RequestTrace.origin(trip)), by: deadline)
        trip?.finish(isFailed: !attempt.isDone)
        return attempt
    }

    private func ask(_ node: NodeID, _ request: NodeRequest, by deadline: Deadline) async -> Attempt {
        RequestTrace.current?.crosses(to: node)
        let begin = platform.clock.now
        defer { timers.peerRoundTrip.record(nanoseconds: nanoseconds(since: begin)) }
        let payload = request.encoded()
        let timeout = TimeAmount.nanoseconds(deadline.nanosecondsLeft(at: platform.clock.now))
        do {
            let reply = try await lane.eventLoop.flatSubmit { [lane, transport] in
                lane.context.isStopping
                    ? lane.eventLoop.makeFailedFuture(Self.stopping)
                    : transport.request(payload, to: node, channel: .request, timeout: timeout)
            }.get()
            return .answered(try NodeReply(decoding: reply).result)
        } catch let error as ReplicaError {
            return .answered(.failure(error))
        } catch PeerTransportError.responseLost(let reason) {
            return .answered(.failure(.outcomeUnknown("the answer could not be sent: \(reason)")))
        } catch PeerTransportError.responseTooLarge(let bytes, let bytesMax) {
            return .answered(.failure(.tooLarge(Oversize(.answer, bytes: bytes, bytesMax: bytesMax))))
        } catch PeerTransportError.tooLarge(let bytes, let bytesMax) {
            return .answered(.failure(.tooLarge(Oversize(.request, bytes: bytes, bytesMax: bytesMax))))
        } catch let error as PeerTransportError {
            return error.isOutcomeUnknown ? .noAnswer : .notSent
        } catch {
            return .noAnswer
        }
    }
}

/// A caller that waits on this node; the first of several results is its answer.
final class PendingCall: Sendable {
    /// What it is answered when its time is over.
    let overdue: ReplicaError
    private let continuation: Mutex<CheckedContinuation<Result<[UInt8], ReplicaError>, Never>?>

    init(_ continuation: CheckedContinuation<Result<[UInt8], ReplicaError>, Never>, overdue: ReplicaError) {
        self.overdue = overdue
        self.continuation = Mutex(continuation)
    }

    var isAnswered: Bool { continuation.withLock { $0 == nil } }

    func resume(_ result: Result<[UInt8], ReplicaError>) {
        continuation.withLock { $0.take() }?.resume(returning: result)
    }
}
