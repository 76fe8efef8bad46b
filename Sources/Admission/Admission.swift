package import Authorization
package import Directory
package import RecordModel

/// What a request says of who sent it.
package struct Credentials: Hashable, Sendable {
    package var apiToken: String?
    package var webAuthToken: String?

    /// Takes `undefined`, `null` and the empty string for no token, as some clients send them.
    package init(apiToken: String?, webAuthToken: String?) {
        self.apiToken = Self.present(apiToken)
        self.webAuthToken = Self.present(webAuthToken)
    }

    private static func present(_ token: String?) -> String? {
        guard let token, !token.isEmpty, token != "undefined", token != "null" else { return nil }
        return token
    }
}

/// What a request wants to reach.
package struct Target: Hashable, Sendable {
    package var container: String
    package var environment: Environment
    /// Whether a user is needed: everything but reading and writing public data.
    package var needsUser: Bool

    package init(container: String, environment: Environment, needsUser: Bool) {
        self.container = container
        self.environment = environment
        self.needsUser = needsUser
    }
}

/// Decides who a caller is. Pure: what the directory says and the time are passed in.
package enum Admission {
    /// The caller of a request.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Throws: `AUTHENTICATION_REQUIRED` where a token is needed and none, or an expired one, was sent; `AUTHENTICATION_FAILED`
    ///   where a token is not valid here. The directory of this node may be a moment behind, so a caller asks again after a
    ///   refresh before it believes a refusal.
    package static func caller(
        with credentials: Credentials, for target: Target, in directory: DirectorySnapshot, now: Int64
    ) throws(ServiceError) -> Caller {
        guard let apiToken = credentials.apiToken else {
            throw ServiceError(
                .authenticationFailed,
                "the request has no ckAPIToken: make one with `zonekeeper token create --api --container \(target.container)`"
            )
        }
        guard let token = directory.token(withSecret: apiToken), case .api(let container, let environment) = token.kind
        else {
            throw ServiceError(.authenticationFailed, "the ckAPIToken is not known: it was never made, or was revoked")
        }
        guard container == target.container, environment == target.environment else {
            throw ServiceError(
                .authenticationFailed,
                "the ckAPIToken is for container '\(container)' (\(environment.rawValue)), the request names "
                    + "'\(target.container)' (\(target.environment.rawValue))")
        }
        guard let session = credentials.webAuthToken else {
            if target.needsUser {
                throw ServiceError(.authenticationRequired, "request needs authorization: it has no ckWebAuthToken")
            }
            return Caller(user: nil)
        }
        return Caller(user: try user(ofSession: session, container: container, in: directory, now: now))
    }

    private static func user(
        ofSession secret: String, container: String, in directory: DirectorySnapshot, now: Int64
    ) throws(ServiceError) -> String {
        guard let token = directory.token(withSecret: secret),
            case .session(let sessionContainer, let accountID, let expires) = token.kind,
            sessionContainer == container
        else {
            throw ServiceError(
                .authenticationRequired,
                "request needs authorization: the ckWebAuthToken is not known for this container, or was revoked")
        }
        guard now < expires else {
            throw ServiceError(.authenticationRequired, "request needs authorization: the ckWebAuthToken has expired")
        }
        return Account.userRecordName(accountID: accountID, container: container)
    }
}

/// The administrator's secret, of which only the hash is kept in memory.
package struct AdministratorToken: Sendable {
    private let hash: [UInt8]

    package init(secret: String) { hash = Token.hash(ofSecret: secret) }

    /// Compares hashes without stopping at the first difference.
    package func matches(_ secret: some StringProtocol) -> Bool {
        let other = Token.hash(ofSecret: secret)
        var difference: UInt8 = 0
        for (left, right) in zip(hash, other) { difference |= left ^ right }
        return difference == 0
    }
}
