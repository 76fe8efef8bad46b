import Admission
import Authorization
import Cluster
import Directory
import RaftCore
import RecordModel
import RecordStore

/// What one try of an operation is made under: the directory at one moment.
struct Attempt: Sendable {
    let directory: DirectorySnapshot
    let schema: VersionedSchema
    /// Whether the ledger has no more for the database: what does not fit now is over its quota.
    let isOverQuota: Bool
}

/// What came of one try.
enum Tried<Value: Sendable>: Sendable {
    case done(Value)
    /// Something is wrong under the schema at hand. That is believed once the directory confirms that it is the newest.
    case fault(RequestFailure)
    /// The shard holds another version of the schema.
    case needsSchema(installed: UInt64, GroupID)
    /// The shard lacks quota under the terms that it was sent, or knows newer ones.
    case needsAllotment(QuotaNeed, QuotaTerms, DatabaseKey, GroupID)
    /// What the try was made under has changed, and the operation has seen to it.
    case outdated

    /// The same try, where it is done with what is made of its value.
    func map<Other: Sendable>(
        _ transform: (Value) async throws(RequestFailure) -> Other
    ) async throws(RequestFailure) -> Tried<Other> {
        switch self {
        case .done(let value): .done(try await transform(value))
        case .fault(let failure): .fault(failure)
        case .needsSchema(let installed, let group): .needsSchema(installed: installed, group)
        case .needsAllotment(let need, let terms, let database, let group):
            .needsAllotment(need, terms, database, group)
        case .outdated: .outdated
        }
    }
}

/// Tries operations until they are done: the one place that decides what of a request is tried again. Where a group's
/// leader is, and that it changed, is the router's business (`Cluster/Routing`).
struct Attempts: Sendable {
    let node: ClusterNode
    let cluster: ClusterCalls
    let quotas: DatabaseQuotas

    private static let attemptsMax = 16

    /// Tries an operation until it is done. Nothing was done by a try that is followed by another.
    /// - Parameter directory: what the first try is made under, where the request has it; later ones take it anew.
    /// - Throws: `TRY_AGAIN_LATER` where schema or quota keep changing.
    func run<Value: Sendable>(
        under key: SchemaKey, in directory: DirectorySnapshot? = nil, by deadline: Deadline,
        _ operation: (Attempt) async throws(RequestFailure) -> Tried<Value>
    ) async throws(RequestFailure) -> Value {
        var directory = directory ?? node.directory.snapshot
        var isOverQuota = false
        for _ in 0..<Self.attemptsMax {
            let schema = directory.schema(key)
            let attempt = Attempt(directory: directory, schema: schema, isOverQuota: isOverQuota)
            switch try await operation(attempt) {
            case .done(let value): return value
            case .fault(let failure): guard try await cluster.isOutdated(schema, key) else { throw failure }
            case .needsSchema(let installed, let group):
                try await reconcile(key, installed: installed, on: group, by: deadline)
            case .needsAllotment(let need, let terms, let database, let group):
                isOverQuota = try await !quotas.allot(need, under: terms, of: database, to: group, by: deadline)
            case .outdated: break
            }
            directory = node.directory.snapshot
        }
        throw .nothingDone("the schema or the quota kept changing meanwhile")
    }

    /// Asks a shard under the schema this node knows, and brings the two to the same version where they differ.
    /// - Parameter request: a fault that it throws is believed under the newest schema only.
    func read(
        _ key: SchemaKey, in directory: DirectorySnapshot? = nil, from group: GroupID, by deadline: Deadline,
        _ request: (VersionedSchema) throws(ServiceError) -> ShardRead
    ) async throws(RequestFailure) -> ShardAnswer {
        try await run(under: key, in: directory, by: deadline) { attempt throws(RequestFailure) in
            let read: ShardRead
            do throws(ServiceError) { read = try request(attempt.schema) } catch {
                return .fault(RequestFailure(error))
            }
            switch try await cluster.read(read, from: group, by: deadline) {
            case .found(let answer): return .done(answer)
            case .refused(let error): throw RequestFailure(error)
            case .needsSchema(let installed): return .needsSchema(installed: installed, group)
            }
        }
    }

