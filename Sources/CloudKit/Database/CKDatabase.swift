public import Foundation

/// One of a container's databases.
///
/// Calls may be made from any thread, any number at once. An async call ends with `operationCancelled` when its task is
/// cancelled; what it had sent may have been done. Completion handlers are called on threads of the SDK.
///
/// What the server asks to be sent later, and what gets lost on the way, is sent again for as long as the
/// configuration's `patience` says; a change is done once however often it is sent.
// @unchecked: immutable; what it is made of is Sendable.
public final class CKDatabase: NSObject, @unchecked Sendable {
    /// Which database of a container.
    public typealias Scope = CKDatabaseScope

    /// What calls and operations are made with, before they begin.
    let configured: DatabaseService
    /// What a call is made with that begins now.
    var service: DatabaseService { configured.begun() }

    init(_ service: DatabaseService) { configured = service }

    /// Which of the container's databases it is.
    public var databaseScope: CKDatabase.Scope { configured.scope }

    /// Where operations run that are added to databases and containers; they hold no thread while they wait.
    static let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "zonekeeper.cloudkit.operations"
        queue.maxConcurrentOperationCount = 16
        return queue
    }()

    /// Runs an operation on this database.
    public func add(_ operation: CKDatabaseOperation) {
        operation.database = self
        Self.queue.addOperation(operation)
    }

    /// Runs `body` with this database, whose calls are made as the configuration, or else the group's, says.
    public func configuredWith<Value>(
        configuration: CKOperation.Configuration? = nil, group: CKOperationGroup? = nil,
        body: (CKDatabase) throws -> Value
    ) rethrows -> Value {
        try body(configured(configuration, group))
    }

    /// Runs `body` with this database, whose calls are made as the configuration, or else the group's, says.
    public func configuredWith<Value>(
        configuration: CKOperation.Configuration? = nil, group: CKOperationGroup? = nil,
        body: (CKDatabase) async throws -> Value
    ) async rethrows -> Value {
        try await body(configured(configuration, group))
    }

    private func configured(_ configuration: CKOperation.Configuration?, _ group: CKOperationGroup?) -> CKDatabase {
        var service = configured
        service.times = CallTimes(configuration, group?.defaultConfiguration).filled(from: service.times)
        return CKDatabase(service)
    }

    public override var description: String { "<CKDatabase: \(databaseScope)>" }
}
