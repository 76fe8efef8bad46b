package import Directory
import NIOCore
import PeerTransport
import RaftCore
import Storage
import Synchronization
import Wire

/// What this node knows of the directory, and for how long; and how changes become known everywhere.
final class LeasedDirectory: Sendable {
    let lease: DirectoryLease
    private let parts: NodeParts
    private let router: Router
    private let refreshes: SingleFlight

    init(_ parts: NodeParts, router: Router) {
        lease = DirectoryLease(lengthMilliseconds: parts.settings.directoryLeaseMilliseconds)
        self.parts = parts
        self.router = router
        refreshes = SingleFlight(platform: parts.platform)
    }

    /// Waits until this node knows what was acknowledged before the call (`ClusterNode.refreshDirectory`).
    func refresh() async throws(ClusterError) {
        let result = await refreshes.next { [self] in await refresh(by: parts.deadline) }
        try result.get()
    }

    /// Makes sure that what this node knows may be relied on (`ClusterNode.requireDirectory`).
    func require() async throws(ClusterError) {
        if isCurrent { return }
        try await refresh()
    }

    /// Whether the lease is in force. A machine that stood still may have requests before its lane looks at the clocks.
    var isCurrent: Bool { !parts.lane.clockWatch.hasJumped && lease.isValid(at: parts.platform.clock.now) }

    /// Has a change applied by the directory, and waits until no node relies on anything older: until each has applied
    /// it, or the leases that may have been in force at the time of the change have run out.
    func change(_ entry: DirectoryEntry, by deadline: Deadline) async throws(ClusterError) -> [UInt8] {
        let outcome = try await router.submit(.machine(entry.encoded()), to: .directory, by: deadline)
        let committed = parts.platform.clock.now
        await spread(until: committed.adding(milliseconds: lease.settlingMilliseconds))
        return outcome
    }

    private func spread(until end: MonotonicTime) async {
        let areAllAware = await withTaskGroup(of: Bool.self) { tasks in
            var asked: Set<NodeID> = [parts.settings.nodeID]
            func askOthers() {
                for node in parts.map.nodes.map({ NodeID(rawValue: $0.id) }) where asked.insert(node).inserted {
                    tasks.addTask { await self.router.catchUp(node, until: end) }
                }
            }
            askOthers()
            // That this node knows is what the caller asks for next. Who came before the change is in its map then,
            // which may have been older where it is just joining.
            guard (try? await refresh()) != nil else { return false }
            askOthers()
            return await tasks.reduce(true) { $0 && $1 }
        }
        let hasStrays = lease.mayBeHeldByRemoved(parts.map.removed.count, at: parts.platform.clock.now)
        guard !areAllAware || hasStrays else { return }
        let now = parts.platform.clock.now
        if now < end {
            try? await parts.platform.clock.sleep(milliseconds: (end.nanoseconds - now.nanoseconds) / 1_000_000 + 1)
        }
    }

    func refresh(by deadline: Deadline) async -> Result<Void, ClusterError> {
        let begin = parts.platform.clock.now
        do throws(ClusterError) {
            let answer = try await router.read([], from: .directory, by: deadline)
            guard let position = try? LogPosition(decoding: answer) else {
                throw .failed("the directory's leader gave an unreadable answer")
            }
            while parts.platform.clock.now < deadline.time {
                let applied = try? await parts.lane.eventLoop.submit { [lane = parts.lane] in
                    lane.replicas[.directory]?.applied ?? .zero
                }.get()
                if let applied, applied >= position.index {
                    lease.renew(begunAt: begin)
                    return .success(())
                }
                do {
                    try await parts.platform.clock.sleep(milliseconds: 5)
                } catch {
                    throw .unavailable("given up")
                }
            }
            throw .unavailable("this node is behind the directory")
        } catch {
            return .failure(error)
        }
    }

    /// Keeps the lease in force until the task is cancelled.
    func keep() async {
        while !Task.isCancelled {
            _ = await refresh(by: parts.platform.deadline(milliseconds: lease.lengthMilliseconds / 2))
            try? await parts.platform.clock.sleep(milliseconds: lease.renewalMilliseconds)
        }
    }
}