    /// Asks the shards that may hold a part of a database, all at once; the answers are in the order of the shards.
    func readAll(
        of database: DatabaseKey, by deadline: Deadline,
        _ request: @escaping @Sendable (GroupID, VersionedSchema) throws(ServiceError) -> ShardRead
    ) async throws(RequestFailure) -> [(group: GroupID, answer: ShardAnswer)] {
        let key = SchemaKey(of: database)
        let groups = cluster.groups(of: database)
        let answers = await withTaskGroup(of: (Int, Result<ShardAnswer, RequestFailure>).self) { tasks in
            for (position, group) in groups.enumerated() {
                tasks.addTask {
                    do throws(RequestFailure) {
                        let answer = try await read(key, from: group, by: deadline) {
                            schema throws(ServiceError) in try request(group, schema)
                        }
                        return (position, .success(answer))
                    } catch {
                        return (position, .failure(error))
                    }
                }
            }
            return await tasks.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }
        }
        return try answers.map { position, answer throws(RequestFailure) in (groups[position], try answer.get()) }
    }

    /// A zone as its shard has it; nil if there is none of the name.
    func zoneState(
        _ zone: ZoneKey, by deadline: Deadline
    ) async throws(RequestFailure) -> ZoneState? {
        let key = SchemaKey(of: zone.database)
        let answer = try await read(key, from: node.map.group(of: zone), by: deadline) { schema in
            .zone(zone, schemaVersion: schema.version)
        }
        return try unpacked(answer.bytes, as: ShardList<ZoneState>.self).elements.first
    }

    /// Brings a shard's schema and this node's to the same version.
    /// - Parameter installed: the version that the shard holds.
    private func reconcile(
        _ key: SchemaKey, installed: UInt64, on group: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) {
        let known = node.directory.snapshot.schema(key)
        guard installed < known.version else { return try await cluster.refreshDirectory() }
        let install = InstallSchema(
            container: key.container, environment: key.environment, version: known.version,
            generation: known.generation, schema: known.schema)
        let outcome = try await cluster.submit(.record(.installSchema(install)), to: group, by: deadline)
        if case .refused(let error) = outcome { throw RequestFailure(error) }
    }
}

extension Attempt {
    /// What a command that may grow says of its database's quota.
    func quotaTerms(of request: DatabaseRequest) -> QuotaTerms {
        let (cap, epoch) = request.service.quotas.quota(of: request.key, in: directory)
        return QuotaTerms(epoch: epoch, isFinal: isOverQuota, limit: cap)
    }

    /// How many earlier versions of each record a command leaves in the container.
    /// - Throws: `TRY_AGAIN_LATER` while the group's level lacks them, so that no version is missing in between.
    func versionsKept(for request: DatabaseRequest, on group: GroupID) async throws(RequestFailure) -> UInt64 {
        let kept = directory.limits(of: request.key.container).versionsKept
        if kept > 0 {
            try await request.service.node.require(.versions, for: "earlier versions of records need", in: group)
        }
        return UInt64(kept)
    }
}

extension Tried<RecordOutcome> {
    /// What came of a command that is submitted once.
    /// - Parameter terms: those that the command carries.
    init(
        _ command: RecordCommand, _ terms: QuotaTerms? = nil, of request: DatabaseRequest, on group: GroupID
    ) async throws(RequestFailure) {
        switch try await request.service.cluster.submit(.record(command), to: group, by: request.deadline) {
        case .needsSchema(let installed): self = .needsSchema(installed: installed, group)
        case .needsAllotment(let need):
            guard let terms else { throw .otherAnswer }
            self = .needsAllotment(need, terms, request.key, group)
        case let outcome: self = .done(outcome)
        }
    }
}

extension DatabaseRequest {
    /// Tries an operation until it is done.
    /// - Throws: as `Attempts.run`.
    func attempt<Value: Sendable>(
        _ operation: (Attempt) async throws(RequestFailure) -> Tried<Value>
    ) async throws(RequestFailure) -> Value {
        try await service.attempts.run(under: schemaKey, in: directory, by: deadline, operation)
    }

    /// Asks a zone's shard under the schema that the node knows.
    func read(
        _ zone: ZoneKey, _ read: (VersionedSchema) throws(ServiceError) -> ShardRead
    ) async throws(RequestFailure) -> ShardAnswer {
        try await service.attempts.read(
            schemaKey, in: directory, from: service.node.map.group(of: zone), by: deadline, read)
    }

