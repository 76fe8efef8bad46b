package import Admission
package import Cluster
package import Directory
package import Logging
import RaftCore
package import RecordModel
package import Telemetry

/// Every operation of the product on one node: who asks, how fast, how much, under which schema, on which shards, and
/// what is tried again.
///
/// Operations are calls with typed input and result. Nothing here knows of HTTP, nor of Raft below the router; time,
/// randomness and tasks come from the node's platform, so that the simulator runs the same code.
package final class RecordService: Sendable {
    /// The node that runs the operations: its platform, router and copy of the directory.
    package let node: ClusterNode
    /// Accounts and sessions.
    package let accounts: Accounts
    /// Makes and opens web auth tokens; nil on a node without an encryption key, where nobody can sign in.
    package let signer: SessionSigner?
    /// The directory and shards.
    package let cluster: ClusterCalls
    /// Requests whose credentials were wrong, by address.
    package let failedAuthentications: FailedAuthentications
    /// Who asks.
    package let identification: CallerIdentification
    /// What this node and the others ask and tell each other: rates, signatures, sessions, changed stores.
    package let peerExchange: PeerExchange
    /// How much there may be.
    package let quotas: DatabaseQuotas
    /// Counts the bytes that requests for public data carry in a month.
    package let usage: UsageMeter
    /// Gathers what was refused for lack of permission, and writes it to the audit log once a second.
    package let audit: AuditTrail
    /// Which tokens and keys are used.
    package let tokenUses: TokenUses
    /// The tasks on this node that wait for a store to change.
    package let watches: WatchHub
    /// What users uploaded and no record has.
    package let unsavedUploads: UnsavedUploads
    /// Tells webhooks of changes.
    package let webhooks: WebhookDeliverer
    /// What this node remembers of its requests.
    package let requests: RequestJournal
    /// What it watches of itself.
    package let alerts: AlertWatch
    let jobs: JobRunner
    /// Removes subscriptions of users who were deleted.
    package let deletedSubscribers: DeletedSubscribers
    /// What is tried again.
    let attempts: Attempts
    let schemaGrowth: SchemaGrowth
    let signIns = SignInAttempts()
    /// How many requests this node works on at once, shared fairly between containers.
    let gate: FairGate
    /// How many watches look at their stores at once: a change of leaders makes all of them look.
    let looks = FairGate(limit: WatchHub.looksMax, queueMax: WatchHub.queuedLooksMax)
    let userRecords = KnownUserRecords()
    private let follower: StoreFollower

    /// - Parameter logger: for requests that failed, and for what nodes tell of them.
    package init(node: ClusterNode, settings: ServiceSettings = ServiceSettings(), logger: Logger) {
        self.node = node
        accounts = Accounts(of: node)
        signer = node.settings.encryptionKey.map { SessionSigner(clusterKey: $0) }
        cluster = ClusterCalls(of: node)
        failedAuthentications = FailedAuthentications { node.platform.clock.now.nanoseconds }
        identification = CallerIdentification(
            node: node, cluster: cluster, accounts: accounts, signer: signer, failures: failedAuthentications)
        watches = WatchHub(
            platform: node.platform, watchesMax: settings.watchesMax, watchesPerUserMax: settings.watchesPerUserMax)
        follower = StoreFollower(node: node, hub: watches)
        quotas = DatabaseQuotas(on: node, logger: logger)
        attempts = Attempts(node: node, cluster: cluster, quotas: quotas)
        usage = UsageMeter(on: node, quotas: quotas)
        audit = AuditTrail(platform: node.platform)
        tokenUses = TokenUses(platform: node.platform)
        webhooks = WebhookDeliverer(platform: node.platform, settings: settings.webhooks, logger: logger)
        requests = RequestJournal(platform: node.platform, bytesMax: settings.requestLogBytesMax)
        alerts = AlertWatch(platform: node.platform)
        jobs = JobRunner(platform: node.platform, resultBytesMax: settings.jobResultBytesMax)
        deletedSubscribers = DeletedSubscribers(platform: node.platform, logger: logger)
        unsavedUploads = UnsavedUploads(uploadsMax: node.settings.assets.uploadsMax)
        peerExchange = PeerExchange(
            node: node, signer: signer, watches: watches, unsavedUploads: unsavedUploads, logger: logger)
        schemaGrowth = SchemaGrowth(on: node, rates: peerExchange.rates)
        gate = FairGate(
            limit: settings.concurrentRequestsMax, queueMax: settings.queuedRequestsMax, processors: node.processors)
    }

    /// Begins what goes on beside the requests; the node is started.
    package func start() {
        // First: what changes before is in the first look of any watch.
        node.changes.listen { [weak watches] in watches?.hear($0) }
        peerExchange.start { [weak self] inquiry in
            guard let self else { return nil }
            return await NodeInquiries(service: self).answer(to: inquiry)
        }
        watches.start()
        follower.start()
        deletedSubscribers.start(self)
        usage.start()
        audit.start(self)
        tokenUses.start(self)
    }

    /// Ends it; no more requests come.
    package func stop() async {
        follower.stop()
        deletedSubscribers.stop()
        jobs.stop()
        await webhooks.stop()
        watches.stop()
        await usage.stop()
        await audit.stop(self)
        tokenUses.stop()
        peerExchange.stop()
    }

    /// Milliseconds since 1970.
    package var now: Int64 { node.platform.clock.wallMilliseconds }

    /// `now`, where something is refused by it.
    /// - Throws: `TRY_AGAIN_LATER` while the node's clock is known to be wrong.
    package func trustedNow() throws(RequestFailure) -> Int64 {
        if let problem = node.clockProblem { throw RequestFailure(ClusterError.unavailable(problem)) }
        return now
    }

    /// What a judgement by the node's clock comes to.
    /// - Throws: what `judge` throws; but `TRY_AGAIN_LATER` while the node's clock is known to be wrong, and in
    ///   place of a refusal while it may be.
    package func judgedByClock<Value>(
        _ judge: (Int64) throws(RequestFailure) -> Value
    ) throws(RequestFailure) -> Value {
        let now = try trustedNow()
        do throws(RequestFailure) {
            return try judge(now)
        } catch {
            if let doubt = node.clockDoubt { throw RequestFailure(ClusterError.unavailable(doubt)) }
            throw error
        }
    }

    /// Nanoseconds of the node's monotonic clock.
    package var uptime: UInt64 { node.platform.clock.now.nanoseconds }

    /// Bytes that nobody can guess.
    package func randomBytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: node.platform.random()) }
    }

    /// The hexadecimal digits of so many bytes that nobody can guess.
    package func randomHex(bytes: Int) -> String { Hex.encode(randomBytes(bytes)) }

    /// Hashes a new password, away from event loops.
    /// - Throws: `BAD_REQUEST` for one that is too short or too long, `TRY_AGAIN_LATER` where too many wait.
    func hash(ofPassword password: String) async throws(RequestFailure) -> PasswordHash {
        try await accounts.hash(of: password, salt: randomBytes(PasswordHasher.saltBytes))
    }

    /// An id that nothing else has, ordered by time; its text is good for a name.
    package func newID() -> UUIDv7 { node.platform.newID(at: now) }

    /// What seals and signs what clients carry from one request to another, on whichever node they come to.
    /// - Throws: `TRY_AGAIN_LATER` while the cluster has none: in the first moments of its life, or while one of its
    ///   nodes runs a build that does not know it.
    package func requireSecret() async throws(RequestFailure) -> ClusterSecret {
        if let secret = node.directory.snapshot.secret { return secret }
        try await cluster.refreshDirectory()
        if let secret = node.directory.snapshot.secret { return secret }
        throw .tryAgain(
            "the cluster's secret is not made yet: that needs feature level \(FeatureLevel.containerDeletion), which comes into "
                + "force once every node runs this build; see `zonekeeper cluster status`")
    }

    /// - Throws: `INTERNAL_ERROR` where the node has no encryption key.
    func requireSigner() throws(RequestFailure) -> SessionSigner {
        guard let signer else {
            throw RequestFailure(
                .internalError,
                "nobody can sign in: this node has no encryption key. Start it with --encryption-key-file, the same on all nodes"
            )
        }
        return signer
    }
}

