import Authorization
import Cluster
import Directory
package import RecordModel

/// Who the caller is, and who others are as far as they let themselves be found.
package struct Users: Sendable {
    private let service: RecordService
    private let request: DatabaseRequest

    package init(_ service: RecordService, _ request: DatabaseRequest) {
        self.service = service
        self.request = request
    }

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
        try await service.ensureUserRecord(of: request, among: [name])
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