    /// Judges the request by the schema that the node knows; a fault is believed under the newest schema only.
    func judge<Value: Sendable>(
        _ judge: (Attempt) throws(ServiceError) -> Value
    ) async throws(RequestFailure) -> Value {
        try await attempt { attempt throws(RequestFailure) in
            do throws(ServiceError) { return .done(try judge(attempt)) } catch { return .fault(RequestFailure(error)) }
        }
    }

    /// Has a command applied that may make the database grow.
    /// - Parameter command: makes it for a schema and terms.
    /// - Returns: the outcome, never `needsSchema` or `needsAllotment`.
    func submitGrowing(
        to group: GroupID, _ command: (VersionedSchema, QuotaTerms) -> ModifyRecords
    ) async throws(RequestFailure) -> RecordOutcome {
        try await attempt { attempt throws(RequestFailure) in
            let terms = attempt.quotaTerms(of: self)
            return try await Tried(.modifyRecords(command(attempt.schema, terms)), terms, of: self, on: group)
        }
    }
}

/// What saves add to development's schema. It bounds how often, and charges for it.
final class SchemaGrowth: Sendable {
    private let node: ClusterNode
    private let cluster: ClusterCalls
    private let rates: RateExchange
    /// Saves that added something, by container.
    private let growths = AttemptLimiter<Bytewise>(keysMax: 10_000)

    init(on node: ClusterNode, rates: RateExchange) {
        self.node = node
        self.rates = rates
        cluster = ClusterCalls(of: node)
    }

    /// Adds the types and fields that operations need and the schema lacks, in development only, for signed-in callers,
    /// and where the container's saves may.
    /// - Parameter isPaid: whether the request has paid for a growth; one pays for all of its attempts.
    /// - Returns: whether the schema is another now, or may be.
    /// - Throws: `THROTTLED` where the container's saves added too often.
    func extend(
        _ attempt: Attempt, by operations: [RecordOperation], for request: DatabaseRequest, _ isPaid: inout Bool
    ) async throws(RequestFailure) -> Bool {
        let schema = attempt.schema
        guard request.key.environment == .development, request.caller.user != nil,
            let rate = rate(of: request.key.container, in: attempt.directory),
            SchemaExtension.isNeeded(by: operations, in: schema.schema)
        else { return false }
        // Before the work is done, and also where nothing comes of it.
        if !isPaid { try payForGrowth(of: schema.schema, by: request, at: rate) }
        isPaid = true
        guard let extended = SchemaExtension.extended(schema.schema, by: operations, scope: request.key.scope) else {
            return false
        }
        let growth = String(SchemaExtension.additions(to: schema.schema, in: extended).prefix(Self.growthTextMax))
        let entry = DirectoryEntry(
            .setSchema(request.schemaKey, expectedVersion: schema.version, extended, growth: growth),
            origin: request.requester.origin(at: node.platform.clock.wallMilliseconds))
        // A conflict means that somebody else changed it meanwhile: look again.
        if case .refused(let error) = try await cluster.submit(entry, by: request.deadline), error.code != .conflict {
            throw RequestFailure(error)
        }
        try await cluster.refreshDirectory()
        return true
    }

    /// Names cost bytes of the audit log.
    private static let growthTextMax = 400

    /// How often a container's saves may add to development's schema; nil where they may not.
    func rate(of container: String, in directory: DirectorySnapshot) -> AttemptRate? {
        let perMinute = Int(directory.limits(of: container)[.schemaGrowthsPerMinute])
        return perMinute > 0 ? AttemptRate(perMinute: perMinute, burst: perMinute) : nil
    }

    /// A growth goes through the whole schema, here and on every replica, and is sent as a whole: it costs a token of
    /// the container's rate for so many bytes.
    private static let schemaBytesPerToken = 10_000

    private func payForGrowth(
        of schema: Schema, by request: DatabaseRequest, at rate: AttemptRate
    ) throws(RequestFailure) {
        let container = request.key.container
        let (key, now) = (Bytewise(container), node.platform.clock.now.nanoseconds)
        if growths.decide(key, at: rate, now: now) {
            return rates.charge(schema.encodedSize / Self.schemaBytesPerToken, to: request)
        }
        throw .throttled(
            "saves added to the development schema of '\(container)' too often; come back after retryAfter seconds, or "
                + "import the schema",
            retryAfterSeconds: Double(growths.retryAfterMilliseconds(key, at: rate, now: now)) / 1_000)
    }
}