/// For how long this node may rely on what it knows of the directory.
///
/// A renewal begins with a question to the directory's leader and ends when everything committed by then is applied
/// here; it is good for `lengthMilliseconds` from its beginning. So a change is known to every node that relies on its
/// knowledge once that time has passed since the change was committed. The clock counts suspension.
final class DirectoryLease: Sendable {
    let lengthMilliseconds: UInt64
    /// How often it is renewed.
    var renewalMilliseconds: UInt64 { lengthMilliseconds / 4 }
    /// After how long a change counts as known everywhere: the length, and what clocks may differ in speed.
    var settlingMilliseconds: UInt64 { lengthMilliseconds + lengthMilliseconds / 20 }

    private let validUntil = Atomic<UInt64>(0)
    /// Renewals that began before count for nothing.
    private let ended = Atomic<UInt64>(0)
    /// How many nodes were removed so far, and when the last of them can no longer rely on a lease.
    private let removals = Mutex((count: 0, settled: MonotonicTime.zero))

    init(lengthMilliseconds: UInt64) { self.lengthMilliseconds = lengthMilliseconds }

    /// Whether the lease is in force.
    func isValid(at now: MonotonicTime) -> Bool { now.nanoseconds < validUntil.load(ordering: .acquiring) }

    /// Whether a removed node may still rely on what it knew then. It learns of no change, and cannot be asked.
    /// - Parameter removed: how many nodes were removed so far.
    func mayBeHeldByRemoved(_ removed: Int, at now: MonotonicTime) -> Bool {
        removals.withLock { state in
            if removed > state.count { state = (removed, now.adding(milliseconds: settlingMilliseconds)) }
            return now < state.settled
        }
    }

    /// Nothing is relied on until a renewal that begins from now on: the clock may not tell how long ago the last one
    /// began, or what it was won with is gone.
    func end(at now: MonotonicTime) {
        ended.store(now.nanoseconds, ordering: .releasing)
        validUntil.store(0, ordering: .releasing)
    }

    /// A renewal that began at `begin` has succeeded.
    func renew(begunAt begin: MonotonicTime) {
        guard begin.nanoseconds >= ended.load(ordering: .acquiring) else { return }
        let new = begin.adding(milliseconds: lengthMilliseconds).nanoseconds
        var old = validUntil.load(ordering: .relaxed)
        while old < new {
            let (exchanged, original) = validUntil.compareExchange(
                expected: old, desired: new, ordering: .acquiringAndReleasing)
            if exchanged {
                // The lease may have ended meanwhile.
                if begin.nanoseconds < ended.load(ordering: .acquiring) { validUntil.store(0, ordering: .releasing) }
                return
            }
            old = original
        }
    }
}

/// Accounts and sessions, as a node's own copy of the directory has them: rows of a database, of which only the
/// sessions in use are in memory.
///
/// A caller makes sure first that the copy may be relied on (`requireDirectory`); what was acknowledged before that is
/// in what is read.
package struct NodeAccounts: Sendable {
    private let node: ClusterNode

    /// Those of a node that is open.
    package init(of node: ClusterNode) { self.node = node }

    /// For what makes and checks hashes of passwords.
    package var passwords: BlockingPool { node.pools.passwords }

    /// Answers questions from one snapshot of the copy.
    /// - Throws: `ClusterError.unavailable` where too many wait, this node has no copy now, or its disk fails.
    package func read<Value: Sendable>(
        _ read: @escaping @Sendable (AccountReader) throws -> Value
    ) async throws(ClusterError) -> Value {
        guard let applier = node.holdings[.directory] else {
            throw .unavailable("this node has no copy of the directory")
        }
        do {
            return try await node.pools.accounts.run { try applier.database.read { try read(AccountReader($0)) } }
        } catch is QueueFull {
            throw .unavailable("too many questions about users wait on this node")
        } catch is CancellationError {
            throw .unavailable("this node is stopping")
        } catch {
            if DataDamage.isDamage(error) {
                node.lane.eventLoop.execute { [lane = node.lane] in lane.health.damaged(.directory, error, .reading) }
            }
            throw .unavailable("reading the directory failed: \(error)")
        }
    }

    /// The session that a web auth token speaks for: from memory where it was in use lately.
    /// - Throws: what `read` throws.
    package func session(_ key: SessionKey) async throws(ClusterError) -> Session? {
        if let session = node.directory.session(key) { return session }
        return try await read { [directory = node.directory] in try directory.readSession(key, $0) }
    }
}
