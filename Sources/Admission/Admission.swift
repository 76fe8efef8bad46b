package import Authorization
package import Directory
package import RecordModel

/// Decides who a caller is. Pure: what the directory says and the time are passed in.
package enum Admission {
    /// Who sends a request.
    ///
    /// - Parameters:
    ///   - session: what the web auth token of the credentials speaks for; nil without such a token.
    ///   - known: the API token of the credentials, where it was found in this same directory before.
    ///   - now: milliseconds since 1970.
    /// - Throws: `AUTHENTICATION_REQUIRED` where a user is needed and no web auth token, or an expired one, was sent;
    ///   `AUTHENTICATION_FAILED` where a token or signature is not valid here; `ACCESS_DENIED` where it is, and does
    ///   not reach what is asked for. The directory of this node may be a moment behind, so a caller asks again after a
    ///   refresh before it believes a refusal.
    package static func admit(
        _ credentials: Credentials, to target: Target, in directory: DirectorySnapshot, session: PresentedSession?,
        known: Token? = nil, now: Int64
    ) throws(ServiceError) -> Admitted {
        if let signed = credentials.signed {
            guard credentials.apiToken == nil else {
                throw ServiceError(
                    .authenticationFailed, "the request has both a signature and a ckAPIToken: send one of them")
            }
            return try admit(signed, to: target, in: directory, now: now)
        }
        let token = if let known { known } else { try apiToken(credentials, for: target, in: directory) }
        guard let session else {
            if target.needsUser {
                throw ServiceError(.authenticationRequired, "request needs authorization: it has no ckWebAuthToken")
            }
            return Admitted(caller: Caller(user: nil), apiToken: token)
        }
        let (known, accountID, use) = try session.use(in: target.container, now: now)
        let caller = caller(accountID, named: known.userRecordName, for: target, in: directory)
        var admitted = Admitted(caller: caller, apiToken: token, accountID: accountID, session: use)
        admitted.accountName = known.accountName
        return admitted
    }

    /// What can be said of a credential before the request's body is here.
    /// - Parameter signature: that of a server-to-server key, where the request has one.
    /// - Returns: the API token; nil for a key or an administrator.
    /// - Throws: `AUTHENTICATION_FAILED` where the credential is missing, unknown or another container's;
    ///   `ACCESS_DENIED` for a page that it is not for; `NOT_FOUND` where the container was deleted.
    package static func precheck(
        _ credentials: Credentials, _ signature: RequestSignature?, for target: Target, in directory: DirectorySnapshot
    ) throws(ServiceError) -> Token? {
        if credentials.administrator != nil {
            try directory.requireContainer(target.container)
            return nil
        }
        guard let signature else { return try apiToken(credentials, for: target, in: directory) }
        _ = try key(of: signature, in: directory)
        return nil
    }

    private static func key(
        of signature: RequestSignature, in directory: DirectorySnapshot
    ) throws(ServiceError) -> ServerKey {
        if let key = directory.serverKey(id: signature.keyID) { return key }
        throw ServiceError(
            .authenticationFailed,
            "the key of \(RequestSignature.keyIDHeader) is not known: it was never made, or was revoked")
    }

    /// The API token of a request, where it is valid for what the request names and for the page that sends it.
    package static func apiToken(
        _ credentials: Credentials, for target: Target, in directory: DirectorySnapshot
    ) throws(ServiceError) -> Token {
        guard let secret = credentials.apiToken else {
            throw ServiceError(
                .authenticationFailed,
                "the request has no ckAPIToken: make one with `zonekeeper token create --api --container \(target.container)`"
            )
        }
        guard let token = directory.token(withSecret: secret),
            case .api(let container, let environment, let origins, _) = token.kind
        else {
            throw ServiceError(.authenticationFailed, "the ckAPIToken is not known: it was never made, or was revoked")
        }
        guard SchemaKey(container: container, environment: environment) == target.schemaKey else {
            throw ServiceError(
                .authenticationFailed,
                "the ckAPIToken is for container '\(container)' (\(environment.rawValue)), the request names "
                    + "'\(target.container)' (\(target.environment.rawValue)); make one with `zonekeeper token create --api "
                    + "--container \(target.container) --environment \(target.environment.rawValue)`")
        }
        guard OriginRule.allows(credentials.origin, origins) else {
            throw ServiceError(
                .accessDenied, "the ckAPIToken may not be used by pages of the origin that this request comes from")
        }
        if let deletion = directory.deletions[container] { throw deletion.refusal }
        return token
    }

    private static func admit(
        _ signed: SignedRequest, to target: Target, in directory: DirectorySnapshot, now: Int64
    ) throws(ServiceError) -> Admitted {
        let key = try key(of: signed.signature, in: directory)
        guard SchemaKey(container: key.container, environment: key.environment) == target.schemaKey else {
            throw ServiceError(
                .authenticationFailed,
                "the key is for container '\(key.container)' (\(key.environment.rawValue)), the request names "
                    + "'\(target.container)' (\(target.environment.rawValue))")
        }
        try SignatureCheck.verify(
            signed.signature, key: key, body: signed.body, target: signed.target, now: now)
        if let deletion = directory.deletions[key.container] { throw deletion.refusal }
        guard !target.needsUser else {
            throw ServiceError(.accessDenied, "server-to-server keys reach public data only")
        }
        return Admitted(
            caller: caller(key.accountID, for: target, in: directory), accountID: key.accountID, keyID: key.id)
    }

    /// A user as a container knows them, with their roles.
    /// - Parameter name: the user's record name, where it is known already.
    package static func caller(
        _ accountID: String, named name: String? = nil, for target: Target, in directory: DirectorySnapshot
    ) -> Caller {
        Caller(
            user: name ?? Account.userRecordName(accountID: accountID, container: target.container),
            customRoles: directory.roles(
                of: accountID, container: target.container, environment: target.environment))
    }
}
