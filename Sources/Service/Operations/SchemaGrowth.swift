import Admission
import Authorization
import Cluster
import Directory
import RaftCore
import RecordModel

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
