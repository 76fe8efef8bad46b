import Authorization
import Cluster
import Directory
import RecordModel

/// `users/...`: who the caller is, and who others are as far as they let themselves be found.
struct Users {
    var context: WebContext
    var request: DatabaseRequest

    /// `GET users/caller`.
    func caller() async throws(RequestFailure) -> Reply {
        let identity = try await ownIdentity()
        return Reply { writer in
            writer.identityMembers(identity)
            writer.key("users")
            writer.array { $0.identity(identity) }
        }
    }

    /// `GET users/current`, the older form.
    func current() async throws(RequestFailure) -> Reply {
        let identity = try await ownIdentity()
        return Reply { $0.legacyUserMembers(identity) }
    }

    /// `POST users/discover`. One who cannot be found is left out, whether there is such a user or not.
    func discover() throws(RequestFailure) -> Reply {
        if request.isGet { return try contacts() }
        try requireUser()
        let form = try request.form(UsersDiscoverRequest.self)
        let identities = form.lookupInfos.compactMap { identity($0) }
        return Reply { writer in
            writer.key("users")
            writer.array { writer in for identity in identities { writer.identity(identity) } }
        }
    }

    /// `POST users/lookup/email`, an older form.
    func lookupByEmail() throws(RequestFailure) -> Reply {
        try requireUser()
        let form = try request.form(UsersLookupRequest.self)
        return legacy(
            try checked { () throws(ServiceError) in try form.emailAddresses() }.map { LookupInfo(emailAddress: $0) })
    }

    /// `POST users/lookup/id`, an older form.
    func lookupByID() throws(RequestFailure) -> Reply {
        try requireUser()
        let form = try request.form(UsersLookupRequest.self)
        return legacy(
            try checked { () throws(ServiceError) in try form.userRecordNames() }.map { LookupInfo(userRecordName: $0) }
        )
    }

    /// `GET users/discover` and `GET users/lookup/contacts`: the discoverable users among the caller's contacts. There is no
    /// address book here, so there are none.
    func contacts() throws(RequestFailure) -> Reply {
        try requireUser()
        return Reply { writer in
            writer.key("users")
            writer.array { _ in }
        }
    }

    private func legacy(_ lookups: [LookupInfo]) -> Reply {
        let identities = lookups.compactMap { identity($0) }
        return Reply { writer in
            writer.key("users")
            writer.array { writer in
                for var identity in identities {
                    // The caller knows the address where it asked by it; otherwise it is nobody's business.
                    identity.lookupInfo?.userRecordName = nil
                    writer.legacyUser(identity)
                }
            }
        }
    }

    private func checked<Value>(_ body: () throws(ServiceError) -> Value) throws(RequestFailure) -> Value {
        do throws(ServiceError) {
            return try body()
        } catch {
            throw RequestFailure(error)
        }
    }

    private func requireUser() throws(RequestFailure) {
        guard !request.caller.isAdministrator else {
            throw RequestFailure(.accessDenied, "the administrator is no user; see `zonekeeper user list`")
        }
        guard request.caller.user != nil else {
            throw RequestFailure(.authenticationRequired, "request needs authorization")
        }
    }

    /// The caller, with the names that the account has, and the user record that everybody has.
    private func ownIdentity() async throws(RequestFailure) -> UserIdentity {
        try requireUser()
        let name = request.caller.user ?? ""
        try await context.ensureUserRecord(of: request, among: [name])
        let account = context.node.directory.snapshot.account(
            withUserRecordName: name, in: request.key.container)
        return UserIdentity(userRecordName: name, givenName: account?.givenName, familyName: account?.familyName)
    }

    /// The user that a client asks for: the caller itself, or one who may be discovered.
    private func identity(_ info: LookupInfo) -> UserIdentity? {
        let directory = context.node.directory.snapshot
        let container = request.key.container
        let account =
            info.emailAddress.flatMap { directory.account(withEmail: $0) }
            ?? info.userRecordName.flatMap { directory.account(withUserRecordName: $0, in: container) }
        guard let account else { return nil }
        let name = Account.userRecordName(accountID: account.id, container: container)
        guard account.isDiscoverable || name == request.caller.user else { return nil }
        return UserIdentity(
            userRecordName: name, givenName: account.givenName, familyName: account.familyName, lookupInfo: info)
    }
}
