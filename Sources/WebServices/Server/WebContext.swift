package import Admission
import Authorization
package import Cluster
import Directory
package import Logging
import RaftCore
import RecordModel
import RecordStore
import Wire

/// What every route needs: the node, who may administer it, and what holds callers to their limits.
package final class WebContext: Sendable {
    package let node: ClusterNode
    package let administrator: AdministratorToken
    package let metrics: Metrics
    let identity: IdentityServices
    let coordinator: Coordinator
    let usage = UsageMeter()
    let audit = AuditTrail()
    /// How many requests this node works on at once, shared fairly between containers.
    let gate: FairGate
    let bodies = BodyBudget(bytesMax: 256 << 20)
    let userRecords = KnownUserRecords()
    let watches: WatchHub
    private let follower: StoreFollower
    /// How many watches look at their stores at once: a change of leaders makes all of them look.
    let looks = FairGate(limit: WatchHub.looksMax, queueMax: WatchHub.queuedLooksMax)

    /// - Parameter logger: for requests that failed, and for what nodes tell of them.
    package init(
        node: ClusterNode, administrator: AdministratorToken, settings: EdgeSettings = EdgeSettings(), logger: Logger
    ) {
        self.node = node
        self.administrator = administrator
        metrics = Metrics()
        identity = IdentityServices(encryptionKey: node.settings.encryptionKey)
        watches = WatchHub(watchesMax: settings.watchesMax, watchesPerUserMax: settings.watchesPerUserMax)
        follower = StoreFollower(node: node, hub: watches)
        coordinator = Coordinator(node: node, rotation: identity.rotation, watches: watches, logger: logger)
        gate = FairGate(limit: settings.concurrentRequestsMax, queueMax: settings.queuedRequestsMax)
    }

    /// Begins what goes on beside the requests; the node is started.
    package func start() {
        // First: what changes before is in the first look of any watch.
        node.changes.listen { [weak watches] in watches?.hear($0) }
        coordinator.start()
        watches.start()
        follower.start()
        metrics.follow(watches)
        usage.start(self)
        audit.start(self)
    }

    /// Ends it; no more requests come.
    package func stop() async {
        follower.stop()
        watches.stop()
        await usage.stop(self)
        await audit.stop(self)
        coordinator.stop()
        await identity.shutdown()
    }

    /// Milliseconds since 1970.
    var now: Int64 { WallTime.now }

    /// Has a command applied by the directory that a request brings about by itself; this node may not know of it yet.
    func submit(_ command: DirectoryCommand, by deadline: Deadline) async throws(RequestFailure) -> DirectoryOutcome {
        try await submit(DirectoryEntry(command), by: deadline)
    }

    /// Has an entry applied by the directory; this node may not know of it yet.
    func submit(_ entry: DirectoryEntry, by deadline: Deadline) async throws(RequestFailure) -> DirectoryOutcome {
        let bytes: [UInt8]
        do throws(ClusterError) {
            bytes = try await node.router.submit(.machine(entry.encoded()), to: .directory, by: deadline)
        } catch {
            throw RequestFailure(error)
        }
        return try unpacked(bytes)
    }

    /// Has somebody's command applied by the directory and written to the audit log. When it returns, no node relies on anything
    /// older.
    func settle(
        _ command: DirectoryCommand, origin: AuditOrigin, by deadline: Deadline
    ) async throws(RequestFailure) -> DirectoryOutcome {
        let bytes: [UInt8]
        do throws(ClusterError) {
            bytes = try await node.changeDirectory(DirectoryEntry(command, origin: origin), by: deadline)
        } catch {
            throw RequestFailure(error)
        }
        return try unpacked(bytes)
    }

    func refreshDirectory() async throws(RequestFailure) {
        do throws(ClusterError) {
            try await node.refreshDirectory()
        } catch {
            throw RequestFailure(error)
        }
    }

    /// Has this node learn what was changed, where it can: a change that is made must not be hidden behind a node that lags.
    func catchUp() async {
        do throws(RequestFailure) { try await refreshDirectory() } catch {}
    }

    /// The schema as this node knows it; version 0 and empty where none was imported.
    func schema(_ key: SchemaKey) -> VersionedSchema {
        node.directory.snapshot.schemas[key] ?? VersionedSchema(version: 0, schema: Schema())
    }

    func submit(
        _ command: ShardCommand, to group: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) -> [UInt8] {
        do throws(ClusterError) {
            return try await node.router.submit(GroupCommand(command), to: group, by: deadline)
        } catch {
            throw RequestFailure(error)
        }
    }

    func read(_ request: ShardRead, from group: GroupID, by deadline: Deadline) async throws(RequestFailure)
        -> ReadAnswer
    {
        let answer: [UInt8]
        do throws(ClusterError) {
            answer = try await node.router.read(request.encoded(), from: group, by: deadline)
        } catch {
            throw RequestFailure(error)
        }
        return try unpacked(answer)
    }

    /// Whether the directory holds a newer schema than the one at hand; then this node has it now.
    func isOutdated(
        _ schema: VersionedSchema, _ key: SchemaKey
    ) async throws(RequestFailure) -> Bool {
        try await refreshDirectory()
        return self.schema(key).version > schema.version
    }
}

/// Decodes what another part of the cluster encoded.
func unpacked<Value: WireDecodable>(_ bytes: [UInt8], as _: Value.Type = Value.self) throws(RequestFailure) -> Value {
    do throws(WireError) {
        return try Value(decoding: bytes)
    } catch {
        throw RequestFailure(.internalError, "a shard's answer cannot be read: \(error)")
    }
}

extension RequestFailure {
    init(_ error: ClusterError) {
        switch error {
        case .unavailable(let reason):
            self.init(ServiceError(.tryAgainLater, "nothing was done: \(reason)", retryAfterSeconds: 1))
        case .outcomeUnknown(let reason):
            self.init(
                ServiceError(
                    .tryAgainLater,
                    "outcome unknown: \(reason). Send it again with the same Idempotency-Key, or look before you do",
                    retryAfterSeconds: 1))
        case .failed(let reason):
            self.init(.internalError, reason)
        case .tooLarge(let size):
            switch size.part {
            case .request:
                self.init(
                    .badRequest,
                    "nothing was done: the request comes to \(size.bytes) bytes, at most \(size.bytesMax) are possible; send less "
                        + "in one request", status: 413)
            case .answer:
                self.init(
                    .badRequest,
                    "what was asked for comes to \(size.bytes) bytes, which is too large for one answer; ask for less of it. What was "
                        + "to be changed is changed")
            }
        }
    }
}

/// What one node's edge is held to, whatever the container.
package struct EdgeSettings: Sendable {
    /// Requests that the node works on at once.
    package var concurrentRequestsMax = 1_024
    /// Requests of one container that may wait for their turn.
    package var queuedRequestsMax = 1_024
    /// Watches of preferences at once; never more than three quarters of the connections that the node takes.
    package var watchesMax = 3_072
    /// Watches at once of one user's preferences in a container's environment.
    package var watchesPerUserMax = 32

    package init() {}
}
