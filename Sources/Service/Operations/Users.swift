import Authorization
import Cluster
import Directory
package import RecordModel
import RecordStore
import Synchronization

/// Who the caller is, and who others are as far as they let themselves be found.
package struct Users: Sendable {
    private let request: DatabaseRequest
    private var service: RecordService { request.service }

    package init(_ request: DatabaseRequest) { self.request = request }

    /// - Throws: `AUTHENTICATION_REQUIRED` for an anonymous caller, `ACCESS_DENIED` for the administrator, who is no
    ///   user.
    package func requireUser() throws(RequestFailure) {
        guard !request.caller.isAdministrator else {
            throw .accessDenied("the administrator is no user; see `zonekeeper user list`")
        }
        guard request.caller.user != nil else {
            throw RequestFailure(.authenticationRequired, "request needs authorization")
        }
    }

    /// The caller, with the names that the account has, and the user record that everybody has.
    package func caller() async throws(RequestFailure) -> UserIdentity {
        try requireUser()
        let name = request.caller.user ?? ""
        try await service.userRecords.ensure(of: request, among: [name])
        let account = try await service.accounts.account(withUserRecordName: name, in: request.key.container)
        var identity = UserIdentity(
            userRecordName: name, givenName: account?.givenName, familyName: account?.familyName)
        identity.isDiscoverable = account?.isDiscoverable ?? false
        return identity
    }

    /// The users that a client asks for: the caller itself, or those who may be discovered. One who cannot be found is
    /// left out, whether there is such a user or not.
    package func discover(_ lookups: [LookupInfo]) async throws(RequestFailure) -> [UserIdentity] {
        try requireUser()
        let accounts = try await service.accounts.accounts(lookups, in: request.key.container)
        return zip(lookups, accounts).compactMap { info, account in account.flatMap { identity($0, info) } }
    }

    private func identity(_ account: Account, _ info: LookupInfo) -> UserIdentity? {
        let container = request.key.container
        let name = Account.userRecordName(accountID: account.id, container: container)
        guard account.isDiscoverable || name == request.caller.user else { return nil }
        return UserIdentity(
            userRecordName: name, givenName: account.givenName, familyName: account.familyName, lookupInfo: info)
    }
}

/// Users whose record is known to exist; bounded, and forgotten at the end of the process.
final class KnownUserRecords: Sendable {
    private static let countMax = 100_000
    private let ids = Mutex<Set<String>>([])

    /// Makes the caller's own record of type `Users` where a request names it for the first time: every user has one.
    func ensure(of request: DatabaseRequest, among names: [String]) async throws(RequestFailure) {
        guard let user = request.caller.user, !request.caller.isAdministrator, request.key.scope == .public,
            names.contains(user)
        else { return }
        // A reset of the environment takes the record along.
        let generation = request.directory.schema(request.schemaKey).generation
        // And so does the container's purge, after which another may have its name.
        let created = request.directory.containers[request.key.container] ?? 0
        let id = "\(request.key.container)/\(created)/\(request.key.environment.rawValue)/\(generation)/\(user)"
        guard !ids.withLock({ $0.contains(id) }) else { return }
        let zone = ZoneKey(database: request.key, name: ZoneKey.defaultZoneName)
        let service = request.service
        let outcome = try await request.submitGrowing(to: service.node.map.group(of: zone)) { schema, terms in
            ModifyRecords(
                zone: zone, schemaVersion: schema.version, caller: request.caller, time: service.now, quota: terms,
                operations: [RecordChange(.create, user, type: RecordType.usersName)])
        }
        guard case .records(let items) = outcome else { return }
        // It exists now, or the schema has no such type or the database no room; the request itself says what is wrong
        // then.
        if case .failed(let error, _)? = items.first, error.code != .exists { return }
        ids.withLock { ids in
            if ids.count >= Self.countMax { ids.removeAll() }
            ids.insert(id)
        }
    }
}
