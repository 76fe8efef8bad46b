import Cluster
import Directory
import RecordModel
import Synchronization

/// Why a request was not let in.
package enum GateRefusal: String, Hashable, Sendable {
    case containerQueueFull
    case nodeQueueFull
    /// The request went away while it waited.
    case cancelled
}

/// What a `FairGate` says to a request.
package enum GateDecision: Hashable, Sendable {
    /// The request may go on; `leave` must follow.
    case entered
    /// The node is too busy: 503, and nothing to leave.
    case refused(GateRefusal)
}

/// How many requests a node works on at the same time, fair between containers.
///
/// While there is ample room, a request passes two counters: one of its container (striped) and one of the node
/// (atomic), and no lock that all share, also where another container waits for its own limit. When there is none it
/// waits in a line of its container, and the lines are served in turn, so a busy container makes itself wait and not
/// the others. A container at its equal part of the node, counted with one more that may come, does not get the last
/// eighth of the room: somebody new finds a place at once. Invariant: inside <= limit, and inside of a container <= the
/// `containerMax` of the request that entered last.
///
/// Far fewer requests than have room here keep a machine busy; the others only make each other slow. One container
/// alone has all the room all the same, as its requests go in larger batches then. But while there are others, or were
/// a moment ago, a container has no more inside than the others ask for on average, or than there are processors: so
/// one with many requests waits in its line, here, and one with few is not behind them at every later step. Containers
/// that all ask for much do not hold each other up.
package final class FairGate: Sendable {
    private final class Stripe: Sendable {
        let inside = Mutex<[String: Int]>([:])
        /// Requests of the stripe's containers in the line.
        let waiting = Atomic<Int>(0)
    }

    private struct Line: Sendable {
        var queue: FairQueue
        var continuations: [UInt64: CheckedContinuation<GateDecision, Never>] = [:]
    }

    private let limit: Int
    /// With fewer inside nobody waits for room: those in the line, if any, wait for their container's own limit.
    private let ample: Int
    /// What a container may have inside beside others, however little these ask for.
    private let processors: Int
    private let inside = Atomic<Int>(0)
    /// Containers with requests inside.
    private let containers = Atomic<Int>(0)
    private let waiting = Atomic<Int>(0)
    /// Requests that have left.
    private let departures = Atomic<Int>(0)
    /// How many may have left while a container still counts as one of several.
    private let sharedUntil = Atomic<Int>(0)
    private let ids = Atomic<UInt64>(0)
    private let stripes: [Stripe]
    private let line: Mutex<Line>

    /// Requests that leave after which containers are forgotten that were inside: who asks for one thing after another
    /// is away for as long as an answer takes to its client and back.
    private static let memory = 32

    /// - Parameters:
    ///   - limit: Requests inside at the same time; at least 1.
    ///   - queueMax: Requests of one container that may wait; of all together, eight times as many.
    ///   - processors: Requests inside that a container has beside others in any case; at least 1.
    package init(limit: Int, queueMax: Int, processors: Int = .max) {
        precondition(
            limit > 0 && queueMax >= 0 && processors > 0,
            "a gate of \(limit) with a queue of \(queueMax) before \(processors) processors")
        self.limit = limit
        self.processors = processors
        ample = limit - max(1, limit / 8)
        stripes = (0..<64).map { _ in Stripe() }
        line = Mutex(Line(queue: FairQueue(lineMax: queueMax, totalMax: 8 * queueMax)))
    }

    /// Requests inside, and waiting.
    package var load: (inside: Int, waiting: Int) {
        (inside.load(ordering: .relaxed), waiting.load(ordering: .relaxed))
    }

    /// The same, as lines of Prometheus's text form.
    var lines: [String] {
        let load = load
        return [
            "# TYPE zonekeeper_working_requests gauge", "zonekeeper_working_requests \(load.inside)",
            "# TYPE zonekeeper_waiting_requests gauge", "zonekeeper_waiting_requests \(load.waiting)",
        ]
    }

    /// Lets a request in where it need not wait.
    /// - Returns: whether it was let in: then `leave` must follow.
    package func enterNow(container: String, containerMax: Int) -> Bool {
        mayPass(container) && admit(container, containerMax)
    }

    /// Lets a request in, now or when its turn comes.
    package func enter(container: String, containerMax: Int) async -> GateDecision {
        if enterNow(container: container, containerMax: containerMax) { return .entered }
        let waiter = FairQueue.Waiter(
            id: ids.add(1, ordering: .relaxed).newValue, container: container, containerMax: containerMax)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { wait(waiter, $0) }
        } onCancel: {
            cancel(waiter)
        }
    }

    /// Ends a request that was let in.
    package func leave(container: String) {
        release(container)
        departures.add(1, ordering: .relaxed)
        let before = inside.subtract(1, ordering: .sequentiallyConsistent).oldValue
        // A request that joined the line before these loads is seen here; one that joins later sees the room.
        guard waiting.load(ordering: .sequentiallyConsistent) > 0 else { return }
        if before >= ample || stripe(of: container).waiting.load(ordering: .sequentiallyConsistent) > 0 {
            admitWaiting()
        }
    }

    /// Whether a request need not stand in line: nobody waits, or none of its own and none for room.
    private func mayPass(_ container: String) -> Bool {
        if waiting.load(ordering: .sequentiallyConsistent) == 0 { return true }
        return inside.load(ordering: .sequentiallyConsistent) < ample
            && stripe(of: container).waiting.load(ordering: .sequentiallyConsistent) == 0
    }

    private func wait(_ waiter: FairQueue.Waiter, _ continuation: CheckedContinuation<GateDecision, Never>) {
        let refusal: GateRefusal? = line.withLock { line in
            // Cancelled before it joined: `cancel` found nobody.
            if Task.isCancelled { return .cancelled }
            switch line.queue.join(waiter) {
            case .line: return .containerQueueFull
            case .total: return .nodeQueueFull
            case nil: break
            }
            line.continuations[waiter.id] = continuation
            count(waiter, 1)
            return nil
        }
        if let refusal { return continuation.resume(returning: .refused(refusal)) }
        admitWaiting()
    }

    private func cancel(_ waiter: FairQueue.Waiter) {
        let continuation = line.withLock { line -> CheckedContinuation<GateDecision, Never>? in
            guard line.queue.remove(waiter.id, in: waiter.container) else { return nil }
            count(waiter, -1)
            return line.continuations.removeValue(forKey: waiter.id)
        }
        continuation?.resume(returning: .refused(.cancelled))
    }

    private func admitWaiting() {
        let admitted = line.withLock { line in
            var admitted: [CheckedContinuation<GateDecision, Never>] = []
            while let waiter = line.queue.next(where: { admit($0.container, $0.containerMax) }) {
                count(waiter, -1)
                if let continuation = line.continuations.removeValue(forKey: waiter.id) {
                    admitted.append(continuation)
                }
            }
            return admitted
        }
        for continuation in admitted { continuation.resume(returning: .entered) }
    }

    /// Counts somebody into the line, or out of it.
    private func count(_ waiter: FairQueue.Waiter, _ change: Int) {
        waiting.add(change, ordering: .sequentiallyConsistent)
        stripe(of: waiter.container).waiting.add(change, ordering: .sequentiallyConsistent)
    }

    /// Counts a request in, if there is room for its container.
    private func admit(_ container: String, _ containerMax: Int) -> Bool {
        stripe(of: container).inside.withLock { counts in
            let own = counts[container] ?? 0
            guard own < max(1, containerMax) else { return false }
            let others = containers.load(ordering: .relaxed) - (own > 0 ? 1 : 0)
            guard own < processors || own < shareBesideOthers(others, own: own, of: container) else { return false }
            // Itself, the others, and one who may come.
            let isLarge = own > 0 && own >= limit / (others + 2)
            guard takePlace(below: isLarge ? limit - limit / 8 : limit) else { return false }
            if own == 0 { containers.add(1, ordering: .relaxed) }
            counts[container] = own + 1
            return true
        }
    }

    /// How many a container may have inside because of others.
    private func shareBesideOthers(_ others: Int, own: Int, of container: String) -> Int {
        let now = departures.load(ordering: .relaxed)
        guard others > 0 else {
            return now < sharedUntil.load(ordering: .relaxed) ? processors : .max
        }
        sharedUntil.store(now + Self.memory, ordering: .relaxed)
        let ownWaiting = stripe(of: container).waiting.load(ordering: .relaxed)
        let demand = inside.load(ordering: .relaxed) + waiting.load(ordering: .relaxed) - own - ownWaiting
        return max(processors, demand / others)
    }

    private func takePlace(below bound: Int) -> Bool {
        var before = inside.load(ordering: .sequentiallyConsistent)
        while before < bound {
            let (isMine, current) = inside.weakCompareExchange(
                expected: before, desired: before + 1, ordering: .sequentiallyConsistent)
            if isMine { return true }
            before = current
        }
        return false
    }

    private func release(_ container: String) {
        stripe(of: container).inside.withLock { counts in
            let own = counts[container] ?? 0
            precondition(own > 0, "a request of \(container) leaves that did not enter")
            counts[container] = own > 1 ? own - 1 : nil
            if own == 1 { containers.subtract(1, ordering: .relaxed) }
        }
    }

    private func stripe(of container: String) -> Stripe {
        stripes[Int(UInt(bitPattern: container.hashValue) % UInt(stripes.count))]
    }
}

