import RecordModel
import Service

/// `users/...`: who the caller is, and who others are as far as they let themselves be found.
struct UserRoutes {
    let call: DatabaseCall

    private var users: Users { Users(call.request) }

    /// `GET users/caller`.
    func caller() async throws(RequestFailure) -> Reply {
        let identity = try await users.caller()
        return Reply { writer in
            writer.identityMembers(identity)
            writer.member("discoverable", identity.isDiscoverable)
            writer.array("users") { $0.identity(identity) }
        }
    }

    /// `GET users/current`, the older form.
    func current() async throws(RequestFailure) -> Reply {
        let identity = try await users.caller()
        return Reply { $0.legacyUserMembers(identity) }
    }

    /// `POST users/discover`. One who cannot be found is left out, whether there is such a user or not.
    func discover() async throws(RequestFailure) -> Reply {
        if call.isGet { return try contacts() }
        try users.requireUser()
        let form = try call.form(UsersDiscoverRequest.self)
        let identities = try await users.discover(form.lookupInfos)
        return Reply { $0.array("users") { writer in for identity in identities { writer.identity(identity) } } }
    }

    /// `POST users/lookup/email`, an older form.
    func lookUpByEmail() async throws(RequestFailure) -> Reply {
        try await legacy { form throws(ServiceError) in
            try form.emailAddresses().map { LookupInfo(emailAddress: $0) }
        }
    }

    /// `POST users/lookup/id`, an older form.
    func lookUpByID() async throws(RequestFailure) -> Reply {
        try await legacy { form throws(ServiceError) in
            try form.userRecordNames().map { LookupInfo(userRecordName: $0) }
        }
    }

    /// `GET users/discover` and `GET users/lookup/contacts`: the discoverable users among the caller's contacts. There
    /// is no address book here, so there are none.
    func contacts() throws(RequestFailure) -> Reply {
        try users.requireUser()
        return Reply { $0.array("users") { _ in } }
    }

    private func legacy(
        _ lookups: (UsersLookupRequest) throws(ServiceError) -> [LookupInfo]
    ) async throws(RequestFailure) -> Reply {
        try users.requireUser()
        let form = try call.form(UsersLookupRequest.self)
        let asked = try relay(lookups(form))
        let identities = try await users.discover(asked)
        return Reply { writer in
            writer.array("users") { writer in
                for var identity in identities {
                    // The caller knows the address where it asked by it; nobody else may learn it.
                    identity.lookupInfo?.userRecordName = nil
                    writer.legacyUser(identity)
                }
            }
        }
    }
}
