import Admission
package import Cluster
import Directory
package import KeyValueStore
package import RaftCore
package import RecordModel

/// One user's preferences in a container's environment.
package struct Preferences: WatchedFeed {
    /// The service of the node that was asked.
    package let service: RecordService
    /// The container, the environment and the user whose preferences these are.
    package let store: StoreKey
    /// Whether values of INT64, DOUBLE and TIMESTAMP come as strings.
    package var numbersAsStrings = false

    package init(_ service: RecordService, _ store: StoreKey) {
        self.service = service
        self.store = store
    }

    /// As limits, logs and events name what is watched.
    package var name: String { "preferences" }
    /// The name of a page in a stream of events.
    package var event: String { "changes" }
    /// As the audit log names the request.
    package var action: String { "kv/watch" }
    /// The group that holds the store.
    package var group: GroupID { store.home.home(in: service) }

    /// The values of some keys, as JSON.
    package func get(_ keys: [String], by deadline: Deadline) async throws(RequestFailure) -> [UInt8] {
        try await answer(to: .get(keys: keys), by: deadline).bytes
    }

    /// Some of the keys and their values, as JSON.
    package func list(after key: String?, by deadline: Deadline) async throws(RequestFailure) -> [UInt8] {
        try await answer(to: .list(after: key), by: deadline).bytes
    }

    /// What the store holds and may hold, as JSON.
    package func usage(by deadline: Deadline) async throws(RequestFailure) -> [UInt8] {
        try await answer(to: .usage, by: deadline).bytes
    }

    /// A page of the store's feed.
    /// - Throws: `BAD_REQUEST` for a token that cannot be followed, with why.
    package func changes(
        since token: String?, limit: Int, by deadline: Deadline
    ) async throws(RequestFailure) -> ShardAnswer {
        var since: String?
        do throws(RequestFailure) {
            since = try await SealedPosition.preferences.open(token, in: service).map { Base64.encode($0) }
        } catch {
            // The caller is to begin again, not to give up.
            if let token, KeyValueTables.isToken(token, of: store) { throw RequestFailure(KeyValueTokenExpiry.tooOld) }
            throw error
        }
        let answer = try await answer(to: .changes(since: since, limit: limit), by: deadline)
        if let expiry = answer.expiry { throw RequestFailure(expiry) }
        return answer
    }

    private func answer(
        to read: ShardRead.KeyValueRead, by deadline: Deadline
    ) async throws(RequestFailure) -> ShardAnswer {
        try await service.cluster.answer(
            to: .keyValue(store, read, numbersAsStrings: numbersAsStrings), from: group, by: deadline)
    }

    /// What became of a batch.
    package enum Written: Sendable {
        /// The version of each write, in their order; nil for a deletion.
        case applied(versions: [ChangeTag?], usage: KeyValueUsage)
        /// Nothing was changed, because values were written meanwhile.
        case conflict([KeyValueConflict])
    }

    /// Writes for each token of the container's rate: one is looked up by its key, and written as a row and into two
    /// indexes, each of which counts as a row of a save.
    static let writesPerToken = Limits.rowsPerToken / 4

    /// Spends what a batch of so many writes costs beyond one token.
    package func pay(forWrites count: Int, of request: AdmittedRequest) {
        service.peerExchange.rates.charge(
            max(0, count - 1) / Self.writesPerToken, of: .keyValues, in: store.container, to: request)
    }

    /// Writes and deletes, all or nothing.
    /// - Parameters:
    ///   - idempotencyKey: the text of a UUID of version 7.
    ///   - device: told with the change, so that the writer knows its own.
    /// - Throws: `QUOTA_EXCEEDED` or `BAD_REQUEST` with the limit that the batch breaks.
    package func set(
        _ writes: [KeyValueCommand.Write], idempotencyKey: String?, device: String?, by deadline: Deadline
    ) async throws(RequestFailure) -> Written {
        let now = try service.trustedNow()
        let command = KeyValueCommand(
            store: store, time: now, writes: writes,
            idempotencyKey: try idempotencyKey.map { text throws(RequestFailure) in
                try service.judgedByClock { now throws(RequestFailure) in try RequestIdentity.key(text, now: now) }
            },
            device: device)
        // What can only be refused is not logged.
        if let refusal = KeyValueLimits.standard.problem(with: command) { throw RequestFailure(refusal) }
        switch try await service.cluster.submit(.keyValue(command), to: group, by: deadline, as: KeyValueOutcome.self) {
        case .applied(let versions, let usage): return .applied(versions: versions, usage: usage)
        case .refused(let refusal): throw RequestFailure(refusal)
        case .conflict(let conflicts): return .conflict(conflicts)
        }
    }
}