/// The time by which a client is answered, whatever becomes of its request.
package typealias Deadline = Cluster.Deadline

// The node.
extension RecordService {
    /// What the node counts and times.
    package var metrics: MetricsRegistry { node.settings.metrics }
    /// What records the traces of its requests; nil: nothing does.
    package var tracer: NodeTracer? { node.settings.tracer }

    /// What the node and its watches counted, as lines of Prometheus's text form.
    package func metricLines() async -> [String] { await NodeMetrics.lines(of: node) + watches.lines + gate.lines }

    /// Whether a restore is under way.
    package var isRestoring: Bool { node.isRestoring }

    /// Why the node cannot serve, in words; nil if it can.
    package func obstacle() async -> String? { node.obstacle(await node.status()) }

    /// The directory as this node has it.
    package var directory: DirectorySnapshot { node.directory.snapshot }

    /// The schema as this node knows it; version 0 and empty where none was imported.
    package func schema(_ key: SchemaKey) -> VersionedSchema { node.directory.snapshot.schema(key) }

    /// For one question to the cluster, from now on.
    package func deadline() -> Deadline { node.deadline() }

    /// Logs a request that failed, here and on every node that had a part in it.
    package func report(_ id: String, _ text: String) {
        peerExchange.report(RequestTrace.current ?? RequestTrace(id: id), text)
    }
}

extension NodePlatform {
    /// An id that nothing else has, ordered by time.
    /// - Parameter milliseconds: the time, since 1970.
    func newID(at milliseconds: Int64) -> UUIDv7 { UUIDv7(milliseconds: milliseconds, random: (random(), random())) }
}

/// What one node takes on at once, whatever the container.
package struct ServiceSettings: Sendable {
    /// Requests that the node works on at once.
    package var concurrentRequestsMax = 1_024
    /// Requests of one container that may wait for their turn.
    package var queuedRequestsMax = 1_024
    /// Watches of preferences and notifications at once; never more than three quarters of the connections that the
    /// node takes.
    package var watchesMax = 1_000_000
    /// Watches at once of one user's preferences in a container's environment.
    package var watchesPerUserMax = 32
    /// What the log of requests takes in memory, in bytes: some 35,000 requests.
    package var requestLogBytesMax = 16 << 20
    /// What one result of a job may come to, in bytes.
    package var jobResultBytesMax = JobLimits.resultBytesMax
    /// Where deliveries to webhooks may go.
    package var webhooks = WebhookSettings()

    package init() {}
}
