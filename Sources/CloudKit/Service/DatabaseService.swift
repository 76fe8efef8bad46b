import RecordModel
import ServiceClient

/// One database as the framework asks it: what a call or an operation does, without what it is called by.
struct DatabaseService: Sendable {
    var account: ContainerAccount
    var scope: CKDatabase.Scope
    /// How long to go on while the cluster says to come back later; nil for the configuration's.
    var patience: Duration?

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
        do {
            return try await session.send(
                database: name, action: action, body: body, idempotencyKey: idempotencyKey,
                patience: patience ?? configuration.patience)
        } catch let failure as ServiceFailure
            where failure.code == ErrorCode.atomicError.rawValue && failure.json["records"] != nil
        {
            // Which operation failed stands in the records.
            return failure.json
        } catch {
            throw mapping.error(error)
        }
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
