import Admission
import Authorization
import Cluster
import Directory
import RaftCore
import RecordModel
import RecordStore
import Synchronization
import Wire

// What a request may change besides records: development's schema, the keys of encrypted fields, the caller's own user
// record.
extension RecordService {
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
            let rate = growthRate(of: request.key.container, in: attempt.directory),
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
            origin: origin(of: request.requester))
        // A conflict means that somebody else changed it meanwhile: look again.
        if case .refused(let error) = try await submit(entry, by: request.deadline), error.code != .conflict {
            throw RequestFailure(error)
        }
        try await refreshDirectory()
        return true
    }

    /// Names cost bytes of the audit log.
    private static let growthTextMax = 400

    /// How often a container's saves may add to development's schema; nil where they may not.
    func growthRate(of container: String, in directory: DirectorySnapshot) -> AttemptRate? {
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
        let (key, now) = (Bytewise(container), uptime)
        if growths.decide(key, at: rate, now: now) {
            return peerExchange.rates.charge(schema.encodedSize / Self.schemaBytesPerToken, to: request)
        }
        throw .throttled(
            "saves added to the development schema of '\(container)' too often; come back after retryAfter seconds, or "
                + "import the schema",
            retryAfterSeconds: Double(growths.retryAfterMilliseconds(key, at: rate, now: now)) / 1_000)
    }

    /// Seals the encrypted values of a change. A container's first such value brings it its first key.
    func seal(_ change: inout RecordChange, in zone: ZoneKey) async throws(RequestFailure) {
        for position in change.fields.indices {
            guard case .encrypted? = change.fields[position].value, let value = change.fields[position].value else {
                continue
            }
            try await requireContainerKey(of: zone.database.container)
            change.fields[position].value = try relay(
                node.vault.seal(
                    value, container: zone.database.container,
                    place: FieldPlace(zone: zone, recordName: change.recordName, field: change.fields[position].name)))
        }
    }

    private func requireContainerKey(of container: String) async throws(RequestFailure) {
        if node.vault.currentKey(of: container) != nil { return }
        // A node that is behind must not begin a second set of keys.
        try await refreshDirectory()
        if node.vault.currentKey(of: container) != nil { return }
        let key = try relay(node.vault.newContainerKey(number: 1, container: container))
        let command = DirectoryCommand.addContainerKey(container: container, key)
        // Refused with a conflict where another node was faster.
        if case .refused(let error) = try await submit(command, by: node.deadline()), error.code != .conflict {
            throw RequestFailure(error)
        }
        try await refreshDirectory()
    }

    /// Makes the caller's own record of type `Users` where a request names it for the first time: every user has one.
    func ensureUserRecord(of request: DatabaseRequest, among names: [String]) async throws(RequestFailure) {
        guard let user = request.caller.user, !request.caller.isAdministrator, request.key.scope == .public,
            names.contains(user)
        else { return }
        // A reset of the environment takes the record along.
        let generation = request.directory.schema(request.schemaKey).generation
        // And so does the container's purge, after which another may have its name.
        let created = request.directory.containers[request.key.container] ?? 0
        let id = "\(request.key.container)/\(created)/\(request.key.environment.rawValue)/\(generation)/\(user)"
        guard !userRecords.contains(id) else { return }
        let zone = ZoneKey(database: request.key, name: ZoneKey.defaultZoneName)
        let outcome = try await request.submitGrowing(to: node.map.group(of: zone), in: self) { schema, terms in
            ModifyRecords(
                zone: zone, schemaVersion: schema.version, caller: request.caller, time: now, quota: terms,
                operations: [RecordChange(.create, user, type: RecordType.usersName)])
        }
        guard case .records(let items) = outcome else { return }
        // It exists now, or the schema has no such type or the database no room; the request itself says what is wrong
        // then.
        if case .failed(let error, _)? = items.first, error.code != .exists { return }
        userRecords.insert(id)
    }
}

/// Users whose record is known to exist; bounded, and forgotten at the end of the process.
final class KnownUserRecords: Sendable {
    private static let countMax = 100_000
    private let ids = Mutex<Set<String>>([])

    func contains(_ id: String) -> Bool { ids.withLock { $0.contains(id) } }

    func insert(_ id: String) {
        ids.withLock { ids in
            if ids.count >= Self.countMax { ids.removeAll() }
            ids.insert(id)
        }
    }
}
