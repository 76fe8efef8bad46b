// Names of Apple's begin with the framework's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation
import ServiceClient

// @unchecked: immutable; what it is made of is Sendable.
/// A container: an app's databases, and the account that reaches them.
///
/// Which cluster it is on, and who speaks, is a `ZonekeeperConfiguration`'s: the one in force for `default()` and
/// `init(identifier:)`, whenever something is asked. Where nothing is configured, everything that asks fails with
/// `badContainer`, which says what to set.
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

    /// The text for logs.
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

    /// Whether a user is signed in: `available`, or `noAccount` where no session is configured, or the server does not
    /// take it any more.
    /// - Throws: `networkUnavailable` and the like where the server cannot be asked; `badContainer` where nothing is
    ///   configured.
    public func accountStatus() async throws -> CKAccountStatus {
        let (session, configuration) = try account.session()
        guard session.hasUser || configuration.serverKeyFile != nil else { return .noAccount }
        do {
            // Asked each time: there is no other way to learn that a session has ended.
            _ = try await session.askUserRecordName()
            return .available
        } catch {
            if (error as? ServiceFailure)?.isSignedOut == true { return .noAccount }
            let mapped = publicCloudDatabase.service.mapping.error(error)
            if (error as? ServiceClientError)?.subject == .session { return .noAccount }
            throw mapped
        }
    }

    /// Whether a user is signed in; `couldNotDetermine` with the error where the server cannot be asked.
    @preconcurrency
    public func accountStatus(completionHandler: @escaping @Sendable (CKAccountStatus, (any Error)?) -> Void) {
        Callbacks.complete({ result in
            completionHandler((try? result.get()) ?? .couldNotDetermine, result.failure)
        }) {
            try await self.accountStatus()
        }
    }

    /// The ID of the user's record, the same on all devices of the user, another in other containers.
    /// - Throws: `notAuthenticated` if no user is signed in.
    public func userRecordID() async throws -> CKRecord.ID {
        try await publicCloudDatabase.service.userRecordID()
    }

    /// The ID of the user's record.
    @preconcurrency
    public func fetchUserRecordID(completionHandler: @escaping @Sendable (CKRecord.ID?, (any Error)?) -> Void) {
        Callbacks.complete(completionHandler) { try await self.userRecordID() }
    }
}

/// The container, and the account with which it is reached.
///
/// The default container, and those known by their name, follow the configuration in force: when the app puts another
/// user's in force, they speak for that user from then on, as on a device whose account changes.
enum ContainerAccount: Sendable, Hashable {
    /// The container of the configuration in force, which has to be of this name where there is one.
    case current(identifier: String?)
    case fixed(ServiceAccount)

    /// The container's name; nil where nothing is configured.
    var identifier: String? {
        switch self {
        case .current(let identifier): identifier ?? ZonekeeperConfiguration.current?.container
        case .fixed(let account): account.configuration.container
        }
    }

    /// The configuration to use now.
    /// - Throws: `badContainer` that says what is missing or wrong, or that another container is configured.
    func configuration() throws(CKError) -> ZonekeeperConfiguration {
        let account = try account()
        return try Result { () throws(ServiceClientError) in try account.checked() }
            .mapError { ErrorMapping(container: identifier).error($0) }.get()
    }

    /// The session of the account, and its configuration.
    func session() throws(CKError) -> (session: ServiceSession, configuration: ZonekeeperConfiguration) {
        let account = try account()
        do throws(ServiceClientError) {
            return (try account.session(), account.configuration)
        } catch {
            throw ErrorMapping(container: account.configuration.container).error(error)
        }
    }

    /// The account as it is now, whatever the app puts in force later.
    /// - Throws: as `configuration`.
    func pinned() throws(CKError) -> ContainerAccount { .fixed(try account()) }

    /// Whether another user may speak through this container after a change.
    func isConcerned(by change: AccountChange) -> Bool {
        switch change {
        case .configured: if case .current = self { true } else { false }
        case .signedOut(let changed), .signedIn(let changed): (try? session().session) === changed
        }
    }

    private func account() throws(CKError) -> ServiceAccount {
        if case .fixed(let account) = self { return account }
        let account = try Result { () throws(ServiceClientError) in try ServiceAccount.inForce() }
            .mapError { ErrorMapping(container: identifier).error($0) }.get()
        if case .current(let identifier?) = self, identifier != account.configuration.container {
            throw CKError(
                .badContainer,
                reason:
                    "this app is configured for the container '\(account.configuration.container)', not for '\(identifier)': "
                    + "use CKContainer(configuration:) to reach another",
                details: CKErrorDetails(containerID: identifier))
        }
        return account
    }
}

/// Whether a user is signed in, as `CKContainer.accountStatus()` tells it.
public enum CKAccountStatus: Int, Hashable, Sendable {
    /// The service could not be asked.
    case couldNotDetermine = 0
    /// A user is signed in: the private database can be used.
    case available = 1
    /// The system's settings deny the account.
    case restricted = 2
    /// No user is signed in: the public database can be read, nothing else.
    case noAccount = 3
    /// A user is known whose session has to be renewed.
    case temporarilyUnavailable = 4
}

/// Which of a container's databases: `CKDatabase.Scope`.
public enum CKDatabaseScope: Int, Hashable, Sendable {
    /// All users' common data.
    case `public` = 1
    /// One user's own data.
    case `private` = 2
    /// What others share with the user.
    case shared = 3
}

/// The owner name that stands for the current user.
public let CKCurrentUserDefaultName = "__defaultOwner__"

/// The older name of `CKCurrentUserDefaultName`.
@available(*, deprecated, renamed: "CKCurrentUserDefaultName")
public let CKOwnerDefaultName = "__defaultOwner__"

/// The name of the zone that every database has.
public let CKRecordZoneDefaultName = "_defaultZone"

/// The record name of a share that covers a whole zone.
public let CKRecordNameZoneWideShare = "cloudkit.zoneshare"

extension Notification.Name {
    /// Posted when another user signs in, or the user signs out. Programs that keep the user's data must reload it. Its
    /// object is nil.
    public static let CKAccountChanged = Notification.Name("CKAccountChangedNotification")
}
