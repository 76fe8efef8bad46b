import RecordModel
import ServiceClient

/// One database as the framework asks it: what a call or an operation does, without what it is called by.
struct DatabaseService: Sendable {
    var account: ContainerAccount
    var scope: CKDatabase.Scope
    /// How long it may go on.
    var times = CallTimes()
    /// When all of it has to be over; nil where nobody said, or it has not begun.
    private var end: ContinuousClock.Instant?

    init(account: ContainerAccount, scope: CKDatabase.Scope, times: CallTimes = CallTimes()) {
        self.account = account
        self.scope = scope
        self.times = times
    }

    /// The same for one call, whose time runs from `start` on.
    func begun(at start: ContinuousClock.Instant = .now) -> DatabaseService {
        guard let resource = times.resource else { return self }
        var service = self
        service.end = start + resource
        return service
    }

    /// What a page of results is cut to by the server.
    static let pageMax = Limits.recordsPerPageMax

    /// The name of the database in the protocol.
    private var name: String {
        switch scope {
        case .public: "public"
        case .private: "private"
        case .shared: "shared"
        }
    }

    var mapping: ErrorMapping {
        let configuration = try? account.configuration()
        return ErrorMapping(
            container: configuration?.container ?? account.identifier,
            isAnonymous: configuration.map {
                $0.webAuthToken == nil && $0.webAuthTokenFile == nil && $0.serverKeyFile == nil
            } ?? false)
    }

    /// Sends a request that changes nothing.
    func read(_ action: String, _ body: (inout JSONWriter) -> Void) async throws(CKError) -> JSONValue {
        var writer = JSONWriter()
        writer.object(body)
        return try await send(action, writer.bytes, idempotencyKey: nil)
    }

    /// Sends a request that changes something, which is done once however often it has to be sent.
    func write(_ action: String, _ body: [UInt8]) async throws(CKError) -> JSONValue {
        try await send(action, body, idempotencyKey: IdempotencyKeys.make())
    }

    private func send(_ action: String, _ body: [UInt8], idempotencyKey: String?) async throws(CKError) -> JSONValue {
        if Task.isCancelled { throw ErrorMapping.cancelled }
        if scope == .shared { throw .notBuilt("sharing, and with it shared databases,") }
        let (session, configuration) = try account.session()
        let limit = try limit(configuration)
        do {
            return try await session.send(
                database: name, action: action, body: body, idempotencyKey: idempotencyKey,
                patience: times.request ?? configuration.patience, limit: limit)
        } catch let failure as ServiceFailure
            where failure.code == ErrorCode.atomicError.rawValue && failure.json["records"] != nil
        {
            // Which operation failed stands in the records.
            return failure.json
        } catch {
            throw mapping.error(error)
        }
    }

    /// How long a request may take that begins now; nil for as long as its attempts take. A request whose time is none is one
    /// attempt.
    private func limit(_ configuration: ZonekeeperConfiguration) throws(CKError) -> Duration? {
        let request = times.request.flatMap { $0 > .zero ? $0 : nil }
        guard let end, let resource = times.resource else { return request }
        let rest = ContinuousClock.now.duration(to: end)
        guard rest > .zero else {
            throw CKError(
                .networkFailure,
                reason: "the operation was not done within its \(resource) (timeoutIntervalForResource)",
                details: CKErrorDetails(containerID: configuration.container))
        }
        return min(request ?? rest, rest)
    }

    /// The members of an answer that has an array.
    func members(_ key: String, of answer: JSONValue) throws(CKError) -> [JSONValue] {
        guard let members = answer[key]?.array else { throw .unreadable(key) }
        return members
    }
}

/// Gives up where the task was cancelled.
func checkCancellation() throws(CKError) {
    if Task.isCancelled { throw ErrorMapping.cancelled }
}