// Requests of clients.
extension FairGate {
    /// Takes a place among the requests that this node works on, waiting for the container's turn where there is none.
    /// - Throws: `TRY_AGAIN_LATER` where too many of the container's wait already, or its turn does not come in time.
    func takePlace(
        container: String, in directory: DirectorySnapshot, on node: ClusterNode
    ) async throws(RequestFailure) {
        let limit = Int(directory.limits(of: container)[.concurrentRequests])
        // Where nobody waits, a timer would only cost.
        if enterNow(container: container, containerMax: limit) { return }
        let decision = await enterInTime(container: container, containerMax: limit, on: node)
        guard case .refused(let refusal) = decision else { return }
        let reason =
            switch refusal {
            case .containerQueueFull: "too many requests of container '\(container)' wait on this node"
            case .nodeQueueFull: "too many requests wait on this node"
            case .cancelled: "this node has too much to do, and the request's turn did not come in time"
            }
        throw .nothingDone(reason).by(ContainerLimit.concurrentRequests.rawValue, limit: limit, used: load.inside)
    }

    private func enterInTime(container: String, containerMax: Int, on node: ClusterNode) async -> GateDecision {
        await withTaskGroup(of: GateDecision?.self) { tasks in
            tasks.addTask { await self.enter(container: container, containerMax: containerMax) }
            tasks.addTask {
                try? await node.platform.clock.sleep(milliseconds: node.settings.requestDeadlineMilliseconds)
                return nil
            }
            defer { tasks.cancelAll() }
            for await decision in tasks {
                if let decision { return decision }
                // The time is over: the request leaves its line, unless its turn came just now.
                tasks.cancelAll()
            }
            return .refused(.cancelled)
        }
    }
}
