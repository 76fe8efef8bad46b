public import Foundation
import ServiceClient

/// A container: an app's databases, and the account that reaches them.
///
/// Which cluster it is on, and who speaks, is a `ZonekeeperConfiguration`'s: the one in force for `default()` and
/// `init(identifier:)`, whenever something is asked. Where nothing is configured, everything that asks fails with
/// `badContainer`, which says what to set.
// @unchecked: immutable; what it is made of is Sendable.
public final class CKContainer: NSObject, @unchecked Sendable {
    let account: ContainerAccount
    /// Everybody's data.
    public let publicCloudDatabase: CKDatabase
    /// The user's own data.
    public let privateCloudDatabase: CKDatabase
    /// What others share with the user. The server does not have sharing yet: what asks this database fails with
    /// `serverRejectedRequest`.
    public let sharedCloudDatabase: CKDatabase

    init(account: ContainerAccount, times: CallTimes = CallTimes()) {
        self.account = account
        func database(_ scope: CKDatabase.Scope) -> CKDatabase {
            CKDatabase(DatabaseService(account: account, scope: scope, times: times))
        }
        publicCloudDatabase = database(.public)
        privateCloudDatabase = database(.private)
        sharedCloudDatabase = database(.shared)
    }

    private static let standard = CKContainer(account: .current(identifier: nil))

    /// The container of the configuration in force.
    public class func `default`() -> CKContainer { standard }

    /// The container of a name, such as `iCloud.com.example.app`: the one that the configuration in force is for. With
    /// another name, what asks it fails with `badContainer`.
    public convenience init(identifier containerIdentifier: String) {
        self.init(account: .current(identifier: containerIdentifier))
    }

    /// The container of a configuration, whatever is in force: for programs that speak for several users, or reach
    /// several containers.
    public convenience init(configuration: ZonekeeperConfiguration) {
        self.init(account: .fixed(ServiceAccount(configuration)))
    }

    /// The container's name; nil where nothing is configured.
    public var containerIdentifier: String? { account.identifier }

    /// The database of a scope.
    public func database(with databaseScope: CKDatabase.Scope) -> CKDatabase {
        switch databaseScope {
        case .public: publicCloudDatabase
        case .private: privateCloudDatabase
        case .shared: sharedCloudDatabase
        }
    }

    /// Runs an operation, on the private database where it needs one and has none.
    public func add(_ operation: CKOperation) {
        if let operation = operation as? CKDatabaseOperation, operation.database == nil {
            operation.database = privateCloudDatabase
        }
        CKDatabase.queue.addOperation(operation)
    }

    public override var description: String { "<CKContainer: \(containerIdentifier ?? "not configured")>" }
}

extension CKContainer {
    /// Runs `body` with this container, whose calls are made as the configuration, or else the group's, says.
    public func configuredWith<Value>(
        configuration: CKOperation.Configuration? = nil, group: CKOperationGroup? = nil,
        body: (CKContainer) throws -> Value
    ) rethrows -> Value {
        try body(configured(configuration, group))
    }

    /// Runs `body` with this container, whose calls are made as the configuration, or else the group's, says.
    public func configuredWith<Value>(
        configuration: CKOperation.Configuration? = nil, group: CKOperationGroup? = nil,
        body: (CKContainer) async throws -> Value
    ) async rethrows -> Value {
        try await body(configured(configuration, group))
    }

    private func configured(_ configuration: CKOperation.Configuration?, _ group: CKOperationGroup?) -> CKContainer {
        let times = CallTimes(configuration, group?.defaultConfiguration)
        return CKContainer(account: account, times: times.filled(from: publicCloudDatabase.configured.times))
    }
}
